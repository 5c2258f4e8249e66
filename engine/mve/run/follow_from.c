/*
 * mve follow --from: a replay whose recording comes over a network while it is made.  mve-ship puts
 * it into a folder that nobody else may look into; from there on it is a replay, at the pace at
 * which the leader's recording comes.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/core/must.h"
#include "engine/core/pairs.h"
#include "engine/mve/commands.h"
#include "engine/mve/run/run.h"
#include "engine/mve/run/run_followers.h"
#include "engine/outside/kernel/folder.h"
#include "engine/outside/log/feeder.h"
#include "engine/outside/monitor/say.h"
#include "engine/outside/ship/address.h"
#include "engine/outside/ship/courier.h"
#include "engine/outside/ship/ship.h"
#include "engine/outside/ship/spool.h"
#include "engine/outside/start/start.h"

#define LOOK_MS		20

static const char from_help[] =
	"usage: mve follow --from nats://HOST:PORT/SUBJECT [options] [-- CMD...]\n"
	"\n"
	"Follows the session that mve run --ship sends to the subject, from its beginning\n"
	"on: runs its program, or CMD, on this machine, and compares it call by call.  It\n"
	"ends when the session does; the exit status is 0 where it was equal to the end,\n"
	"1 where it differs.  Where there is no session yet it waits for one.\n"
	"\n"
	"The program, its arguments and its environment are those that the subject names.\n"
	"\n"
	"  -n, --name NAME     the session's name\n"
	"  --tier=patch|trap   as in mve run\n"
	"  --status FILE       write the final status there, as JSON\n"
	COMPARED_HELP
	"                      as in mve run; without --still it may stand for as long\n"
	"                      as nothing comes\n";

static const struct option from_options[] = {
	{ "from", required_argument, NULL, OPT_FROM },
	REPLAY_OPTIONS,
	{ 0 },
};

static int cannot(const char *hint, const char *what, const char *why)
{
	say_error(hint, "cannot follow: %s: %s", what, why);
	return EXIT_SYSTEM;
}

/* The folder, and the process that fills it. */
static int courier_begin(struct courier *c, const char *from)
{
	char path[PATH_MAX];
	int folder, result = spool_name(path, sizeof(path));

	if (result)
		return cannot("XDG_CACHE_HOME names the folder", from, folder_why(-result));
	if (mkdir(path, 0700))
		return cannot(NULL, path, strerror(errno));
	folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	result = folder < 0 ? -errno : courier_open(c, "receive", from, folder);
	if (!result) {
		c->page->drops = 1;
		result = courier_start(c);
	}
	if (!result)
		return 0;
	rmdir(path);
	return cannot(NULL, from, strerror(-result));
}

/* It says what it waits for; false: it has ended. */
static bool courier_look(struct courier *c)
{
	struct pollfd p = { .fd = c->socket, .events = POLLIN };
	int heard = poll(&p, 1, LOOK_MS) > 0 ? courier_hear(c) : 0;

	if (heard > 0 && c->state == SHIP_TRIES)
		say_error("it is waited for; ^C ends that", "cannot follow yet: %s", c->words);
	return heard >= 0 && c->state != SHIP_REFUSED;
}

/* Until the recording's head is there. */
static int head_wait(struct courier *c, struct replay *r)
{
	int code;

	do {
		if (!courier_look(c))
			return cannot(NULL, c->url, c->words);
		code = replay_open_tail(r, c->url, c->folder, &c->page->tail);
	} while (code == REPLAY_COMES);
	return code ? EXIT_SYSTEM : 0;	/* nothing was compared */
}

/* What the courier has said of the end. */
static int ended(struct courier *c, const struct replay *r, int code)
{
	bool refused;

	courier_end(c);
	refused = c->state == SHIP_REFUSED;
	if (code || (r->fed->ended && !refused))
		return code;
	say_error("what came before was equal", "not followed to the end: %s: %s", c->url,
		  refused ? c->words : "its beginning came, and its end did not");
	return EXIT_SYSTEM;
}

/* A program that is not there need not be waited with. */
static int command_look(int argc, char **argv)
{
	char *path = NULL;
	int code = optind < argc ? program_find(argv[optind], &path) : 0;

	free(path);
	return code;
}

static int from_take(struct run_options *o, int argc, char **argv)
{
	struct ship_address address;
	const char *wrong;
	int result = follower_add(o, "same");

	if (!result)
		result = options_take(o, argc, argv, ":hn:", from_options, from_help);
	if (result)
		return result;
	wrong = o->from ? address_parse(&address, o->from) : "no subject is given";
	if (wrong) {
		say_error("for example: mve follow --from nats://localhost:4222/shop",
			  "cannot follow: %s", wrong);
		return EXIT_USE;
	}
	return courier_there() ? command_look(argc, argv) : EXIT_SYSTEM;
}

int cmd_follow_from(int argc, char **argv)
{
	static struct run_options o = { .tier = TIER_PATCH, .role = ROLE_SOLO,
					.when_full = WHEN_FULL_BLOCK, .full_ms = FULL_MS,
					.failover = FAILOVER_OFF, .verdict_ms = VERDICT_MS };
	static struct replay replay;
	static struct courier courier;
	int result = from_take(&o, argc, argv);

	if (result)
		return result == HELPED ? EXIT_OK : result;
	result = courier_begin(&courier, o.from);
	if (result)
		return result;
	result = head_wait(&courier, &replay);
	o.replay = &replay;
	o.argv = replay.program.argv;
	if (optind < argc)
		o.follower[0].argv = argv + optind;
	o.follower[0].command = optind < argc ? "" : "same";
	if (!result)
		result = followers_complete(&o);
	if (result) {
		courier_end(&courier);
		return result;
	}
	return ended(&courier, &replay, monitor_run(&o));
}
