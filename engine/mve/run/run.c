/*
 * mve run, and mve trace, which is a run whose calls are printed.
 */
#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/mve/commands.h"
#include "engine/mve/run/run.h"
#include "engine/mve/run/run_followers.h"
#include "engine/mve/run/run_record.h"
#include "engine/mve/run/run_rollback.h"
#include "engine/mve/run/run_sample.h"
#include "engine/mve/run/run_ship.h"
#include "engine/mve/run/values.h"
#include "engine/mve/show.h"
#include "engine/outside/monitor/monitor.h"
#include "engine/outside/monitor/say.h"
#include "engine/outside/session/outlet.h"

static const char run_help[] =
	"usage: mve run [options] [-f 'CMD...' [its options]]... -- CMD...\n"
	"\n"
	"Runs CMD with every system call held.  The exit status is CMD's own.  Each -f\n"
	"is a follower: a version that gets the same input and is compared.\n"
	"\n"
	"  -n, --name NAME     the session's name (default: made from CMD)\n"
	"  --tier=patch|trap   patch call sites (default), or trap every call:\n"
	"                      slower, for machines that forbid changing code\n"
	"  --audit             count in the kernel too, from the first call on\n"
	"                      (needs CAP_BPF); see mve audit\n"
	"  --status FILE       write the final status there, as JSON\n"
	"\n"
	"  -f, --follow 'CMD'  a follower's command, split as a shell does; `same` is\n"
	"                      the leader's own.  What stands behind it, up to the\n"
	"                      next -f, is about it:\n"
	"    --name NAME         (default: f1, f2, ...)\n"
	"    --strict            no query of its own, none left out\n"
	"    --on-divergence stop|ignore|alarm:CMD|promote|retry[:TIMES[/MS]]\n"
	"    --on-finding CMD    what is run for each new finding of its sanitizer\n"
	"    --again             dropped, it is started again (needs --stateless\n"
	"                        and --mark)\n"
	"    --rules FILE        expected differences, compiled if need be (rulec)\n"
	"    --older             it is the older version: rules marked @new hold\n"
	"    --release V         what @leader and @follower of rules call it; before\n"
	"                        the first -f: the leader\n"
	"    --map FROM=TO       the leader's paths under FROM are TO here\n"
	"\n"
	"  --record DIR        the streams are written down there, for mve replay\n"
	"  --sync none|second|call  what of it a machine that fails may lose: what the\n"
	"                      kernel has not written (default), the last second or so,\n"
	"                      or only what was not yet given to the kernel\n"
	"  --compress LEVEL    it is compressed, by zstd: 1 (a fifth or less, for little\n"
	"                      work of another processor) to 19\n"
	"  --max-size SIZE     no more than that (at least 32M), or no more than so long\n"
	"  --max-age TIME      (30s, 10m, 2h, 7d); then --keep says\n"
	"  --keep first|last   it ends (default), or its oldest parts are dropped: what\n"
	"                      is left can be looked at (mve log) and not replayed,\n"
	"  --images TIME       but from images of the server, one each time (10m)\n"
	"  --ship nats://HOST:PORT/SUBJECT  the same goes to a stream of NATS, for mve\n"
	"                      follow --from on another machine (docs/shipping.md)\n"
	"  --spool SIZE        so much of it may wait on disk for NATS (1G); then the\n"
	"                      shipping ends, and the session goes on\n"
	"\n"
	"  --mark CALL|FUNCTION|/PATH  a request begins before such a call (accept,\n"
	"                      epoll_wait, ...), where this function of the program is\n"
	"                      entered, or where the program opens this path, which then\n"
	"                      is not found; may be given several times. With --rollback:\n"
	"                      by such a call (read, recvfrom, ...), on any descriptor\n"
	"  --stateless         no connection changes what another gets: a follower may\n"
	"                      miss some\n"
	"  --sample WHICH      connections that followers are told of: 10% (one in ten),\n"
	"                      conn:10% (always the same peers), window:10%/32768 (those\n"
	"                      accepted in the first tenth of so many calls), or auto (as\n"
	"                      many as they can take, and as cost the leader at most 3%\n"
	"                      of its time; auto:10%: a tenth); needs --stateless\n"
	"  --ring SIZE         memory of the stream (64M; at least 1M)\n"
	"  --when-full WHAT    a follower that is a ring behind reads on from disk\n"
	"                      (spill; spill-block: block where that is full), is\n"
	"                      dropped (drop), or the server waits for it (block).\n"
	"                      Where nothing is said: spill, up to 1G and an eighth of\n"
	"                      what is free, or drop, where there is no disk for it\n"
	"  --from-start        all that it tells is kept, on disk (spill): a program can\n"
	"                      begin where it began (mve follow --from-start)\n"
	"  --one-at-a-time     of each process one thread works at a time: so threads\n"
	"                      that agree without locks and calls can be followed\n"
	"  --log-max SIZE      so much of the stream is on disk, at most (4G)\n"
	"  --full-ms N         how long it is waited for before it is dropped (100)\n"
	"  --failover crash|error|off  a follower takes over when the leader dies of\n"
	"                      a signal (default), or exits with an error, too\n"
	"  --hang MS           ... or runs so long without a call\n"
	"  --still MS          a follower that sleeps so long in front of what it should\n"
	"                      read is dropped (10000)\n"
	"  --verdict-ms N      a difference is no verdict yet: if the leader crashes in\n"
	"                      this time it never is one (200)\n"
	"  --rewind TIMES      a difference is met so often before it is one: a follower\n"
	"                      keeps an image of itself, and goes back to it (8; 0: off)\n"
	"  --spare N           so many twins of the server are kept, ready to lead: one\n"
	"                      that does, or is lost, is replaced (docs/spares.md)\n"
	"  --rollback          a request in which the program dies is taken back, and its\n"
	"                      connection alone is closed: for programs that mve-cc has\n"
	"                      built (docs/checkpoints.md)\n"
	"  --reply FILE        such a connection gets these bytes before it is closed\n"
	"  --refuse-known      the same bytes again are refused without being tried\n";

static const char trace_help[] =
	"usage: mve trace [options] -- CMD...\n"
	"\n"
	"Runs CMD and prints each system call as strace -f does.\n"
	"\n"
	"  -o, --output FILE   print there, not to standard error\n"
	"  -n, --name NAME     the session's name\n"
	"  --tier=patch|trap   as in mve run\n";

static const struct option run_options[] = {
	{ "name", required_argument, NULL, OPT_NAME },
	{ "tier", required_argument, NULL, OPT_TIER },
	{ "audit", no_argument, NULL, OPT_AUDIT },
	{ "status", required_argument, NULL, OPT_STATUS },
	{ "help", no_argument, NULL, OPT_HELP },
	{ "follow", required_argument, NULL, 'f' },
	COMPARED_OPTIONS,
	{ "ring", required_argument, NULL, OPT_RING },
	{ "when-full", required_argument, NULL, OPT_WHEN_FULL },
	{ "from-start", no_argument, NULL, OPT_FROM_START },
	{ "one-at-a-time", no_argument, NULL, OPT_ONE },
	{ "log-max", required_argument, NULL, OPT_LOG_MAX },
	{ "full-ms", required_argument, NULL, OPT_FULL_MS },
	{ "failover", required_argument, NULL, OPT_FAILOVER },
	{ "hang", required_argument, NULL, OPT_HANG },
	{ "verdict-ms", required_argument, NULL, OPT_VERDICT_MS },
	{ "spare", required_argument, NULL, OPT_SPARE },
	{ "rollback", no_argument, NULL, OPT_ROLLBACK },
	{ "reply", required_argument, NULL, OPT_REPLY },
	{ "refuse-known", no_argument, NULL, OPT_REFUSE },
	{ "mark", required_argument, NULL, OPT_MARK },
	{ "stateless", no_argument, NULL, OPT_STATELESS },
	{ "sample", required_argument, NULL, OPT_SAMPLE },
	{ "again", no_argument, NULL, OPT_AGAIN },
	{ "record", required_argument, NULL, OPT_RECORD },
	{ "sync", required_argument, NULL, OPT_SYNC },
	{ "compress", required_argument, NULL, OPT_COMPRESS },
	{ "max-size", required_argument, NULL, OPT_MAX_SIZE },
	{ "max-age", required_argument, NULL, OPT_MAX_AGE },
	{ "keep", required_argument, NULL, OPT_KEEP },
	{ "images", required_argument, NULL, OPT_IMAGES },
	{ "ship", required_argument, NULL, OPT_SHIP },
	{ "spool", required_argument, NULL, OPT_SPOOL },
	{ 0 },
};

static const struct option trace_options[] = {
	{ "name", required_argument, NULL, OPT_NAME },
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
	o->trace_fd = outlet_create(path);
	if (o->trace_fd >= 0)
		return 0;
	say_error("check the folder and its rights", "cannot write the trace: %s: %s", path,
		  strerror(-o->trace_fd));
	return EXIT_SYSTEM;
}

/* It is written at the end, which may be weeks away: what is against it is said now. */
static int status_take(struct run_options *o, const char *path)
{
	const char *slash = strrchr(path, '/');
	char folder[PATH_MAX];
	struct stat is;
	bool there;

	o->status_file = path;
	snprintf(folder, sizeof(folder), "%.*s", slash ? (int)(slash + 1 - path) : 1,
		 slash ? path : ".");
	there = stat(path, &is) == 0;
	errno = EISDIR;
	if (!(there && S_ISDIR(is.st_mode)) && access(there ? path : folder, W_OK) == 0)
		return 0;
	say_error("check the folder and its rights", "cannot write the status: %s: %s", path,
		  strerror(errno));
	return EXIT_SYSTEM;
}

static int when_full_take(struct run_options *o, const char *text)
{
	static const char *const words[] = { "drop", "block", "spill", "spill-block" };
	static const enum when_full then[] = { WHEN_FULL_DROP, WHEN_FULL_BLOCK, WHEN_FULL_DROP,
					       WHEN_FULL_BLOCK };
	int n = word_take("when-full", text, words, 4);

	if (n < 0)
		return EXIT_USE;
	o->when_full = then[n];
	o->spill = n >= 2 ? SPILL_MUST : SPILL_NOT;
	return 0;
}

static int failover_take(struct run_options *o, const char *text)
{
	static const char *const words[] = { [FAILOVER_CRASH] = "crash",
					     [FAILOVER_ERROR] = "error", [FAILOVER_OFF] = "off" };
	int n = word_take("failover", text, words, 3);

	o->failover = n < 0 ? FAILOVER_OFF : (enum failover)n;
	return n < 0 ? EXIT_USE : 0;
}

static int ring_take(struct run_options *o, const char *text)
{
	int64_t n = size_take("ring", text, RING_LEAST, (int64_t)RING_CHUNKS_MAX * CHUNK_SIZE,
			      "bytes; or a number with K, M or G behind it");

	o->ring_bytes = n < 0 ? RING_DEFAULT : (uint64_t)n;
	return n < 0 ? EXIT_USE : 0;
}

static int log_max_take(struct run_options *o, const char *text)
{
	int64_t n = size_take("log-max", text, RING_LEAST, (int64_t)CHUNKS_MAX * CHUNK_SIZE -
			      (int64_t)RING_CHUNKS_MAX * CHUNK_SIZE,
			      "bytes; or a number with K, M or G behind it");

	o->log_max = n < 0 ? 0 : (uint64_t)n;
	return n < 0 ? EXIT_USE : 0;
}

static int ms_take(const char *option, const char *text, uint32_t *to)
{
	int64_t n = size_take(option, text, 1, 3600000, "milliseconds: a number");

	*to = n < 0 ? 0 : (uint32_t)n;
	return n < 0 ? EXIT_USE : 0;
}

static int rewind_take(struct run_options *o, const char *text)
{
	int64_t n = size_take("rewind", text, 0, REWIND_MOST, "how often: a number");

	o->rewind = n < 0 ? 0 : (uint32_t)n;
	return n < 0 ? EXIT_USE : 0;
}

static int spare_take(struct run_options *o, const char *text)
{
	int64_t n = size_take("spare", text, 0, SPARES_MOST, "how many twins: a number");

	o->spares = n < 0 ? 0 : (uint32_t)n;
	return n < 0 ? EXIT_USE : 0;
}

static int option_wrong(const char *command, int opt, const char *text)
{
	char hint[80];

	snprintf(hint, sizeof(hint), "mve %s%s --help lists the options", command,
		 strcmp(command, "follow") ? "" : " --from URL");
	say_error(hint, opt == ':' ? "option needs a value: %s" : "unknown option: %s", text);
	return EXIT_USE;
}

/* By --name: whoever has said -n before means a follower. */
static int session_name(struct run_options *o, const char *name)
{
	if (o->name) {
		say_error("a follower's --name stands behind its -f",
			  "the session has two names: %s, %s", o->name, name);
		return EXIT_USE;
	}
	o->name = name;
	return 0;
}

/* How much of what is told is kept, and where; what then. */
static int stream_option(struct run_options *o, int opt)
{
	switch (opt) {
	case OPT_RING:
		return ring_take(o, optarg);
	case OPT_LOG_MAX:
		return log_max_take(o, optarg);
	case OPT_WHEN_FULL:
		return when_full_take(o, optarg);
	case OPT_FULL_MS:
		return ms_take("full-ms", optarg, &o->full_ms);
	case OPT_ONE:
		o->one_at_a_time = true;
		return 0;
	default:
		o->from_start = true;
		return 0;
	}
}

static int record_option(struct run_options *o, int opt, const char *command, char **argv)
{
	switch (opt) {
	case OPT_RECORD:
		o->record = optarg;
		return 0;
	case OPT_SYNC:
		return sync_take(o, optarg);
	case OPT_COMPRESS:
		return compress_take(o, optarg);
	case OPT_MAX_SIZE:
		return max_size_take(o, optarg);
	case OPT_MAX_AGE:
		return max_age_take(o, optarg);
	case OPT_IMAGES:
		return images_take(o, optarg);
	case OPT_KEEP:
		return keep_take(o, optarg);
	case OPT_SHIP:
	case OPT_SPOOL:
	case OPT_FROM:
		return ship_take(o, opt, optarg);
	default:
		return option_wrong(command, opt, argv[optind - 1]);
	}
}

static int session_option(struct run_options *o, int opt, const char *command, char **argv)
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
		return status_take(o, optarg);
	case OPT_RING:
	case OPT_FROM_START:
	case OPT_ONE:
	case OPT_LOG_MAX:
	case OPT_WHEN_FULL:
	case OPT_FULL_MS:
		return stream_option(o, opt);
	case OPT_FAILOVER:
		return failover_take(o, optarg);
	case OPT_HANG:
		return ms_take("hang", optarg, &o->hang_ms);
	case OPT_STILL:
		return ms_take("still", optarg, &o->still_ms);
	case OPT_VERDICT_MS:
		return ms_take("verdict-ms", optarg, &o->verdict_ms);
	case OPT_REWIND:
		return rewind_take(o, optarg);
	case OPT_SPARE:
		return spare_take(o, optarg);
	case OPT_ROLLBACK:
		o->rollback = true;
		return 0;
	case OPT_REPLY:
		return reply_take(o, optarg);
	case OPT_REFUSE:
		o->refuse_known = true;
		return 0;
	case OPT_MARK:
		return mark_take(o, optarg);
	case OPT_USED:
		o->used = optarg;
		return 0;
	case OPT_GDB:
		o->gdb = true;
		return 0;
	case OPT_PARTIAL:
		o->partial = true;
		return 0;
	case OPT_BEGIN:
		o->begins = optarg;
		return 0;
	case OPT_UNTIL:
		o->until = optarg;
		return 0;
	case OPT_STATELESS:
		o->sampling.stateless = 1;
		return 0;
	case OPT_SAMPLE:
		return sample_take(o, optarg);
	default:
		return record_option(o, opt, command, argv);
	}
}

static int option_take(struct run_options *o, int opt, const char *command, char **argv)
{
	switch (opt) {
	case 'f':
		return follower_add(o, optarg);
	case OPT_NAME:
		return o->followers ? follower_name(o, optarg) : session_name(o, optarg);
	case OPT_STRICT:
		return follower_strict(o);
	case OPT_AGAIN:
		return follower_again(o);
	case OPT_POLICY:
		return follower_policy(o, optarg);
	case OPT_ON_FINDING:
		return follower_on_finding(o, optarg);
	case OPT_RULES:
		return follower_rules(o, optarg);
	case OPT_OLDER:
		return follower_older(o);
	case OPT_RELEASE:
		return follower_release(o, optarg);
	case OPT_MAP:
		return follower_map(o, optarg);
	default:
		return session_option(o, opt, command, argv);
	}
}

static int spill_complete(struct run_options *o)
{
	if (o->from_start && o->sampling.stateless) {
		say_error("a program of its own can follow that late (mve follow)",
			  "--from-start with --stateless: what it told at first is kept anyhow");
		return EXIT_USE;
	}
	if (o->from_start || (o->log_max && o->spill == SPILL_MAY))
		o->spill = SPILL_MUST;
	if (o->log_max && o->spill == SPILL_NOT) {
		say_error("it says how much of the stream may be on disk (--when-full spill)",
			  "--log-max with --when-full drop or block");
		return EXIT_USE;
	}
	if (o->spill == SPILL_MUST && !o->log_max)
		o->log_max = LOG_MAX_DEFAULT;
	return 0;
}

int options_take(struct run_options *o, int argc, char **argv, const char *shorts,
		 const struct option *longs, const char *help)
{
	int opt, result = 0;

	opterr = 0;
	while (!result && (opt = getopt_long(argc, argv, shorts, longs, NULL)) != -1) {
		if (value_forgotten(argv))
			return option_wrong(argv[0], ':', argv[optind - 2]);
		if (opt == OPT_HELP || opt == 'h') {
			fputs(help, stdout);
			return HELPED;
		}
		result = option_take(o, opt, argv[0], argv);
	}
	return result;
}

static int run_with(struct run_options *o, int argc, char **argv, const char *shorts,
		    const struct option *longs, const char *help)
{
	int result = options_take(o, argc, argv, shorts, longs, help);

	if (result)
		return result == HELPED ? EXIT_OK : result;
	if (optind >= argc) {
		say_error(argv[0][0] == 't' ? "for example: mve trace -- ./server"
					    : "for example: mve run -- ./server",
			  "no program is given");
		return EXIT_USE;
	}
	o->argv = argv + optind;
	result = followers_complete(o);
	if (!result)
		result = rollback_complete(o);
	if (!result)
		result = marks_complete(o);
	if (!result)
		result = ship_complete(o);
	if (!result)
		result = record_complete(o);
	if (!result)
		result = spill_complete(o);
	return result ? result : monitor_run(o);
}

int cmd_run(int argc, char **argv)
{
	static struct run_options o = SERVER_OPTIONS;

	return run_with(&o, argc, argv, "+:hn:f:", run_options, run_help);
}

int cmd_trace(int argc, char **argv)
{
	static struct run_options o = { .tier = TIER_PATCH, .role = ROLE_TRACE,
					.trace_fd = -1 };

	return run_with(&o, argc, argv, "+:hn:o:", trace_options, trace_help);
}
