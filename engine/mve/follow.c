/*
 * mve follow: a follower is added to a session as it runs.
 */
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "engine/mve/commands.h"
#include "engine/mve/show.h"
#include "engine/outside/control/control.h"
#include "engine/outside/monitor/monitor.h"
#include "engine/outside/monitor/say.h"
#include "engine/outside/monitor/wakes.h"
#include "engine/outside/rules/rules_load.h"
#include "engine/outside/start/start.h"

#define LOOK_MS		50
#define WAIT_MS		90000	/* the monitor gives up before */
#define PASSES_S	60	/* for what is against it and passes, without --wait */
#define IDLE_MS		5000	/* without a request nothing more happens */

static const char help[] =
	"usage: mve follow NAME [--name FOLLOWER] [--wait S]\n"
	"       mve follow NAME [--name FOLLOWER] [--again] [--from-start]\n"
	"                  [--rules FILE] [--wait S] -- CMD...\n"
	"       mve follow --from nats://HOST:PORT/SUBJECT [options] [-- CMD...]\n"
	"\n"
	"Adds a follower to the session NAME as it runs, and comes back when it follows,\n"
	"or when it is clear why it cannot.  What passes (a takeover is under way) is\n"
	"waited for.\n"
	"\n"
	"Without CMD it is a twin, a copy of the leader, which may have any state; it\n"
	"says how long the server stood for that.  A place is free: where followers were\n"
	"named (-f) one of them has ended.\n"
	"\n"
	"With CMD it is that program.  The session must have been started with\n"
	"--stateless and --mark: CMD is led through the leader's start and joins where\n"
	"the next request begins; connections that are open then stay the leader's\n"
	"alone.  When it is ready and no request comes, the command comes back, too.\n"
	"\n"
	"With --from it follows a session of another machine; it has options of its own:\n"
	"mve follow --from URL --help.\n"
	"\n"
	"  --from-start        CMD begins where the server began, and meets all that that\n"
	"                      has done since; the session was started with that, too.\n"
	"                      mve status shows how far behind it is\n"
	"  --again             dropped (it found something, was too slow) it is started\n"
	"                      again: soon, and later each time\n"
	"  --rules FILE        expected differences, compiled if need be (rulec)\n"
	"  --wait S            for so many seconds (60); 0: what passes is refused, too\n";

struct wanted {
	const char *name, *rules;
	bool again, from_start;
	long wait_s;
};

/* Another follows already: what it knows, the newcomer does not. */
static bool is_beside(const json_t *status)
{
	json_t *v;
	size_t i;

	json_array_foreach(json_object_get(status, "versions"), i, v)
		if (!strcmp(show_text(v, "role"), "follower"))
			return true;
	return false;
}

static const char *way_words(const json_t *status, const json_t *v)
{
	if (strcmp(show_text(v, "role"), "joining"))
		return "follows";
	if (is_beside(status))
		return "ready: joins at the next request, when what others follow has ended";
	return "ready: joins at the next request";
}

/* 1: it follows, or is ready and nobody asks; 0: not yet; -1: it has ended, in *why. */
static int progress(const json_t *v, unsigned ready_ms, char *why, size_t size)
{
	const char *role = v ? show_text(v, "role") : "ended";

	snprintf(why, size, "%s", v ? show_text(v, "why") : "it is not there");
	if (!strcmp(role, "ended"))
		return -1;
	return !strcmp(role, "follower") || (!strcmp(role, "joining") && ready_ms >= IDLE_MS);
}

static int not_followed(const struct session *s, const char *name, const char *why)
{
	char hint[400];

	snprintf(hint, sizeof(hint), "mve report shows where it differs, if it does; "
				     "%s/%s.log has what it wrote", s->folder, name);
	say_error(hint, "cannot follow: %s: %s", name, why);
	return EXIT_NO;
}

static int wait_for(const struct session *s, const char *name)
{
	struct timespec look = { 0, LOOK_MS * 1000000L };
	uint64_t begin = now_ms(), now, ready_ms = 0;
	char why[WHY_MAX];

	for (now = begin; now < begin + WAIT_MS; now = now_ms()) {
		json_t *status = control_ask(s, "status");
		const json_t *v = show_version(status, "name", name);
		uint64_t idle_ms = ready_ms ? now - ready_ms : 0;
		int way = status ? progress(v, idle_ms, why, sizeof(why)) : -1;
		bool ready = v && !strcmp(show_text(v, "role"), "joining");

		if (way > 0)
			printf("%s: %s\n", name, way_words(status, v));
		json_decref(status);
		if (way > 0)
			return EXIT_OK;
		if (way < 0)
			return not_followed(s, name, status ? why : "the session is gone");
		if (!ready || !ready_ms)
			ready_ms = ready ? now : 0;
		nanosleep(&look, NULL);
	}
	say_error("mve status shows it", "no word of the follower: %s", name);
	return EXIT_NO;
}

/* What came of it, and that it follows. */
static int follows(const struct session *s, json_t *reply)
{
	const char *name = reply ? json_string_value(json_object_get(reply, "follower")) : NULL;
	const json_t *stood = json_object_get(reply, "stood_us");
	int code;

	if (!name)
		return show_done(reply, "follow", s->name);
	if (stood)
		printf("%s: a twin; the server stood for %.1f ms\n", name,
		       (double)json_integer_value(stood) / 1000);
	code = wait_for(s, name);
	json_decref(reply);
	return code;
}

static int follow_twin(const struct session *s, const struct wanted *want)
{
	if (want->rules || want->again || want->from_start) {
		say_error("give the program behind --, or leave them out",
			  "a twin takes no --rules, --again, --from-start: %s", s->name);
		return EXIT_USE;
	}
	return follows(s, show_asked(s, json_pack("{s:s, s:s*}", "do", "twin", "name",
						  want->name), -1, want->wait_s));
}

static int follow(const struct session *s, const struct wanted *want, char *const argv[])
{
	json_t *words, *reply;
	char *found, *path;
	int object = -1, code = program_find(argv[0], &found);

	code = code ? code : program_follows(found, NULL);
	if (!code && want->rules)
		code = rules_compile(want->rules, &object);
	if (code)
		return code;
	path = realpath(found, NULL);
	words = json_array();
	for (size_t i = 0; argv[i]; i++)
		json_array_append_new(words, json_string(argv[i]));
	reply = show_asked(s, json_pack("{s:s, s:s, s:o, s:b, s:b, s:s*}", "do", "follow", "path",
				   path ? path : found, "argv", words, "again", want->again,
				   "from_start", want->from_start, "name", want->name),
		      object, want->wait_s);
	if (object >= 0)
		close(object);
	return follows(s, reply);
}

/* `fmt` has a %s for the option, or for what it was given. */
static int option_wrong(const char *fmt, const char *text)
{
	say_error("mve follow --help lists the options", fmt, text);
	return -EXIT_USE;
}

/* Behind the name; where the command begins, or an exit code as a negative number. */
static int options_take(int argc, char **argv, struct wanted *want)
{
	static const struct option options[] = {
		{ "name", required_argument, NULL, 'n' }, { "again", no_argument, NULL, 'a' },
		{ "rules", required_argument, NULL, 'r' }, { "from-start", no_argument, NULL, 's' },
		{ "wait", required_argument, NULL, 'w' }, { 0 },
	};
	int opt;

	opterr = 0;
	while ((opt = getopt_long(argc, argv, "+:", options, NULL)) != -1) {
		if (value_forgotten(argv))
			return option_wrong("option needs a value: %s", argv[optind - 2]);
		if (opt == 'a') {
			want->again = true;
			continue;
		}
		if (opt == 's') {
			want->from_start = true;
			continue;
		}
		if (opt == 'r') {
			want->rules = optarg;
			continue;
		}
		if (opt == 'w' && seconds_take(optarg, &want->wait_s))
			continue;
		if (opt == 'w')
			return option_wrong("not a number of seconds: %s", optarg);
		if (opt == ':')
			return option_wrong("option needs a value: %s", argv[optind - 1]);
		if (opt != 'n')
			return option_wrong("unknown option: %s", argv[optind - 1]);
		want->name = optarg;
	}
	return optind;
}

static int follow_session(int argc, char **argv)
{
	struct look l = look_take(argc < 2 ? argc : 2, argv, "n", help);
	struct wanted want = { .wait_s = PASSES_S };
	struct session s;
	int at;

	if (l.code || !l.name)
		return l.code;
	at = options_take(argc - 1, argv + 1, &want);
	if (at < 0)
		return -at;
	l.code = look_session(&l, &s);
	if (l.code)
		return l.code;
	return at + 1 < argc ? follow(&s, &want, argv + 1 + at) : follow_twin(&s, &want);
}

/* Before the program's own words. */
static bool is_from(char **argv)
{
	for (; *argv && strcmp(*argv, "--"); argv++)
		if (!strncmp(*argv, "--from", 6) && (!(*argv)[6] || (*argv)[6] == '='))
			return true;
	return false;
}

int cmd_follow(int argc, char **argv)
{
	if (is_from(argv))
		return cmd_follow_from(argc, argv);
	return follow_session(argc, argv);
}
