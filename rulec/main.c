/*
 * rulec: the compiler of rewrite rules.
 *
 * A file goes through the passes below, each of which reports what it finds and
 * leaves the rules in which one before it found something.  What a command does after
 * that is a row of `commands`.  Exit status: 0 fine, 1 the rules are wrong (or a
 * test fails), 2 wrong use, 3 a file or a program that failed us.
 */
#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "engine/core/must.h"
#include "rulec/rulec.h"

static const struct {
	const char *name;
	void (*run)(struct unit *u);
} passes[] = {
	{ "resolve", pass_resolve },	/* names to things */
	{ "bind", pass_bind },		/* names of values */
	{ "check", pass_check },	/* may it be said */
	{ "overlap", pass_overlap },	/* rules against each other */
};

struct options {
	const char *output, *events, *calls, *stage;
	bool strict;
};

static int result(struct unit *u)
{
	diag_print(u, stderr);
	return u->errors || (u->strict && u->warnings) ? EXIT_NO : EXIT_OK;
}

static bool load(struct unit *u, const char *path)
{
	if (source_load(u, path))
		return true;
	fprintf(stderr, "rulec: cannot read: %s: %s\n", path, strerror(errno));
	return false;
}

static bool passes_run(struct unit *u)
{
	for (unsigned f = 0; f < u->nsources; f++)
		if (u->sources[f].bad)
			return false;
	for (unsigned i = 0; i < sizeof(passes) / sizeof(passes[0]) && !u->shaky; i++) {
		if (u->debug && !strcmp(u->debug, passes[i].name))
			fprintf(stderr, "rulec: pass %s\n", passes[i].name);
		passes[i].run(u);
		if (!u->shaky)
			tree_holds(u);
	}
	return !u->errors && !(u->strict && u->warnings);
}

/* --- commands -------------------------------------------------------------- */

/* The C in rules, too: what build would say of it is said here. */
static int command_check(struct unit *u, struct options *o, int argc, char **argv)
{
	int status;

	(void)o, (void)argc, (void)argv;
	if (!passes_run(u))
		return result(u);
	status = result(u);
	if (build_object(u, NULL))
		return status;
	return u->errors ? EXIT_NO : EXIT_SYSTEM;
}

static int text_out(const struct options *o, const char *text, size_t len)
{
	int err;

	if (!o->output) {
		if (fwrite(text, 1, len, stdout) == len && !fflush(stdout))
			return EXIT_OK;
		fprintf(stderr, "rulec: cannot write: standard output: %s\n", strerror(errno));
		return EXIT_SYSTEM;
	}
	err = file_write(o->output, text, len);
	if (err)
		fprintf(stderr, "rulec: cannot write: %s: %s\n", o->output, strerror(-err));
	return err ? EXIT_SYSTEM : EXIT_OK;
}

static bool ends_with(const char *text, const char *end)
{
	size_t n = strlen(text), m = strlen(end);

	return n > m && !strcmp(text + n - m, end);
}

static int command_build(struct unit *u, struct options *o, int argc, char **argv)
{
	size_t len;
	char *c;
	int status;

	(void)argc, (void)argv;
	if (!o->output || !(ends_with(o->output, ".c") || ends_with(o->output, ".so") ||
			    !strcmp(o->output, "-"))) {
		fprintf(stderr, "rulec: build needs -o FILE.so or -o FILE.c\n");
		return EXIT_USAGE;
	}
	if (!passes_run(u))
		return result(u);
	if (ends_with(o->output, ".c")) {
		c = build_c(u, &len);
		status = result(u);
		return c && status == EXIT_OK ? text_out(o, c, len) : status ? status : EXIT_SYSTEM;
	}
	if (build_object(u, o->output))
		return result(u);
	status = result(u);
	return status ? status : EXIT_SYSTEM;
}

static int command_fmt(struct unit *u, struct options *o, int argc, char **argv)
{
	struct buffer b = { 0 };
	int status;

	(void)argc, (void)argv;
	if (u->sources[0].bad)
		return result(u);
	fmt_print(u, &u->sources[0], &b);
	status = text_out(o, b.at ? b.at : "", b.len);
	free(b.at);
	return status;
}

static int command_graph(struct unit *u, struct options *o, int argc, char **argv)
{
	struct buffer b = { 0 };
	int status;

	(void)argc, (void)argv;
	if (passes_run(u))
		pass_graph(u, &b);
	status = result(u);
	if (status == EXIT_OK)
		status = text_out(o, b.at, b.len);
	free(b.at);
	return status;
}

static int run_tests(struct unit *u, struct options *o, int argc, char **argv)
{
	int status;

	(void)o;
	passes_run(u);
	status = result(u);
	return status ? status : command_test(u, argc, argv);
}

static int run_explain(struct unit *u, struct options *o, int argc, char **argv)
{
	int status;

	(void)argc, (void)argv;
	if (!o->events) {
		fprintf(stderr, "rulec: explain needs -e 'call(...), ...'\n");
		return EXIT_USAGE;
	}
	passes_run(u);
	status = result(u);
	return status ? status : command_explain(u, o->events, o->calls, o->stage);
}

static const struct command {
	const char *name;
	int (*run)(struct unit *u, struct options *o, int argc, char **argv);
	enum { ONE, EACH, WITH } files;	/* one, each for itself, one with others */
	const char *takes;	/* options of its own */
	const char *usage;
} commands[] = {
	{ "check", command_check, EACH, "", "check FILE...              is it right" },
	{ "build", command_build, ONE, "o",
		"build FILE -o F.so|F.c|-    an object, or only the C (-: an object, printed)" },
	{ "fmt", command_fmt, EACH, "o", "fmt FILE [-o F]             canonical form" },
	{ "test", run_tests, WITH, "",
		"test FILE [T.t...]          run it over sequences of calls" },
	{ "explain", run_explain, ONE, "ecs",
		"explain FILE -e EVENTS [-c CALLS] [-s old|new]\n"
		"                                    which rule is taken, and why" },
	{ "graph", command_graph, ONE, "o", "graph FILE [-o F.dot]       the automaton" },
};

#define COMMANDS (sizeof(commands) / sizeof(commands[0]))

static int usage(FILE *to, int status)
{
	fprintf(to, "usage: rulec [-W] [-d PASS] COMMAND\n");
	for (unsigned i = 0; i < COMMANDS; i++)
		fprintf(to, "       rulec %s\n", commands[i].usage);
	fprintf(to, "       -W: warnings are errors; -d PASS: resolve, bind, check, overlap\n"
		"       -h, --help: this\n");
	return status;
}

static int run_file(const struct command *c, struct options *o, const char *debug, int argc,
	char **argv)
{
	struct unit *u = calloc(1, sizeof(*u));
	int status = EXIT_SYSTEM;

	if (!u)
		return EXIT_SYSTEM;
	u->arena = arena_new();
	u->debug = debug;
	u->strict = o->strict;
	if (load(u, argv[0]))
		status = c->run(u, o, argc - 1, argv + 1);
	arena_free(u->arena);
	free(u);
	return status;
}

static const struct command *command_find(const char *name)
{
	for (unsigned i = 0; i < COMMANDS; i++)
		if (!strcmp(commands[i].name, name))
			return &commands[i];
	return NULL;
}

static int run_files(const struct command *c, struct options *o, const char *debug, int argc,
	char **argv)
{
	int status = EXIT_OK, one;

	if (c->files != EACH)
		return run_file(c, o, debug, argc, argv);
	for (int i = 0; i < argc; i++) {
		one = run_file(c, o, debug, 1, argv + i);
		status = one > status ? one : status;
	}
	return status;
}

/* What was said and would mean nothing: NULL, all of it does. */
static const char *misused(const struct command *c, const struct options *o, const char *debug,
	int files)
{
	const char *given[] = { o->output, o->events, o->calls, o->stage };
	bool known = !debug;

	for (unsigned i = 0; i < sizeof(given) / sizeof(given[0]); i++)
		if (given[i] && !strchr(c->takes, "oecs"[i]))
			return (const char *[]){ "it takes no -o", "it takes no -e",
				"it takes no -c", "it takes no -s" }[i];
	if (files > 1 && c->files == ONE)
		return "it takes one file";
	if (files > 1 && o->output)
		return "with -o it takes one file";
	if (o->stage && strcmp(o->stage, "old") && strcmp(o->stage, "new"))
		return "-s is old or new";
	for (unsigned i = 0; i < sizeof(passes) / sizeof(passes[0]) && !known; i++)
		known = !strcmp(debug, passes[i].name);
	return known ? NULL : "no such pass";
}

void must_failed(const char *place)
{
	fprintf(stderr, "rulec: bug: %s\nhint: nothing is written; please tell whoever maintains "
		"it, with the rules\n", place);
	exit(EXIT_BUG);
}

int main(int argc, char **argv)
{
	const char *debug = NULL, *wrong;
	struct options o = { 0 };
	const struct command *c;
	static const struct option longs[] = { { "help", no_argument, NULL, 'h' }, { 0 } };
	int option;

	while ((option = getopt_long(argc, argv, "Wd:o:e:c:s:h", longs, NULL)) != -1)
		switch (option) {
		case 'W': o.strict = true; break;
		case 'd': debug = optarg; break;
		case 'o': o.output = optarg; break;
		case 'e': o.events = optarg; break;
		case 'c': o.calls = optarg; break;
		case 's': o.stage = optarg; break;
		case 'h': return usage(stdout, EXIT_OK);
		default: return usage(stderr, EXIT_USAGE);
		}
	if (argc - optind < 2)
		return usage(stderr, EXIT_USAGE);
	c = command_find(argv[optind]);
	if (!c) {
		fprintf(stderr, "rulec: no such command: %s\n", argv[optind]);
		return usage(stderr, EXIT_USAGE);
	}
	wrong = misused(c, &o, debug, argc - optind - 1);
	if (wrong) {
		fprintf(stderr, "rulec: %s: %s\n", c->name, wrong);
		return usage(stderr, EXIT_USAGE);
	}
	return run_files(c, &o, debug, argc - optind - 1, argv + optind + 1);
}
