/*
 * mve promote: a follower takes the leader's place.
 *
 * The monitor answers when the leader stands and its successor has been told; this
 * command comes back when the takeover is over, and its status says whether the follower
 * leads and serves.
 */
#include <string.h>
#include <time.h>

#include "engine/mve/commands.h"
#include "engine/mve/show.h"
#include "engine/outside/control/control.h"
#include "engine/outside/monitor/monitor.h"
#include "engine/outside/monitor/say.h"
#include "engine/outside/monitor/wakes.h"

#define WAIT_S		60	/* --wait without a number */
#define LOOK_MS		20

static const char help[] =
	"usage: mve promote NAME [FOLLOWER] [--keep] [--wait[=S]] [--dry-run]\n"
	"\n"
	"The follower takes over the leader's connections, files and timers and goes on\n"
	"in its place.  The old leader ends; with --keep it stays, as a follower.  Comes\n"
	"back with status 0 when the follower leads and serves; with 1, and why, when it\n"
	"does not.  Without FOLLOWER it is the new version of a live update (mve update),\n"
	"and the old one stays; what passes is waited for, and so is one that is behind,\n"
	"for clients would wait until it has read all.  What it waits for it says.\n"
	"\n"
	"  --wait[=S]  waits up to S seconds (60) for what is against it and passes:\n"
	"              another takeover, threads that do not follow yet\n"
	"  --dry-run   only says whether it could lead now; nothing happens\n";

static void pause_ms(uint64_t ms)
{
	struct timespec t = { (time_t)(ms / 1000), (long)(ms % 1000) * 1000000L };

	nanosleep(&t, NULL);
}

/* But for their numbers, which grow and shrink. */
static bool same_words(const char *a, const char *b)
{
	static const char number[] = "0123456789.";

	for (;; a++, b++) {
		a += strspn(a, number);
		b += strspn(b, number);
		if (*a != *b || !*a)
			return *a == *b;
	}
}

/* What a promotion is waiting for, once for each: it may take as long as an update. */
static void wait_say(const struct session *s, const char *what)
{
	static char said[300];

	if (same_words(said, what))
		return;
	snprintf(said, sizeof(said), "%s", what);
	say_error(NULL, "%s: waits: %s", s->name, what);
}

/*
 * Asks again while what is against it passes, for so long.  The last answer.  What was tried
 * and failed has stopped the leader: it serves for as long before the next try.
 */
static json_t *asked(const struct session *s, const struct look *l, uint64_t wait_ms)
{
	uint64_t begin = now_ms(), end = begin + wait_ms, now;

	for (;; begin = now_ms()) {
		json_t *ask = json_pack("{s:s, s:s, s:b, s:b, s:b}", "do", "promote", "follower",
					l->follower, "keep", l->keep, "dry", l->dry, "even",
					l->even);
		json_t *reply = control_ask_json(s, ask, CONTROL_LATER);

		now = now_ms();
		if (now >= end || !json_is_true(json_object_get(reply, "passes")))
			return reply;
		wait_say(s, show_text(reply, "error"));
		json_decref(reply);
		pause_ms(now - begin > LOOK_MS ? now - begin : LOOK_MS);
	}
}

static int not_led(const json_t *status, const char *name)
{
	const json_t *v = show_version(status, "name", name);
	const char *why = v ? show_text(v, "why") : "";

	if (!status)
		say_error("mve ps shows whether the session is there",
			  "no word of the takeover: %s: the monitor does not answer", name);
	else
		say_error("mve report shows why a follower was dropped",
			  "cannot promote: %s: %s; %s leads", name,
			  *why ? why : "it did not come to lead",
			  show_text(show_version(status, "role", "leader"), "name"));
	return status ? EXIT_NO : EXIT_SYSTEM;
}

/* It leads, and the others are so, too. */
static void led_say(const struct session *s, const json_t *status, const char *name)
{
	const json_t *v;
	size_t i;

	printf("%s: %s leads", s->name, name);
	json_array_foreach(json_object_get(status, "versions"), i, v)
		if (!strcmp(show_text(v, "role"), "follower"))
			printf("; %s follows", show_text(v, "name"));
	putchar('\n');
}

static bool leads(const json_t *status, const char *name)
{
	return !strcmp(show_text(show_version(status, "name", name), "role"), "leader");
}

/* An update's next command is refused until its stage is the next one, too. */
static bool is_over(const json_t *status, const void *name)
{
	const json_t *u = json_object_get(status, "update");

	return !json_object_get(status, "takeover") &&
	       !(leads(status, name) && !strcmp(show_text(u, "stage"), "old leads") &&
		 !strcmp(show_text(u, "new"), name));
}

/* The takeover has begun; what comes of it. */
static int outcome(const struct session *s, const char *name)
{
	json_t *status = show_until(s, is_over, name);

	if (!is_over(status, name) || !leads(status, name))
		return not_led(status, name);
	led_say(s, status, name);
	json_decref(status);
	return EXIT_OK;
}

static void coming_say(const struct session *s, const json_t *u)
{
	char what[256];

	snprintf(what, sizeof(what), "there is no new version yet (%s)%s%s", show_text(u, "stage"),
		 *show_text(u, "why") ? ": " : "", show_text(u, "why"));
	wait_say(s, what);
}

/* No update is before its promotion: what became of the last one. */
static int none_new(const struct session *s, const json_t *status)
{
	const json_t *u = json_object_get(status, "update");
	const char *past = show_text(u, "past");

	if (!status) {
		say_error("try again; mve ps shows whether it is there",
			  "cannot promote: %s: the monitor does not answer", s->name);
		return EXIT_SYSTEM;
	}
	if (!strcmp(show_text(u, "stage"), "new leads")) {
		say_error("mve commit ends the old version, mve abort goes back to it",
			  "cannot promote: %s: %s, the new version, leads already", s->name,
			  show_text(u, "new"));
		return EXIT_NO;
	}
	if (*past) {
		say_error("mve update begins another; mve promote NAME FOLLOWER is for others",
			  "cannot promote: %s: there is no new version; the last update: %s: %s",
			  s->name, past, show_text(u, "why"));
		return EXIT_NO;
	}
	say_error("mve status NAME shows them, and the stage of an update",
		  "mve promote: which follower? give its name");
	return EXIT_USE;
}

/* Nobody was named: the new version of a live update, which the old one then follows. */
static int updated_take(const struct session *s, struct look *l)
{
	static char name[FOLLOWER_NAME_MAX + 1];
	json_t *status = control_ask(s, "status");
	const json_t *u = json_object_get(status, "update");
	int code = 0;

	for (; json_is_true(json_object_get(u, "coming")); u = json_object_get(status, "update")) {
		coming_say(s, u);
		pause_ms(LOOK_MS);
		json_decref(status);
		status = control_ask(s, "status");
	}
	if (strcmp(show_text(u, "stage"), "old leads"))
		code = none_new(s, status);
	snprintf(name, sizeof(name), "%s", show_text(u, "new"));
	json_decref(status);
	l->follower = name;
	l->keep = l->wait = l->even = true;
	return code;
}

int cmd_promote(int argc, char **argv)
{
	struct look l = look_take(argc, argv, "nf?KwD", help);
	struct session s;
	int code = l.code ? l.code : look_session(&l, &s);
	json_t *reply;
	bool done;

	if (!code && !l.follower)
		code = updated_take(&s, &l);
	if (code)
		return code;
	reply = asked(&s, &l, l.wait ? 1000 * (uint64_t)(l.seconds < 0 ? WAIT_S : l.seconds) : 0);
	done = json_is_true(json_object_get(reply, "done"));
	code = show_done(reply, "promote", l.follower);
	if (!done)
		return code;
	if (l.dry)
		printf("%s: nothing is against its leading now\n", l.follower);
	return l.dry ? code : outcome(&s, l.follower);
}
