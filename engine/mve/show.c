/*
 * Options and sessions, for the commands that look at one.
 */
#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "engine/mve/show.h"
#include "engine/outside/control/control.h"
#include "engine/outside/kernel/folder.h"
#include "engine/outside/monitor/say.h"
#include "engine/outside/monitor/wakes.h"

#define ASK_MS		50
#define ASK_MOST_MS	800
#define UNTIL_MS	60000	/* a takeover ends before, one way or the other */
#define UNTIL_LOOK_MS	10

/* A seconds' value in ms; false: not one from 100 to 3600000. */
static bool interval_take(struct look *l, const char *text)
{
	char *end;
	double s = strtod(text, &end);

	l->interval_ms = s >= 0.1 && s <= 3600 ? (long)(s * 1000) : 0;
	return l->interval_ms && !*end;
}

/* The value of --NAME=VALUE or --NAME VALUE; NULL: it is another option. */
static const char *value_of(const char *arg, const char *name, const char *next, int *used)
{
	size_t n = strlen(name);

	if (strncmp(arg, name, n))
		return NULL;
	if (arg[n] == '=')
		return arg + n + 1;
	*used = 2;
	return arg[n] ? NULL : next;
}

bool value_forgotten(char *const *argv)
{
	return optarg && optarg == argv[optind - 1] && !strcmp(optarg, "--");
}

bool count_take(const char *text, uint64_t *n)
{
	char *end;

	*n = strtoull(text, &end, 10);
	return text[0] >= '0' && text[0] <= '9' && !*end && *n && *n < INT64_MAX;
}

bool seconds_take(const char *text, long *seconds)
{
	char *end;

	*seconds = strtol(text, &end, 10);
	return *text >= '0' && *text <= '9' && !*end && *seconds <= 3600;
}

static bool flag_take(struct look *l, const char *arg, const char *allowed, const char *next,
		      int *used)
{
	const char *value;

	if (!strcmp(arg, "--json") && strchr(allowed, 'j'))
		return l->json = true;
	if (!strcmp(arg, "--kill") && strchr(allowed, 'k'))
		return l->kill = true;
	if (!strcmp(arg, "--keep") && strchr(allowed, 'K'))
		return l->keep = true;
	if (!strcmp(arg, "--list") && strchr(allowed, 'l'))
		return l->list = true;
	if (!strcmp(arg, "--once") && strchr(allowed, 'o'))
		return l->once = true;
	if (!strcmp(arg, "--dry-run") && strchr(allowed, 'D'))
		return l->dry = true;
	if (!strcmp(arg, "--wait") && strchr(allowed, 'w'))
		return l->wait = true;
	if (!strncmp(arg, "--wait=", 7) && strchr(allowed, 'w'))
		return l->wait = seconds_take(arg + 7, &l->seconds);
	if (strchr(allowed, 'i') && (value = value_of(arg, "--interval", next, used)))
		return interval_take(l, value);
	if (!strchr(allowed, 's') || !(value = value_of(arg, "--seconds", next, used)))
		return false;
	return seconds_take(value, &l->seconds) && l->seconds;
}

static bool number_take(struct look *l, const char *arg)
{
	uint64_t n;
	bool is = count_take(arg, &n);

	l->number = (unsigned)n;
	return is && n == l->number;
}

static bool arg_take(struct look *l, const char *arg, const char *allowed, const char *next,
		     int *used)
{
	*used = 1;
	if (arg[0] == '-')
		return flag_take(l, arg, allowed, next, used);
	if (strchr(allowed, 'n') && !l->name)
		l->name = arg;
	else if (strchr(allowed, 'f') && !l->follower)
		l->follower = arg;
	else if (strchr(allowed, 'F') && !l->file)
		l->file = arg;
	else
		return strchr(allowed, '#') && !l->number && number_take(l, arg);
	return true;
}

struct look look_take(int argc, char **argv, const char *allowed, const char *help)
{
	struct look l = { .seconds = -1 };
	int used;

	for (int i = 1; i < argc; i += used) {
		if (!strcmp(argv[i], "--help") || !strcmp(argv[i], "-h")) {
			fputs(help, stdout);
			exit(EXIT_OK);
		}
		if (arg_take(&l, argv[i], allowed, i + 1 < argc ? argv[i + 1] : NULL, &used))
			continue;
		if (used == 2 && i + 1 < argc)
			say_error("its --help says what it takes",
				  "mve %s: not a value of %s: %s", argv[0], argv[i], argv[i + 1]);
		else
			say_error("its --help says what it takes", "mve %s: not understood: %s",
				  argv[0], argv[i]);
		l.code = EXIT_USE;
		return l;
	}
	if (strchr(allowed, 'n') && !l.name) {
		say_error("mve ps lists the sessions", "mve %s: which session? give its name",
			  argv[0]);
		l.code = EXIT_USE;
	} else if (strchr(allowed, 'f') && !strchr(allowed, '?') && !l.follower) {
		say_error("mve status NAME shows them", "mve %s: which follower? give its name",
			  argv[0]);
		l.code = EXIT_USE;
	}
	return l;
}

bool look_fails(const char *name, int result)
{
	if (!result || result == -ENOENT || result == -EINVAL)
		return false;
	say_error("it must be yours, and closed to others",
		  "cannot look at the session: %s: %s", name, folder_why(-result));
	return true;
}

int look_session(const struct look *l, struct session *s)
{
	int result = session_load(s, l->name);
	enum session_state state = result ? SESSION_GONE : session_state(s);

	if (state == SESSION_RUNNING)
		return 0;
	if (look_fails(l->name, result))
		return EXIT_SYSTEM;
	if (state == SESSION_UNWATCHED)
		say_error("its server goes on as it would without mve",
			  "session is unwatched: %s: its monitor (pid %d) is gone", l->name,
			  s->monitor);
	else
		say_error("mve ps lists the sessions", "no such session: %s", l->name);
	return EXIT_NO;
}

int show_json(json_t *j)
{
	json_dumpf(j, stdout, JSON_INDENT(1) | JSON_ENSURE_ASCII);
	putchar('\n');
	json_decref(j);
	return EXIT_OK;
}

int show_done(json_t *reply, const char *what, const char *whom)
{
	const char *error = json_string_value(json_object_get(reply, "error"));
	int code = EXIT_OK;

	if (!reply) {
		say_error("try again; mve ps shows whether it is there",
			  "cannot %s: %s: the monitor does not answer", what, whom);
		code = EXIT_SYSTEM;
	} else if (error) {
		say_error("mve status NAME shows the followers", "cannot %s: %s: %s", what, whom,
			  error);
		code = EXIT_NO;
	}
	json_decref(reply);
	return code;
}

/* -1: the kernel does not say. */
static json_int_t own_kib(json_int_t pid)
{
	char name[64], line[256];
	long long kib, sum = 0;
	FILE *f;

	snprintf(name, sizeof(name), "/proc/%lld/smaps_rollup", pid);
	f = pid > 0 ? fopen(name, "re") : NULL;
	if (!f)
		return -1;
	while (fgets(line, sizeof(line), f))
		if (sscanf(line, "Private_Dirty: %lld", &kib) == 1)
			sum += kib;
	fclose(f);
	return sum;
}

void show_add_own(json_t *status)
{
	json_t *v;
	size_t i;

	json_array_foreach(json_object_get(status, "versions"), i, v) {
		json_int_t kib = own_kib(show_number(v, "pid"));

		if (kib >= 0)
			json_object_set_new(v, "own_kib", json_integer(kib));
	}
}

json_int_t show_number(const json_t *j, const char *key)
{
	return json_integer_value(json_object_get(j, key));
}

const char *show_text(const json_t *j, const char *key)
{
	const char *text = json_string_value(json_object_get(j, key));

	return text ? text : "";
}

const json_t *show_version(const json_t *status, const char *key, const char *text)
{
	const json_t *v;
	size_t i;

	json_array_foreach(json_object_get(status, "versions"), i, v)
		if (!strcmp(show_text(v, key), text))
			return v;
	return NULL;
}

const json_t *show_leader(const json_t *status)
{
	const json_t *v = show_version(status, "role", "leader");

	return v ? v : show_version(status, "role", "solo");
}

json_t *show_until(const struct session *s, bool (*over)(const json_t *status, const void *of),
		   const void *of)
{
	const struct timespec look = { 0, UNTIL_LOOK_MS * 1000000L };
	uint64_t end = now_ms() + UNTIL_MS;
	json_t *status = control_ask(s, "status");

	for (; status && !over(status, of) && now_ms() < end; nanosleep(&look, NULL)) {
		json_decref(status);
		status = control_ask(s, "status");
	}
	return status;
}

/* What does not pass at once is asked for less and less often: the server may stand for it. */
static long ask_later(long pause_ms)
{
	return 2 * pause_ms < ASK_MOST_MS ? 2 * pause_ms : ASK_MOST_MS;
}

/* What it says of how long the server stood is of all that was asked. */
static void stood_add(json_t *reply, json_int_t before_us)
{
	json_t *stood = json_object_get(reply, "stood_us");

	json_integer_set(stood, json_integer_value(stood) + before_us);
}

json_t *show_asked(const struct session *s, json_t *ask, int object, long wait_s)
{
	uint64_t end = now_ms() + 1000 * (uint64_t)wait_s;
	json_int_t stood_us = 0;
	json_t *reply = NULL;

	for (long pause_ms = ASK_MS;; pause_ms = ask_later(pause_ms)) {
		bool first = !reply;

		json_decref(reply);
		reply = control_ask_json(s, json_incref(ask), object);
		stood_add(reply, stood_us);
		stood_us = json_integer_value(json_object_get(reply, "stood_us"));
		if (now_ms() >= end || !json_is_true(json_object_get(reply, "passes")))
			break;
		if (first)
			say_error(NULL, "waits up to %ld s: %s: %s", wait_s, s->name,
				  show_text(reply, "error"));
		nanosleep(&(struct timespec){ 0, pause_ms * 1000000L }, NULL);
	}
	json_decref(ask);
	return reply;
}
