/*
 * mve-xform: writes what brings the state of one build of a server into another.
 *
 * Exit status: 0 it is written, 1 something must be said first, or is wrong; 2 wrong use;
 * 3 system.  Nothing is written when there is an error.
 */
#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "engine/core/must.h"
#include "engine/xform/pairs.h"

static int usage(FILE *to, int status)
{
	fprintf(to, "usage: mve-xform [-c] [-t FILE] [-o FILE.so|FILE.c] OLD.so NEW.so\n"
		"       -t FILE: what is to be said of types (docs/updating.md)\n"
		"       -c: nothing but code changed: types are alike, and none is asked for\n"
		"       -o FILE.so: the transformation; FILE.c: its C. Without -o it is tried\n"
		"       -h, --help: this\n");
	return status;
}

void must_failed(const char *place)
{
	fprintf(stderr, "mve-xform: bug: %s\nhint: nothing is written; please tell whoever "
		"maintains it, with both builds\n", place);
	exit(EXIT_BUG);
}

static bool ends_with(const char *path, const char *end)
{
	size_t n = strlen(path), len = strlen(end);

	return n > len && !strcmp(path + n - len, end);
}

static bool is_c(const char *path)
{
	return ends_with(path, ".c");
}

static bool is_same(const struct stat *st, const char *path)
{
	struct stat other;

	return path && stat(path, &other) == 0 && other.st_dev == st->st_dev &&
		other.st_ino == st->st_ino;
}

/* What stands at its place is replaced: never a device, nor what we read. */
static const char *place_bad(const struct unit *u, const char *output, const char *const reads[2])
{
	struct stat st;

	if (!is_c(output) && !ends_with(output, ".so"))
		return "it is neither FILE.so nor FILE.c";
	if (stat(output, &st) < 0)
		return NULL;
	if (!S_ISREG(st.st_mode))
		return "it is no file";
	for (int i = 0; i < 2; i++)
		if (is_same(&st, reads[i]))
			return "it is one of the builds";
	for (unsigned i = 0; i < u->nsources; i++)
		if (is_same(&st, u->sources[i].path))
			return "it says what is to be said of types";
	return NULL;
}

static bool may_write(const struct unit *u, const char *output, const char *const reads[2])
{
	const char *bad = output ? place_bad(u, output, reads) : NULL;

	if (bad)
		fprintf(stderr, "mve-xform: cannot write: %s: %s\nhint: without -o it is only "
			"tried\n", output, bad);
	return !bad;
}

static int write_out(struct pairing *p, struct buffer *c, const char *output)
{
	int err;

	if (!output || !is_c(output))
		return compile_c(p, c, output) ? EXIT_OK : p->u->errors ? EXIT_NO : EXIT_SYSTEM;
	err = file_write(output, c->at, c->len);
	if (err)
		fprintf(stderr, "mve-xform: cannot write: %s: %s\n", output, strerror(-err));
	return err ? EXIT_SYSTEM : EXIT_OK;
}

/* The passes, in their order. */
static int passes(struct pairing *p, const char *output)
{
	struct buffer c = { 0 };
	int status;

	lines_read(p);
	if (!p->u->errors && p->code_only)
		alike_make(p);
	else if (!p->u->errors)
		pairs_make(p);
	if (p->u->errors) {
		diag_print(p->u, stderr);
		return EXIT_NO;
	}
	emit_c(p, &c);
	status = write_out(p, &c, output);
	free(c.at);
	return status;
}

static int run(const char *old_path, const char *new_path, const char *says, bool code_only,
	const char *output)
{
	struct unit *u = calloc(1, sizeof(*u));
	struct build *builds = calloc(2, sizeof(*builds));
	struct pairing p = { .u = u, .old = builds, .new = builds + 1,
		.code_only = code_only };
	int status = EXIT_SYSTEM;

	MUST(u && builds);
	u->arena = arena_new();
	if (says && !source_load(u, says))
		fprintf(stderr, "mve-xform: cannot read: %s: %s\n", says, strerror(errno));
	else if (u->errors)
		diag_print(u, stderr), status = EXIT_NO;
	else if (!may_write(u, output, (const char *const[2]){ old_path, new_path }))
		status = EXIT_USAGE;
	else if (build_read(u, p.old, old_path, "old") && build_read(u, p.new, new_path, "new"))
		status = passes(&p, output);
	build_close(p.old);
	build_close(p.new);
	arena_free(u->arena);
	free(builds);
	free(u);
	return status;
}

int main(int argc, char **argv)
{
	static const struct option longs[] = { { "help", no_argument, NULL, 'h' }, { 0 } };
	const char *says = NULL, *output = NULL;
	bool code_only = false;
	int option;

	while ((option = getopt_long(argc, argv, "t:o:ch", longs, NULL)) != -1)
		switch (option) {
		case 't': says = optarg; break;
		case 'c': code_only = true; break;
		case 'o': output = optarg; break;
		case 'h': return usage(stdout, EXIT_OK);
		default: return usage(stderr, EXIT_USAGE);
		}
	if (argc - optind != 2)
		return usage(stderr, EXIT_USAGE);
	return run(argv[optind], argv[optind + 1], says, code_only, output);
}
