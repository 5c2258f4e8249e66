/*
 * mve log: what is in a recording.
 */
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "engine/abi/table.h"
#include "engine/mve/commands.h"
#include "engine/mve/log/log.h"
#include "engine/mve/show.h"
#include "engine/outside/log/feeder.h"
#include "engine/outside/monitor/say.h"

static const char help[] =
	"usage: mve log DIR [show|verify] [options]\n"
	"\n"
	"What is in a recording of mve run --record: when and of what it was made, how\n"
	"many processes, connections and calls.\n"
	"\n"
	"  show                the calls, as mve trace prints them\n"
	"    --call NAME         only these\n"
	"    --pid N             only of this process or thread\n"
	"  verify              every frame is looked at; exit status 1: it is cut or\n"
	"                      damaged\n"
	"  --json              as JSON (not with show)\n";

enum { OPT_JSON = 256, OPT_CALL, OPT_PID, OPT_HELP };

static const struct option options[] = {
	{ "json", no_argument, NULL, OPT_JSON },
	{ "call", required_argument, NULL, OPT_CALL },
	{ "pid", required_argument, NULL, OPT_PID },
	{ "help", no_argument, NULL, OPT_HELP },
	{ 0 },
};

static const struct verb {
	const char *name;
	int (*run)(const struct log_want *w, struct frames *f);
} verbs[] = { { "", log_sum }, { "show", log_show }, { "verify", log_verify } };

static int wrong(const char *what, const char *text)
{
	say_error("mve log --help lists them", "%s: %s", what, text);
	return EXIT_USE;
}

static int option_take(struct log_want *w, int opt, char **argv)
{
	char *end;

	if (opt == OPT_JSON) {
		w->json = true;
	} else if (opt == OPT_CALL) {
		w->call = optarg;
		if (call_number(optarg) < 0)
			return wrong("no such call", optarg);
	} else if (opt == OPT_PID) {
		w->pid = strtol(optarg, &end, 10);
		if (*end || w->pid <= 0)
			return wrong("not a process", optarg);
	} else {
		return wrong(opt == ':' ? "option needs a value" : "unknown option",
			     argv[optind - 1]);
	}
	return 0;
}

static const struct verb *verb_find(const char *name)
{
	for (size_t i = 0; i < sizeof(verbs) / sizeof(verbs[0]); i++)
		if (!strcmp(name, verbs[i].name))
			return &verbs[i];
	return NULL;
}

int cmd_log(int argc, char **argv)
{
	struct log_want w = { 0 };
	const struct verb *verb;
	struct replay r;
	int opt, result;

	opterr = 0;
	while ((opt = getopt_long(argc, argv, ":h", options, NULL)) != -1) {
		if (opt == OPT_HELP || opt == 'h') {
			fputs(help, stdout);
			return EXIT_OK;
		}
		result = option_take(&w, opt, argv);
		if (result)
			return result;
	}
	if (optind == argc || argc - optind > 2)
		return wrong(optind == argc ? "no recording is given" : "too many words",
			     argv[argc - 1]);
	verb = verb_find(optind + 1 < argc ? argv[optind + 1] : "");
	if (!verb)
		return wrong("nothing to do with a recording", argv[optind + 1]);
	w.path = argv[optind];
	result = replay_open(&r, w.path);
	if (result)
		return result;
	w.program = r.program;
	result = verb->run(&w, &r.frames);
	frames_close(&r.frames);
	return result;
}
