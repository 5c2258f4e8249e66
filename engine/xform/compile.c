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

#define WORDS_MAX	(40 + SOURCES_MAX * 2)

static void words_make(struct unit *u, const char **argv, const char *in, const char *out)
{
	static const char *const fixed[] = { "-std=gnu17", "-O2", "-g", "-fPIC", "-shared", "-Wall",
		"-Wextra", "-Werror=incompatible-pointer-types", "-Werror=int-conversion",
		"-Werror=overflow", "-Werror=implicit-function-declaration",
		"-Werror=return-type", "-Wno-unused-function", "-Wno-unused-variable",
		"-Wno-address-of-packed-member", "-Wno-packed-bitfield-compat",
		"-Wno-missing-field-initializers", "-Wno-pedantic", "-x", "c" };
	const char *cc = getenv("CC");
	unsigned n = 0;

	argv[n++] = cc && *cc ? cc : "gcc";
	for (unsigned i = 0; i < sizeof(fixed) / sizeof(fixed[0]); i++)
		argv[n++] = fixed[i];
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

bool compile_c(struct unit *u, const struct buffer *c, const char *path)
{
	const char *beside = path ? path : arena_format(u->arena, "%s/mve-xform", getenv("TMPDIR") ?
		getenv("TMPDIR") : "/tmp");
	const char *in = arena_format(u->arena, "%s.c.%d", beside, getpid());
	const char *out = arena_format(u->arena, "%s.%d", beside, getpid());
	const char **argv = arena_alloc(u->arena, WORDS_MAX * sizeof(*argv));
	int err = file_write(in, c->at, c->len);

	if (!err) {
		words_make(u, argv, in, out);
		err = run((char *const *)argv);
		if (err > 0)
			u->errors++;
		else if (!err && path && rename(out, path) < 0)
			err = -errno;
	}
	if (err < 0)
		fprintf(stderr, "mve-xform: cannot compile: %s: %s\n", beside, strerror(-err));
	unlink(in);
	unlink(out);
	return !err;
}
