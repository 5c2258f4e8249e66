/*
 * mve run, and mve trace, which is a run whose calls are printed.
 */
#include <errno.h>
#include <getopt.h>
#include <stdbool.h>
#include <string.h>

#include "engine/mve/commands.h"
#include "engine/outside/monitor.h"
#include "engine/outside/say.h"

static const char run_help[] =
	"usage: mve run [options] -- CMD...\n"
	"\n"
	"Runs CMD with every system call held.  The exit status is CMD's own.\n"
	"\n"
	"  -n, --name NAME     the session's name (default: made from CMD)\n"
	"  --tier=patch|trap   patch call sites (default), or trap every call:\n"
	"                      slower, for machines that forbid changing code\n"
	"  --audit             count in the kernel too, from the first call on\n"
	"                      (needs CAP_BPF); see mve audit\n"
	"  --status FILE       write the final status there, as JSON\n";

static const char trace_help[] =
	"usage: mve trace [options] -- CMD...\n"
	"\n"
	"Runs CMD and prints each system call as strace -f does.\n"
	"\n"
	"  -o, --output FILE   print there, not to standard error\n"
	"  -n, --name NAME     the session's name\n"
	"  --tier=patch|trap   as in mve run\n";

enum { OPT_TIER = 256, OPT_AUDIT, OPT_STATUS, OPT_HELP };

static const struct option run_options[] = {
	{ "name", required_argument, NULL, 'n' },
	{ "tier", required_argument, NULL, OPT_TIER },
	{ "audit", no_argument, NULL, OPT_AUDIT },
	{ "status", required_argument, NULL, OPT_STATUS },
	{ "help", no_argument, NULL, OPT_HELP },
	{ 0 },
};

static const struct option trace_options[] = {
	{ "name", required_argument, NULL, 'n' },
	{ "output", required_argument, NULL, 'o' },
	{ "tier", required_argument, NULL, OPT_TIER },
	{ "help", no_argument, NULL, OPT_HELP },
	{ 0 },
};

static int tier_take(struct run_options *o, const char *text)
{
	if (!strcmp(text, "patch"))
		o->tier = TIER_PATCH;
	else if (!strcmp(text, "trap"))
		o->tier = TIER_NET;
	else {
		say_error("the tiers are patch and trap", "unknown tier: %s", text);
		return EXIT_USE;
	}
	return 0;
}

static int output_take(struct run_options *o, const char *path)
{
	o->trace = fopen(path, "we");
	if (o->trace)
		return 0;
	say_error("check the folder and its rights", "cannot write the trace: %s: %s", path,
		  strerror(errno));
	return EXIT_SYSTEM;
}

static int option_take(struct run_options *o, int opt, const char *command, char **argv)
{
	switch (opt) {
	case 'n':
		o->name = optarg;
		return 0;
	case 'o':
		return output_take(o, optarg);
	case OPT_TIER:
		return tier_take(o, optarg);
	case OPT_AUDIT:
		o->audit = true;
		return 0;
	case OPT_STATUS:
		o->status_file = optarg;
		return 0;
	default:
		say_error(command[0] == 't' ? "mve trace --help lists the options"
					    : "mve run --help lists the options",
			  opt == ':' ? "option needs a value: %s" : "unknown option: %s",
			  argv[optind - 1]);
		return EXIT_USE;
	}
}

static int run_with(struct run_options *o, int argc, char **argv, const char *shorts,
		    const struct option *longs, const char *help)
{
	int opt, result = 0;

	opterr = 0;
	while (!result && (opt = getopt_long(argc, argv, shorts, longs, NULL)) != -1) {
		if (opt == OPT_HELP) {
			fputs(help, stdout);
			return EXIT_OK;
		}
		result = option_take(o, opt, argv[0], argv);
	}
	if (result)
		return result;
	if (optind >= argc) {
		say_error("for example: mve run -- ./server", "no program is given");
		return EXIT_USE;
	}
	o->argv = argv + optind;
	return monitor_run(o);
}

int cmd_run(int argc, char **argv)
{
	struct run_options o = { .tier = TIER_PATCH, .role = ROLE_SOLO };

	return run_with(&o, argc, argv, "+:n:", run_options, run_help);
}

int cmd_trace(int argc, char **argv)
{
	struct run_options o = { .tier = TIER_PATCH, .role = ROLE_TRACE };

	return run_with(&o, argc, argv, "+:n:o:", trace_options, trace_help);
}
