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
	"usage: mve log DIR [show|connections|export|verify|pack]\n"
	"               [options]\n"
	"\n"
	"What is in a recording of mve run --record: when and of what it was made, how\n"
	"many processes, connections and calls.\n"
	"\n"
	"  show                the calls, as mve trace prints them, behind their number,\n"
	"                      thread and time\n"
	"    --call NAME         only these\n"
	"    --event N           only this one, by its number\n"
	"    --after N, --before N  only those with larger, or smaller, numbers\n"
	"  connections         who talked to the server, or it to whom: how long, and\n"
	"                      how many bytes\n"
	"  export --pcap FILE  what they said, as packets for Wireshark and its like;\n"
	"                      they are made up, what is in them is not\n"
	"    --conn N            of show and export: only this connection, by its number\n"
	"    --pid N             only of this process, or (show) this thread\n"
	"    --from T, --to T    from then on, before then: 13:37:00.5, or +90 (seconds\n"
	"                        from the beginning)\n"
	"  verify              every frame is looked at, and every file that is packed;\n"
	"                      exit status 1: it is cut or damaged\n"
	"  pack                the programs, libraries and mapped files that a replay\n"
	"                      needs are put in; it is replayed once for that; what\n"
	"                      is packed stays\n"
	"  --json              as JSON; show: an object in each line\n";

enum { OPT_JSON = 256, OPT_CALL, OPT_PID, OPT_CONN, OPT_FROM, OPT_TO, OPT_EVENT, OPT_AFTER,
       OPT_BEFORE, OPT_PCAP, OPT_HELP };

static const struct option options[] = {
	{ "json", no_argument, NULL, OPT_JSON },
	{ "call", required_argument, NULL, OPT_CALL },
	{ "pid", required_argument, NULL, OPT_PID },
	{ "conn", required_argument, NULL, OPT_CONN },
	{ "from", required_argument, NULL, OPT_FROM },
	{ "to", required_argument, NULL, OPT_TO },
	{ "event", required_argument, NULL, OPT_EVENT },
	{ "after", required_argument, NULL, OPT_AFTER },
	{ "before", required_argument, NULL, OPT_BEFORE },
	{ "pcap", required_argument, NULL, OPT_PCAP },
	{ "help", no_argument, NULL, OPT_HELP },
	{ 0 },
};

#define BIT(opt)	(1u << ((opt) - OPT_JSON))
#define PART		(BIT(OPT_JSON) | BIT(OPT_PID) | BIT(OPT_CONN) | BIT(OPT_FROM) | BIT(OPT_TO))

static const struct verb {
	const char *name;
	int (*run)(const struct log_want *w, struct frames *f);
	unsigned takes;		/* BIT() of options */
} verbs[] = {
	{ "", log_sum, BIT(OPT_JSON) },
	{ "show", log_show, PART | BIT(OPT_CALL) | BIT(OPT_EVENT) | BIT(OPT_AFTER) |
			    BIT(OPT_BEFORE) },
	{ "connections", log_conns, PART },
	{ "export", log_export, PART | BIT(OPT_PCAP) },
	{ "verify", log_verify, BIT(OPT_JSON) },
	{ "pack", log_pack, BIT(OPT_JSON) },
};

static int wrong(const char *what, const char *text)
{
	say_error("mve log --help lists them", "%s: %s", what, text);
	return EXIT_USE;
}

static int option_take(struct log_want *w, int opt, char **argv)
{
	uint64_t pid;

	switch (opt) {
	case OPT_JSON:
		w->json = true;
		return 0;
	case OPT_CALL:
		w->call = optarg;
		return call_number(optarg) < 0 ? wrong("no such call", optarg) : 0;
	case OPT_PID:
		if (!count_take(optarg, &pid))
			return wrong("not a process", optarg);
		w->pid = (long)pid;
		return 0;
	case OPT_CONN:
		return count_take(optarg, &w->conn) ? 0 : wrong("not a connection", optarg);
	case OPT_EVENT:
		return count_take(optarg, &w->event) ? 0 : wrong("not an event", optarg);
	case OPT_AFTER:
		return count_take(optarg, &w->after) ? 0 : wrong("not an event", optarg);
	case OPT_BEFORE:
		return count_take(optarg, &w->before) ? 0 : wrong("not an event", optarg);
	case OPT_FROM:
		w->from = optarg;
		return 0;
	case OPT_TO:
		w->to = optarg;
		return 0;
	case OPT_PCAP:
		w->pcap = optarg;
		return 0;
	default:
		return wrong(opt == ':' ? "option needs a value" : "unknown option",
			     argv[optind - 1]);
	}
}

/* Each option is one of what is to be done. */
static int verb_takes(const struct verb *verb, unsigned given)
{
	const struct option *o = options;

	while (o->name && !(given & ~verb->takes & BIT(o->val)))
		o++;
	if (!o->name)
		return 0;
	say_error("mve log --help lists them", "not an option of mve log DIR%s%s: --%s",
		  verb->name[0] ? " " : "", verb->name, o->name);
	return EXIT_USE;
}

/* What a time means is known once it is known when the recording began. */
static int times_take(struct log_want *w)
{
	w->to_ns = UINT64_MAX;
	if (w->from && !log_time(w->from, w->program.head.began, &w->from_ns))
		return wrong("not a time", w->from);
	if (w->to && !log_time(w->to, w->program.head.began, &w->to_ns))
		return wrong("not a time", w->to);
	return 0;
}

static const struct verb *verb_find(const char *name)
{
	for (size_t i = 0; i < sizeof(verbs) / sizeof(verbs[0]); i++)
		if (!strcmp(name, verbs[i].name))
			return &verbs[i];
	return NULL;
}

bool log_has(const struct log_want *w, uint64_t events, uint64_t conns)
{
	if (w->event > events)
		say_error("mve log DIR show has their numbers", "no such event: %lu",
			  (unsigned long)w->event);
	else if (w->conn > conns)
		say_error("mve log DIR connections has their numbers", "no such connection: %lu",
			  (unsigned long)w->conn);
	return w->event <= events && w->conn <= conns;
}

int cmd_log(int argc, char **argv)
{
	struct log_want w = { 0 };
	const struct verb *verb;
	struct replay r;
	unsigned given = 0;
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
		given |= BIT(opt);
	}
	if (optind == argc || argc - optind > 2)
		return wrong(optind == argc ? "no recording is given" : "too many words",
			     argv[argc - 1]);
	verb = verb_find(optind + 1 < argc ? argv[optind + 1] : "");
	if (!verb)
		return wrong("nothing to do with a recording", argv[optind + 1]);
	w.path = argv[optind];
	result = verb_takes(verb, given);
	if (!result)
		result = replay_open(&r, w.path);
	if (result)	/* who looks is told that it is damaged */
		return result == EXIT_SYSTEM ? EXIT_NO : result;
	w.program = r.program;
	result = times_take(&w);
	if (!result)
		result = verb->run(&w, &r.frames);
	frames_close(&r.frames);
	return result;
}
