/*
 * From a rules file to an object in a follower's area.
 *
 * The cache is the user's (XDG_CACHE_HOME or ~/.cache, folder mve): an object's name
 * is a hash of the file, of everything that it names by `use` and `#include`, and
 * of the rulec that compiled it.  An object is native code that the server's processes
 * run: only one that nobody else can have written is taken from there (folder.h), and
 * where no place is named or known it is compiled each time.  From then on it is an open
 * file: nobody looks for it by a name again.
 *
 * An object is laid out here, once: its two segments as they will lie in memory,
 * code and constants first.  It has no relocation, so its place does not matter.
 */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "engine/abi/rules.h"
#include "engine/abi/rules_seal.h"
#include "engine/core/must.h"
#include "engine/core/pairs.h"
#include "engine/outside/kernel/cache.h"
#include "engine/outside/kernel/folder.h"
#include "engine/outside/monitor/say.h"
#include "engine/outside/rules/rules_load.h"

#define PAGE		4096u

#define USES_MAX	16	/* deep; rulec has its own limit */
#define FILE_MAX	(16u << 20)
#define SEALS		(F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE)
#define OBJECT_SUFFIX	".so"

/* --- rulec ----------------------------------------------------------------------- */

/* Beside our own binary, else as the shell finds it. */
static const char *rulec_path(void)
{
	static char path[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 8);
	char *slash;

	path[n < 0 ? 0 : n] = 0;
	slash = strrchr(path, '/');
	if (slash) {
		strcpy(slash + 1, "rulec");
		if (!access(path, X_OK))
			return path;
	}
	return "rulec";
}

/* The object comes by rulec's output into a file that has no name. */
static int rulec_run(const char *file, int to)
{
	const char *rulec = rulec_path();
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		dup2(to, STDOUT_FILENO);
		execlp(rulec, "rulec", "build", file, "-o", "-", (char *)NULL);
		say_error("make rulec, or put it into PATH", "cannot run rulec: %s",
			  strerror(errno));
		_exit(EXIT_SYSTEM);
	}
	if (pid < 0 || waitpid(pid, &status, 0) < 0)
		return EXIT_SYSTEM;
	return WIFEXITED(status) ? WEXITSTATUS(status) : EXIT_SYSTEM;
}

/* --- the cache's key ----------------------------------------------------------------- */

static bool hash_file(struct rules_hash *h, const char *path, unsigned depth);

/* Where rulec looks: beside the file, then in rules/lib. */
static void hash_named(struct rules_hash *h, const char *by, const char *name, size_t n,
		       unsigned depth)
{
	const char *slash = strrchr(by, '/'), *lib = getenv("MVE_RULES_LIB");
	char path[PATH_MAX * 2], self[PATH_MAX - 64];
	ssize_t at;

	snprintf(path, sizeof(path), "%.*s%.*s", slash ? (int)(slash + 1 - by) : 0, by, (int)n,
		 name);
	if (hash_file(h, path, depth + 1))
		return;
	at = readlink("/proc/self/exe", self, sizeof(self) - 1);
	self[at < 0 ? 0 : at] = 0;
	if (strrchr(self, '/'))
		strrchr(self, '/')[1] = 0;
	snprintf(path, sizeof(path), "%s%s/%.*s", lib ? "" : self, lib ? lib : "../rules/lib",
		 (int)n, name);
	hash_file(h, path, depth + 1);
}

/* The file, and what its lines name by `use "x"` and `#include "x"`. */
static bool hash_file(struct rules_hash *h, const char *path, unsigned depth)
{
	size_t len;
	char *text = depth < USES_MAX ? file_read(path, FILE_MAX, &len) : NULL;

	if (!text)
		return false;
	rules_hash_add(h, text, len + 1);
	for (char *line = text; line; line = strchr(line, '\n')) {
		char *quote, *end;

		line += strspn(line, " \t\n");
		if (strncmp(line, "use", 3) && *line != '#')
			continue;
		quote = line + strcspn(line, "\"\n");
		end = *quote == '"' ? quote + 1 + strcspn(quote + 1, "\"\n") : NULL;
		if (end && *end == '"')
			hash_named(h, path, quote + 1, (size_t)(end - quote - 1), depth);
	}
	free(text);
	return true;
}

static void hash_rulec(struct rules_hash *h)
{
	const uint32_t version = RULES_VERSION;
	struct stat st;

	rules_hash_add(h, &version, sizeof(version));
	if (stat(rulec_path(), &st) < 0)
		return;
	rules_hash_add(h, &st.st_size, sizeof(st.st_size));
	rules_hash_add(h, &st.st_mtim, sizeof(st.st_mtim));
}

/* --- the cache ------------------------------------------------------------------------ */

static bool is_object(const char *file)
{
	size_t n = strlen(file);

	return n > strlen(OBJECT_SUFFIX) &&
	       !strcmp(file + n - strlen(OBJECT_SUFFIX), OBJECT_SUFFIX);
}

/*
 * A copy that nobody can change any more, and whose reading never waits: the monitor takes
 * no other from whoever gives it rules.
 */
static int sealed_copy(int fd)
{
	struct folder_part whole = { 0 };
	char *bytes = file_read_fd(fd, FILE_MAX, &whole.len);
	int copy = bytes ? memfd_create("mve-rules", MFD_CLOEXEC | MFD_ALLOW_SEALING) : -1;

	whole.bytes = bytes;
	if (copy >= 0 && (fd_write(copy, &whole) || fcntl(copy, F_ADD_SEALS, SEALS) < 0)) {
		close(copy);
		copy = -1;
	}
	free(bytes);
	return copy;
}

bool rules_sealed(int fd)
{
	int seals = fcntl(fd, F_GET_SEALS);

	return seals >= 0 && (seals & SEALS) == SEALS;
}

/* What a full disk or a crash has left of a file is made anew. */
static int whole_find(int folder, const char *name)
{
	uint64_t size;
	const char *why;
	int fd = folder < 0 ? -1 : folder_file(folder, name, &size);
	struct rules_bank *b = fd < 0 ? NULL : rules_read(fd, &why);

	if (b)
		cache_use(folder, name);
	else if (fd >= 0)
		close(fd);
	free(b);
	return b ? fd : -1;
}

/* Without a place for it the object is for this time only. */
static void object_keep(int folder, const char *name, int fd)
{
	struct folder_part whole = { 0 };
	char *bytes = folder < 0 ? NULL : file_read_fd(fd, FILE_MAX, &whole.len);

	whole.bytes = bytes;
	if (bytes && !folder_write(folder, name, &whole, 1))
		cache_clean(folder, OBJECT_SUFFIX);
	else
		say_log("rules", "the object of %s is not kept", name);
	free(bytes);
}

static int object_make(const char *file, int folder, const char *name, int *fd)
{
	int made = memfd_create("mve-rules", MFD_CLOEXEC);
	int code = made < 0 ? EXIT_SYSTEM : rulec_run(file, made);

	if (code) {
		say_error("rulec check shows the same", "the rules are not taken: %s", file);
		if (made >= 0)
			close(made);
		return code;
	}
	object_keep(folder, name, made);
	*fd = made;
	return 0;
}

/* An object that the user names: it may be a link, but nothing that waits. */
static int object_open(const char *file, int *fd)
{
	*fd = open(file, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (*fd >= 0)
		return 0;
	say_error("check its path and its rights", "cannot read the rules: %s: %s", file,
		  strerror(errno));
	return EXIT_USE;
}

/* By the cache, or rulec. */
static int object_find(const char *file, int *fd)
{
	struct rules_hash h = RULES_HASH_BEGIN;
	char name[64];
	int folder, code = 0;

	errno = 0;
	if (!hash_file(&h, file, 0)) {
		say_error("check its path and its rights", "cannot read the rules: %s: %s", file,
			  errno == EINVAL ? "it is no file" :
			  errno ? strerror(errno) : "it is too large");
		return EXIT_USE;
	}
	hash_rulec(&h);
	snprintf(name, sizeof(name), "%016lx%016lx" OBJECT_SUFFIX, h.a, h.b);
	folder = folder_base("XDG_CACHE_HOME", ".cache", FOLDER_MAKE);
	if (folder < 0 && folder_base_named("XDG_CACHE_HOME")) {
		say_error("set XDG_CACHE_HOME to a folder of yours",
			  "no place for compiled rules: %s", folder_why(-folder));
		return EXIT_SYSTEM;
	}
	*fd = whole_find(folder, name);
	if (*fd < 0)
		code = object_make(file, folder, name, fd);
	if (folder >= 0)
		close(folder);
	return code;
}

int rules_compile(const char *file, int *fd)
{
	int found, code = is_object(file) ? object_open(file, &found) : object_find(file, &found);

	if (code)
		return code;
	*fd = sealed_copy(found);
	close(found);
	if (*fd >= 0)
		return 0;
	say_error("an object of rulec build is a file of at most 16 MiB",
		  "cannot read the rules: %s: %s", file, strerror(errno));
	return EXIT_USE;
}

/* --- an object ------------------------------------------------------------------------ */

struct object {
	const uint8_t *bytes;
	size_t len;
	uint32_t flags;
	const Elf64_Ehdr *head;
};

static const Elf64_Phdr *segment(const struct object *o, unsigned i)
{
	return (const Elf64_Phdr *)(o->bytes + o->head->e_phoff) + i;
}

static bool head_sane(const struct object *o)
{
	const Elf64_Ehdr *e = o->head;

	return o->len >= sizeof(*e) && !memcmp(e->e_ident, ELFMAG, SELFMAG) &&
	       e->e_ident[EI_CLASS] == ELFCLASS64 && e->e_machine == EM_X86_64 &&
	       e->e_type == ET_DYN && e->e_phentsize == sizeof(Elf64_Phdr) && e->e_phnum < 64 &&
	       e->e_phoff <= o->len - e->e_phnum * sizeof(Elf64_Phdr) &&
	       e->e_phoff % 8 == 0 && o->len > e->e_phnum * sizeof(Elf64_Phdr);
}

static bool relocates(const struct object *o, const Elf64_Phdr *p)
{
	const Elf64_Dyn *d = (const Elf64_Dyn *)(o->bytes + p->p_offset);

	for (size_t i = 0; i < p->p_filesz / sizeof(*d) && d[i].d_tag != DT_NULL; i++)
		if (d[i].d_tag == DT_RELA || d[i].d_tag == DT_REL || d[i].d_tag == DT_JMPREL)
			return true;
	return false;
}

/* Puts a segment where it belongs; why not, or NULL. */
static const char *segment_put(struct rules_bank *b, const struct object *o, const Elf64_Phdr *p)
{
	const uint64_t room = sizeof(b->bytes) - PAGE;
	uint64_t end;

	if (p->p_offset > o->len || p->p_filesz > o->len - p->p_offset || p->p_filesz > p->p_memsz)
		return "it is damaged";
	if (p->p_type == PT_DYNAMIC)
		return p->p_offset % 8 || relocates(o, p) ? "it has relocations" : NULL;
	if (p->p_type != PT_LOAD)
		return NULL;
	if (p->p_vaddr > room || p->p_memsz > room - p->p_vaddr)
		return "it is too large";
	end = p->p_vaddr + p->p_memsz;
	MUST(end <= room && p->p_filesz <= p->p_memsz);
	if (!(p->p_flags & PF_W))
		b->text = (uint32_t)(end + PAGE - 1) & ~(PAGE - 1);
	else if (p->p_vaddr < b->text)
		return "its data lies in its code";
	memcpy(b->bytes + p->p_vaddr, o->bytes + p->p_offset, p->p_filesz);
	if (end > b->size)
		b->size = (uint32_t)end;
	return NULL;
}

/* What the inside maps of it and jumps to: engine/inside/rules/rules_object.c. */
static bool bank_fits(const struct rules_bank *b)
{
	return b->entry < b->text && b->text <= b->size && b->size <= sizeof(b->bytes) &&
	       b->text % PAGE == 0;
}

static const char *object_lay_out(struct rules_bank *b, const struct object *o)
{
	if (!head_sane(o))
		return "it is no object of rulec";
	for (unsigned i = 0; i < o->head->e_phnum; i++) {
		const char *why = segment_put(b, o, segment(o, i));

		if (why)
			return why;
	}
	if (b->size < b->text)
		b->size = b->text;
	if (o->head->e_entry >= b->text)
		return "it has no entry";
	b->entry = (uint32_t)o->head->e_entry;
	MUST(bank_fits(b));
	return NULL;
}

/* Whole, and made for this mve; what the object is without its seal. */
static const char *seal_check(struct object *o)
{
	struct rules_hash h = RULES_HASH_BEGIN;
	static char text[96];
	struct rules_seal seal;

	if (o->len < sizeof(seal))
		return "it is no object of rulec";
	memcpy(&seal, o->bytes + o->len - sizeof(seal), sizeof(seal));
	if (memcmp(seal.magic, RULES_SEAL, sizeof(seal.magic)))
		return !memcmp(o->bytes, ELFMAG, SELFMAG)
			? "its end is missing: it is damaged, or not made by this rulec"
			: "it is no object of rulec";
	o->len -= sizeof(seal);
	if (seal.version != RULES_VERSION) {
		snprintf(text, sizeof(text), "it was made by another rulec: for version %u of "
			 "rules, this is %u", seal.version, RULES_VERSION);
		return text;
	}
	rules_hash_add(&h, o->bytes, o->len);
	if (seal.len != o->len || seal.hash[0] != h.a || seal.hash[1] != h.b)
		return "it is damaged";
	o->flags = seal.flags;
	return seal.flags & RULES_HAS_PROCESS ? "followers do not know @process rules" : NULL;
}

struct rules_bank *rules_read(int fd, const char **why)
{
	struct object o = { 0 };
	char *bytes = file_read_fd(fd, FILE_MAX, &o.len);
	struct rules_bank *b = bytes ? calloc(1, sizeof(*b)) : NULL;

	if (!b) {
		*why = strerror(errno);
		free(bytes);
		return NULL;
	}
	o.bytes = (const uint8_t *)bytes;
	o.head = (const Elf64_Ehdr *)bytes;
	*why = seal_check(&o);
	if (!*why)
		*why = object_lay_out(b, &o);
	free(bytes);
	b->flags = o.flags;
	if (!*why)
		return b;
	free(b);
	return NULL;
}

struct rules_bank *rules_copy(const struct rules_bank *rules)
{
	struct rules_bank *to = calloc(1, sizeof(*to));

	MUST(bank_fits(rules));
	if (to)
		memcpy(to, rules, offsetof(struct rules_bank, bytes) + rules->size);
	return to;
}

void rules_put(struct brief *b, const struct rules_bank *rules)
{
	uint32_t next = b->rules + 1 ? b->rules + 1 : 2;
	struct rules_bank *to = &b->bank[next % 2];

	/* Who reads the other bank is not disturbed. */
	MUST(bank_fits(rules) && (!b->rules || to != &b->bank[b->rules % 2]));
	to->size = rules->size;
	to->text = rules->text;
	to->entry = rules->entry;
	to->flags = rules->flags;
	memcpy(to->bytes, rules->bytes, rules->size);
	/* Who sees the number sees the object. */
	PUBLISH(brief_rules, &b->rules, next);
}
