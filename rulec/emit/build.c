/*
 * From the automaton to C and to an object: re2c for regular expressions, the
 * system's compiler for the rest.
 *
 * Both read their input from a pipe's file and write into a folder of our own,
 * so that no name, time or path gets into the result; it is moved to its place
 * when it is whole and has been looked at.  What the compiler says about C in
 * rules already bears the place in the rules file; it is passed on as it is.
 */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "engine/abi/rules_seal.h"
#include "engine/core/must.h"
#include "rulec/rulec.h"

#define RE2C_SECONDS	20
#define CC_WORDS	8	/* of the variable CC */
#define CC_SECONDS	300
#define MEMORY_MAX	((rlim_t)2 << 30)
#define ARGS_MAX	(80 + 2 * SOURCES_MAX)

_Static_assert(sizeof(struct rules_seal) % 8 == 0, "it is read where it lies, behind the object");
extern char **environ;

static void system_error(const char *what, const char *object)
{
	fprintf(stderr, "rulec: %s: %s: %s\n", what, object, strerror(errno));
}

/* --- a folder for one run -------------------------------------------------- */

/* Signals that end us wait until the folder is gone.  What comes from a terminal the
 * programs that we run get, too, so that is not long. */
static void ends_block(int how)
{
	sigset_t ends;

	sigemptyset(&ends);
	sigaddset(&ends, SIGINT);
	sigaddset(&ends, SIGTERM);
	sigaddset(&ends, SIGHUP);
	sigprocmask(how, &ends, NULL);
}

static const char *scratch_new(struct unit *u)
{
	const char *tmp = getenv("TMPDIR");
	char *path = arena_format(u->arena, "%s/rulec-XXXXXX", tmp ? tmp : "/tmp");

	ends_block(SIG_BLOCK);
	if (mkdtemp(path))
		return path;
	system_error("cannot make a folder", path);
	ends_block(SIG_UNBLOCK);
	return NULL;
}

static const char *scratch_file(struct unit *u, const char *folder, const char *name)
{
	return arena_format(u->arena, "%s/%s", folder, name);
}

static void scratch_free(struct unit *u, const char *folder)
{
	static const char *const names[] = { "in", "out", "err" };

	for (unsigned i = 0; i < 3; i++)
		unlink(scratch_file(u, folder, names[i]));
	rmdir(folder);
	ends_block(SIG_UNBLOCK);
}

/* --- running a program ----------------------------------------------------- */

static void child(struct unit *u, const char *folder, char *const *argv, unsigned seconds)
{
	struct rlimit cpu = { seconds, seconds }, memory = { MEMORY_MAX, MEMORY_MAX };
	int in = open(scratch_file(u, folder, "in"), O_RDONLY);
	int err = open(scratch_file(u, folder, "err"), O_WRONLY | O_CREAT | O_TRUNC, 0600);

	ends_block(SIG_UNBLOCK);
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	setenv("LC_ALL", "C", 1);
	if (in < 0 || err < 0 || dup2(in, 0) < 0 || dup2(err, 2) < 0)
		_exit(126);
	setrlimit(RLIMIT_CPU, &cpu);
	/* Last: a copy of a rulec that was built with ASan has more than that already. */
	setrlimit(RLIMIT_AS, &memory);
	execvp(argv[0], argv);
	_exit(127);
}

/* Its exit status; -1: it could not be run, or was killed. */
static int run(struct unit *u, const char *folder, char *const *argv, unsigned seconds)
{
	pid_t pid;
	int status;

	fflush(NULL);
	pid = fork();
	if (pid == 0)
		child(u, folder, argv, seconds);
	if (pid < 0)
		return -1;
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return -1;
	if (WIFEXITED(status) && WEXITSTATUS(status) == 127)
		fprintf(stderr, "rulec: cannot run: %s: not found\n"
			"hint: install gcc and re2c, or set CC\n", argv[0]);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* What a program said, without the lines that name generated functions. */
static void pass_on(struct unit *u, const char *folder)
{
	size_t len;
	char *text = file_read(u->arena, scratch_file(u, folder, "err"), &len), *save = NULL;

	for (char *line = text ? strtok_r(text, "\n", &save) : NULL; line;
	     line = strtok_r(NULL, "\n", &save)) {
		if (strstr(line, ": In function ") || !strncmp(line, "cc1: ", 5) ||
		    !strncmp(line, "collect2: ", 10) || !strncmp(line, "compilation ", 12))
			continue;
		fprintf(stderr, "%s\n", line);
	}
}

/* --- C --------------------------------------------------------------------- */

/* A program that fails where there is no room says nothing of the rules. */
static bool has_room(struct unit *u, const char *folder)
{
	static const char some[65536];
	const char *in = scratch_file(u, folder, "in");
	int err = file_write(in, some, sizeof(some));

	errno = -err;
	if (err)
		system_error("cannot write", in);
	return !err;
}

static void regex_failed(struct unit *u)
{
	struct diag *d = diag_error(u, u->regexes->loc, "re2c cannot make an automaton of the "
		"regular expressions");

	diag_hint(u, d, "one of them is too large; count less, or look closer in a guard");
}

static char *regex_run(struct unit *u, const char *folder, const struct buffer *text,
	size_t *len)
{
	const char *in = scratch_file(u, folder, "in"), *out = scratch_file(u, folder, "out");
	char *argv[] = { "re2c", "-i", "--no-generation-date", "--no-version", "-T",
		"-Wno-undefined-control-flow", "-o", (char *)out, (char *)in, NULL };
	int err = file_write(in, text->at, text->len), status;

	if (err) {
		errno = -err;
		system_error("cannot write", in);
		return NULL;
	}
	status = run(u, folder, argv, RE2C_SECONDS);
	if (status == 0)
		return file_read(u->arena, out, len);
	if (u->debug)
		pass_on(u, folder);
	if (status != 127 && has_room(u, folder))
		regex_failed(u);
	return NULL;
}

/* re2c gets nothing else to read: it would lose the places of C in rules. */
static bool regexes_make(struct unit *u, struct buffer *to)
{
	struct buffer text = { 0 };
	const char *folder = scratch_new(u);
	char *c;
	size_t len;

	if (!folder)
		return false;
	regex_emit(u, &text);
	c = regex_run(u, folder, &text, &len);
	scratch_free(u, folder);
	free(text.at);
	if (c)
		buffer_add(to, c, len);
	return c;
}

char *build_c(struct unit *u, size_t *len)
{
	struct buffer text = { 0 };
	char *c = NULL;

	pass_emit_head(u, &text);
	if (!u->regexes || regexes_make(u, &text)) {
		pass_emit(u, &text);
		c = arena_copy(u->arena, text.at, text.len);
		*len = text.len;
	}
	free(text.at);
	return c;
}

/* --- the object ------------------------------------------------------------ */

/* `ccache gcc`: a program and what it is given first; how many words. */
static unsigned cc_words(struct unit *u, char **argv, const char *cc)
{
	char *save, *text = arena_copy(u->arena, cc, strlen(cc));
	unsigned n = 0;

	for (char *word = strtok_r(text, " \t", &save); word && n < CC_WORDS;
	     word = strtok_r(NULL, " \t", &save))
		argv[n++] = word;
	if (!n)
		argv[n++] = "gcc";
	MUST(n <= CC_WORDS);
	return n;
}

static void cc_args(struct unit *u, char **argv, const char *out, bool lines, bool quick)
{
	static char *const fixed[] = {
		"-x", "c", "-", "-std=gnu17", "-O2", "-fPIC", "-ffreestanding", "-nostdlib",
		"-mgeneral-regs-only", "-fno-stack-protector", "-fcf-protection=none",
		"-fvisibility=hidden", "-fno-asynchronous-unwind-tables",
		"-fstack-clash-protection", "-Wall", "-Wextra", "-Werror",
		"-shared", "-Wl,-Bsymbolic",
		"-Wl,-e,mve_rules", "-Wl,-z,max-page-size=4096", "-Wl,-z,noexecstack",
		"-Wl,-z,norelro", "-Wl,-z,noseparate-code", "-Wl,--build-id=none", "-Wl,-s",
		"-Wl,--hash-style=gnu", "-Wl,--no-undefined",
	};
	static char *const gcc[] = {	/* clang does so anyway, and knows none of them */
		"-fno-tree-loop-distribute-patterns", "-fno-merge-constants",
		/* Looks at all functions at once, which have nothing to do with each other. */
		"-fno-ipa-icf", "-fno-ipa-modref", "-fno-ipa-pure-const", "-fno-ipa-sra",
		"-fno-ipa-cp",
		"-fdiagnostics-column-unit=byte",
	};
	const char *cc = getenv("CC");
	unsigned n = cc_words(u, argv, cc && *cc ? cc : "gcc");

	for (unsigned i = 0; i < sizeof(gcc) / sizeof(gcc[0]) && !strstr(argv[n - 1], "clang"); i++)
		argv[n++] = gcc[i];
	argv[n++] = lines ? "-g1" : "-g0";
	for (unsigned i = 0; i < sizeof(fixed) / sizeof(fixed[0]); i++)
		argv[n++] = fixed[i];
	for (unsigned f = 0; f < u->nsources; f++) {
		const char *folder = path_folder(u->arena, u->sources[f].path);

		argv[n++] = "-iquote";
		argv[n++] = *folder ? (char *)folder : ".";
	}
	argv[n++] = "-iquote";
	argv[n++] = (char *)path_library(u->arena);
	argv[n++] = "-o";
	argv[n++] = (char *)out;
	if (quick)
		argv[n++] = "-O0";
	MUST(n < ARGS_MAX);
	argv[n] = NULL;
}

/* Nothing for a dynamic linker to do: the inside has none. */
static bool has_relocations(const char *image, size_t len)
{
	const Elf64_Ehdr *head = (const Elf64_Ehdr *)image;
	const Elf64_Shdr *sections;

	if (len < sizeof(*head) || head->e_shoff > len ||
	    head->e_shnum > (len - head->e_shoff) / sizeof(*sections))
		return true;
	sections = (const Elf64_Shdr *)(image + head->e_shoff);
	for (unsigned i = 0; i < head->e_shnum; i++)
		if ((sections[i].sh_type == SHT_RELA || sections[i].sh_type == SHT_REL) &&
		    sections[i].sh_size)
			return true;
	return false;
}

/* By its end mve knows that an object is whole. */
static char *seal(struct unit *u, const char *image, size_t *len)
{
	struct rules_seal seal = { RULES_SEAL, RULES_VERSION, u->flags, *len, { 0, 0 } };
	char *to = arena_alloc(u->arena, *len + sizeof(seal));
	struct rules_hash h = RULES_HASH_BEGIN;

	rules_hash_add(&h, image, *len);
	seal.hash[0] = h.a;
	seal.hash[1] = h.b;
	memcpy(to, image, *len);
	memcpy(to + *len, &seal, sizeof(seal));
	*len += sizeof(seal);
	return to;
}

/* NULL: it was only to be tried. */
static bool object_place(struct unit *u, const char *made, const char *path)
{
	size_t len;
	char *image = file_read(u->arena, made, &len);
	int err;

	if (!image) {
		system_error("cannot read", made);
		return false;
	}
	if (has_relocations(image, len)) {
		fprintf(stderr, "%s: error: C of these rules holds addresses in static data\n"
			"hint: use arrays of char instead of pointers to strings\n",
			u->sources[0].path);
		u->errors++;
		return false;
	}
	if (!path)
		return true;
	image = seal(u, image, &len);
	err = file_write(path, image, len);
	errno = -err;
	if (err)
		system_error("cannot write", path);
	return !err;
}

static bool object_make(struct unit *u, const char *folder, const char *c, size_t len,
	const char *path)
{
	const char *in = scratch_file(u, folder, "in"), *out = scratch_file(u, folder, "out");
	char *argv[ARGS_MAX];
	int err = file_write(in, c, len), status;

	errno = -err;
	if (err) {
		system_error("cannot write", in);
		return false;
	}
	cc_args(u, argv, out, false, !path);
	status = run(u, folder, argv, CC_SECONDS);
	if (status == 1) {
		/* Slow, but then the linker, too, can say where. */
		cc_args(u, argv, out, true, !path);
		status = run(u, folder, argv, CC_SECONDS);
	}
	pass_on(u, folder);
	if (status == 0)
		return object_place(u, out, path);
	if (status == 1)
		u->errors += has_room(u, folder);
	else if (status != 127)
		fprintf(stderr, "rulec: the compiler was ended, or failed: %s\n", argv[0]);
	return false;
}

bool build_object(struct unit *u, const char *path)
{
	size_t len;
	const char *c = build_c(u, &len), *folder;
	bool made;

	if (!c)
		return false;
	folder = scratch_new(u);
	if (!folder)
		return false;
	made = object_make(u, folder, c, len, path);
	scratch_free(u, folder);
	return made;
}
