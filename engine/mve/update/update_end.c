/*
 * mve commit, mve abort: an update is ended; back when status says so, too, and with a word of
 * what is so.
 */
#include <stdio.h>
#include <string.h>

#include "engine/mve/commands.h"
#include "engine/mve/show.h"
#include "engine/outside/control/control.h"
#include "engine/outside/monitor/say.h"
#include "engine/outside/print/plain.h"

static const char help_commit[] =
	"usage: mve commit NAME\n"
	"\n"
	"Ends an update whose new version leads: the old one, which follows, is ended.\n"
	"If that was lost before, the update is done already: it says so.\n";

static const char help_abort[] =
	"usage: mve abort NAME\n"
	"\n"
	"Ends an update: the new version is ended; if it leads the old one takes over\n"
	"again, with its connections.  Comes back when that is so.\n";

static const char *leader_of(const json_t *status)
{
	return show_text(show_leader(status), "name");
}

/* Back when it is the end, or nothing leads there: the old version was to lead again. */
static bool is_end(const json_t *status, const void *what)
{
	const json_t *u = json_object_get(status, "update");

	if (!json_is_true(json_object_get(u, "busy")))
		return true;
	return strcmp(what, "commit") && !json_object_get(status, "takeover") &&
	       strcmp(leader_of(status), show_text(u, "old"));
}

/* What is so now. */
static int ended(const struct session *s, const char *what, const json_t *status)
{
	const json_t *u = json_object_get(status, "update");

	if (!status)
		say_error("mve ps shows whether the session is there",
			  "no word of the update's end: %s: the monitor does not answer", s->name);
	else if (json_is_true(json_object_get(u, "busy")))
		say_error("mve status shows what it is at", "cannot %s: %s: %s leads", what,
			  s->name, leader_of(status));
	else
		printf("%s: %s leads; the update: %s: %s\n", s->name, leader_of(status),
		       show_text(u, "past"), show_text(u, "why"));
	return !status ? EXIT_SYSTEM :
	       json_is_true(json_object_get(u, "busy")) ? EXIT_NO : EXIT_OK;
}

/* It is asked for; back when status says it, too. */
static int end_await(const struct session *s, const char *what)
{
	json_t *status = plain_json(show_until(s, is_end, what), false);
	int code;

	code = ended(s, what, status);
	json_decref(status);
	return code;
}

static int update_end(int argc, char **argv, const char *text, const char *what)
{
	struct look l = look_take(argc, argv, "n", text);
	struct session s;
	json_t *reply;
	bool done;
	int code = l.code ? l.code : look_session(&l, &s);

	if (code)
		return code;
	reply = control_ask(&s, what);
	done = json_is_true(json_object_get(reply, "done"));
	code = show_done(reply, what, l.name);
	return done ? end_await(&s, what) : code;
}

int cmd_commit(int argc, char **argv)
{
	return update_end(argc, argv, help_commit, "commit");
}

int cmd_abort(int argc, char **argv)
{
	return update_end(argc, argv, help_abort, "abort");
}
