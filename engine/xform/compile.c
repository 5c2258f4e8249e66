/*
 * The C compiler at work: what it says of a user's C is shown as it says it, for the C stands
 * under the places of the transform file.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "engine/core/must.h"
#include "engine/xform/pairs.h"

extern char **environ;

static int run(char *const *argv)
{
	pid_t pid;
	int status, err = posix_spawnp(&pid, argv[0], NULL, NULL, argv, environ);

	if (err)
		return -err;
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return -errno;
	return WIFEXITED(status) ? WEXITSTATUS(status) : -EINTR;
}

/*
 * A value of the old build is compared with a name of the new one, or kept: where the two have
 * other numbers that is wrong, and the compiler's warning would not be read.
 */
static void renumbered_say(struct pairing *p)
{
	const struct value *was, *is;
	const struct type *t = type_renumbered(p->old, p->new, &was, &is);

	if (t)
		fprintf(stderr, "hint: `%s` of `%s` was %ld and is %ld in the new build: compare "
			"what the old one has with old_%s\n", was->name, type_text(p->u, t),
			(long)was->number, (long)is->number, was->name);
}

#define WORDS_MAX	(40 + SOURCES_MAX * 2)

static void words_make(struct pairing *p, const char **argv, const char *in, const char *out)
{
	static const char *const fixed[] = { "-std=gnu17", "-O2", "-g", "-fPIC", "-shared", "-Wall",
		"-Wextra", "-Werror=incompatible-pointer-types", "-Werror=int-conversion",
		"-Werror=overflow", "-Werror=implicit-function-declaration",
		"-Werror=return-type", "-Wno-unused-function", "-Wno-unused-variable",
		"-Wno-address-of-packed-member", "-Wno-packed-bitfield-compat",
		"-Wno-missing-field-initializers", "-Wno-pedantic", "-x", "c" };
	struct unit *u = p->u;
	const char *cc = getenv("CC");
	const struct value *was, *is;
	unsigned n = 0;

	argv[n++] = cc && *cc ? cc : "gcc";
	for (unsigned i = 0; i < sizeof(fixed) / sizeof(fixed[0]); i++)
		argv[n++] = fixed[i];
	if (type_renumbered(p->old, p->new, &was, &is)) {
		argv[n++] = "-Werror=enum-compare";
		argv[n++] = "-Werror=enum-conversion";
	}
	for (unsigned f = 0; f < u->nsources; f++)
		if (u->sources[f].items) {
			argv[n++] = "-iquote";
			argv[n++] = *path_folder(u->arena, u->sources[f].path) ?
				path_folder(u->arena, u->sources[f].path) : ".";
		}
	argv[n++] = in;
	argv[n++] = "-o";
	argv[n++] = out;
	MUST(n < WORDS_MAX);
	argv[n] = NULL;
}

bool compile_c(struct pairing *p, const struct buffer *c, const char *path)
{
	struct unit *u = p->u;
	const char *beside = path ? path : arena_format(u->arena, "%s/mve-xform", getenv("TMPDIR") ?
		getenv("TMPDIR") : "/tmp");
	const char *in = arena_format(u->arena, "%s.c.%d", beside, getpid());
	const char *out = arena_format(u->arena, "%s.%d", beside, getpid());
	const char **argv = arena_alloc(u->arena, WORDS_MAX * sizeof(*argv));
	int err = file_write(in, c->at, c->len);

	if (!err) {
		words_make(p, argv, in, out);
		err = run((char *const *)argv);
		if (err > 0) {
			u->errors++;
			renumbered_say(p);
		}
		if (!err && path && rename(out, path) < 0)
			err = -errno;
	}
	if (err < 0)
		fprintf(stderr, "mve-xform: cannot compile: %s: %s\n", beside, strerror(-err));
	unlink(in);
	unlink(out);
	return !err;
}
