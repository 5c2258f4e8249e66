/*
 * mve replay: a run whose leader is a recording.
 */
#include <stdlib.h>
#include <string.h>

#include "engine/mve/commands.h"
#include "engine/mve/log/log.h"
#include "engine/mve/run/run.h"
#include "engine/mve/run/run_rollback.h"
#include "engine/mve/run/replay_gdb.h"
#include "engine/mve/run/run_followers.h"
#include "engine/mve/show.h"
#include "engine/outside/log/feeder.h"
#include "engine/outside/monitor/say.h"
#include "engine/outside/pack/packed.h"
#include "engine/outside/pack/used.h"

#define STAND_MS	3600000

static const char replay_help[] =
	"usage: mve replay [options] DIR [-- CMD...]\n"
	"\n"
	"Runs the recorded program, or CMD, against what mve run --record has written to\n"
	"DIR, and compares it call by call.  The exit status is 0 where it is equal to\n"
	"the end, 1 where it differs or its sanitizer finds something, 3 where it could\n"
	"not be replayed to the end, as a recording that is cut or damaged has none, or\n"
	"ends before --until; or is another user's.\n"
	"\n"
	"  -n, --name NAME     the session's name\n"
	"  --tier=patch|trap   as in mve run\n"
	"  --until EVENT|TIME  it stands there, for gdb to be attached, until mve go:\n"
	"                      an event by its number in mve log DIR show, a time as\n"
	"                      13:37:00.5 or +90 (seconds from the beginning), or last:\n"
	"                      the last call that is recorded\n"
	"  --from TIME         it begins at the last image before that (--images)\n"
	"  --gdb               gdb, with the replay standing there (or at the first\n"
	"                      event): help mve shows how to go on, and back\n"
	"  --partial           0 also where it is equal up to where it is cut\n"
	"  --status FILE       write the final status there, as JSON\n"
	"  --used FILE         write the paths of files there that it has mapped\n"
	"  --rollback, --reply FILE, --refuse-known\n"
	"                      as mve run --record had them\n"
	COMPARED_HELP
	"                      as in mve run\n";

static const struct option replay_options[] = {
	REPLAY_OPTIONS,
	{ "used", required_argument, NULL, OPT_USED },
	{ "from", required_argument, NULL, OPT_BEGIN },
	{ "until", required_argument, NULL, OPT_UNTIL },
	{ "gdb", no_argument, NULL, OPT_GDB },
	{ "partial", no_argument, NULL, OPT_PARTIAL },
	{ "rollback", no_argument, NULL, OPT_ROLLBACK },
	{ "reply", required_argument, NULL, OPT_REPLY },
	{ "refuse-known", no_argument, NULL, OPT_REFUSE },
	{ 0 },
};

/* Those that each trial of mve bisect may have. */
static const struct option trial_options[] = {
	{ "tier", required_argument, NULL, OPT_TIER },
	{ "help", no_argument, NULL, OPT_HELP },
	COMPARED_OPTIONS,
	{ "from", required_argument, NULL, OPT_BEGIN },
	{ "partial", no_argument, NULL, OPT_PARTIAL },
	{ 0 },
};

int replay_trial_take(int argc, char **argv, const char *help)
{
	static struct run_options o;
	int code = follower_add(&o, "same");

	if (!code)
		code = options_take(&o, argc, argv, ":h", trial_options, help);
	if (!code && optind + 1 < argc) {
		say_error("builds stand behind --", "not understood: %s", argv[optind + 1]);
		code = EXIT_USE;
	}
	return code;
}

static void last_take(void *ctx, const struct told *t)
{
	uint64_t *last = ctx;

	if (t->event->kind == EVENT_CALL && t->number > *last)
		*last = t->number;
}

static void frame_pass(void *ctx, const struct log_frame *f)
{
	(void)ctx;
	(void)f;
}

/* The number of the last call; the recording is read to its end for that. */
static int last_find(struct replay *r)
{
	struct replay again;
	int code = replay_open(&again, r->path);

	if (code)
		return code;
	events_each(&again.frames, last_take, frame_pass, &r->until_event);
	frames_close(&again.frames);
	return 0;
}

static int from_take(struct replay *r, const char *text)
{
	if (!text || log_time(text, r->program.head.began, &r->from_ns))
		return 0;
	say_error("mve log DIR show has times", "not a time: %s", text);
	return EXIT_USE;
}

/* Where it is to stand first. */
static int until_take(struct replay *r, const char *text)
{
	if (!text)
		return 0;
	if (!strcmp(text, "last"))
		return last_find(r);
	if (count_take(text, &r->until_event))
		return 0;
	r->until_event = 0;
	if (log_time(text, r->program.head.began, &r->until_ns))
		return 0;
	say_error("mve log DIR show has numbers and times", "not an event, or a time: %s", text);
	return EXIT_USE;
}

/* Its one follower is what the options are about. */
int cmd_replay(int argc, char **argv)
{
	static struct run_options o = { .tier = TIER_PATCH, .role = ROLE_SOLO,
					.when_full = WHEN_FULL_BLOCK, .full_ms = FULL_MS,
					.still_ms = STILL_MS, .failover = FAILOVER_OFF,
					.verdict_ms = VERDICT_MS };
	static struct replay replay;
	int result = follower_add(&o, "same");

	if (!result)
		result = options_take(&o, argc, argv, ":hn:", replay_options, replay_help);
	if (!result)
		result = rollback_complete(&o);
	if (result)
		return result == HELPED ? EXIT_OK : result;
	if (o.used && (result = used_open(o.used)))
		return result;
	if (optind >= argc) {
		say_error("for example: mve replay DIR", "no recording is given");
		return EXIT_USE;
	}
	result = replay_open(&replay, argv[optind]);
	if (!result)
		result = from_take(&replay, o.begins);
	if (!result)
		result = replay_begins(&replay);
	if (result)
		return result;
	if (optind + 1 < argc)
		result = replay_builds(&replay);
	if (result)
		return result;
	result = until_take(&replay, o.until);
	if (result)
		return result;
	if (o.gdb)
		return replay_gdb(&(struct gdb_want){
			argv[optind], o.until, argv + 1, optind - 1, argv + optind + 1,
			argc - optind - 1 });
	if (o.until)		/* who stands may be looked at for long */
		o.still_ms = STAND_MS;
	result = packed_enter(argv[optind], replay.program.folder);
	if (result)
		return result;
	o.replay = &replay;
	o.argv = replay.program.argv;
	if (optind + 1 < argc)
		o.follower[0].argv = argv + optind + 1;
	o.follower[0].command = optind + 1 < argc ? "" : "same";
	result = followers_complete(&o);
	return result ? result : monitor_run(&o);
}
