/*
 * mve top: a session on the terminal, as it runs.  Here are the options, the
 * questions to the monitor, and what keys do; the monitor does the counting.
 *
 * Dropping and promoting are asked back first.  When the session has ended, its
 * last frame stays, with a word, until the user leaves.
 */
#include <string.h>
#include <time.h>

#include "engine/mve/commands.h"
#include "engine/mve/show.h"
#include "engine/mve/top/top.h"
#include "engine/outside/control/control.h"
#include "engine/outside/monitor/say.h"
#include "engine/outside/print/plain.h"

#define ONCE_LINES	40
#define WORD_MS		4000	/* an outcome is shown so long */

static const char help[] =
	"usage: mve top NAME [--interval S] [--once]\n"
	"\n"
	"Shows a session as it runs, each second: versions, their calls, how far the\n"
	"followers are behind, what memory each has of its own, and the leader's\n"
	"busiest calls.\n"
	"\n"
	"  --interval S  each S seconds (0.1 to 3600)\n"
	"  --once        print one frame as text, of the calls of one interval\n"
	"\n"
	"Keys: q quit, p pause, j k and arrows select a follower, d drop it, P promote\n"
	"it.\n";

struct top {
	const struct look *look;
	struct session session;
	struct top_sample sample;
	struct top_frame frame;
	uint64_t asked_ms, answered_ms;	/* the last question; the last answer */
	uint64_t word_ms;		/* until when the word stands */
	char selected[SESSION_NAME_MAX + 1], word[FRAME_COLUMNS];
	const char *question;		/* "drop" or "promote", while it is open */
	bool paused, gone;
};

static uint64_t clock_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

/* --- the session ---------------------------------------------------------------------- */

/* False: the session does not answer, and the last answer stands. */
static bool sample_take(struct top *top)
{
	uint64_t at = clock_ms();
	json_t *now = control_ask(&top->session, "status");

	if (!json_object_get(now, "versions")) {
		json_decref(now);
		return false;
	}
	show_add_own(now);
	json_decref(top->sample.before);
	top->sample.before = top->sample.now;
	top->sample.now = plain_json(now, false);
	top->sample.seconds = (double)(at - top->answered_ms) / 1000;
	top->answered_ms = at;
	return true;
}

static const char *gone_word(const struct top *top)
{
	struct session s;

	if (!session_load(&s, top->session.name) && s.monitor == top->session.monitor) {
		if (session_state(&s) == SESSION_RUNNING)
			return "the monitor does not answer";
		if (session_state(&s) == SESSION_UNWATCHED)
			return "the monitor is gone; its server goes on unwatched";
	}
	return "the session has ended";
}

static const json_t *followers_row(const struct top *top, size_t i)
{
	const json_t *v = json_array_get(json_object_get(top->sample.now, "versions"), i);

	return v && top_follows(v) ? v : NULL;
}

/* The selected follower's row, if it still follows, or -1. */
static int selection_row(const struct top *top, int rows)
{
	for (int i = 0; i < rows; i++) {
		const json_t *v = followers_row(top, (size_t)i);

		if (v && !strcmp(show_text(v, "name"), top->selected))
			return i;
	}
	return -1;
}

/* Goes on to the next follower (1), the last (-1), or stays where one is (0). */
static void selection_move(struct top *top, int step)
{
	int n = (int)json_array_size(json_object_get(top->sample.now, "versions"));
	int at = selection_row(top, n), way = step ? step : 1;

	if (at >= 0 && !step)
		return;
	if (at < 0)
		top->selected[0] = 0;
	for (int i = 1; i <= n; i++) {
		const json_t *v = followers_row(top, (size_t)((at + i * way + n + n) % n));

		if (!v)
			continue;
		snprintf(top->selected, sizeof(top->selected), "%s", show_text(v, "name"));
		return;
	}
}

/* --- keys ----------------------------------------------------------------------------- */

static void word_say(struct top *top, const char *what, const char *whom, const char *outcome)
{
	snprintf(top->word, sizeof(top->word), "%s %s: %s", what, whom, outcome);
	top->word_ms = clock_ms() + WORD_MS;
}

static void question_answer(struct top *top, bool yes)
{
	const char *what = top->question, *error;
	json_t *reply;

	top->question = NULL;
	top->word_ms = 0;
	if (!yes)
		return;
	reply = control_ask_json(&top->session, json_pack("{s:s, s:s}", "do", what, "follower",
							  top->selected), -1);
	error = json_string_value(json_object_get(reply, "error"));
	word_say(top, what, top->selected, !reply ? "the monitor does not answer" :
		 error ? plain(error) : "done");
	json_decref(reply);
}

static void question_ask(struct top *top, const char *what)
{
	if (top->gone)
		return;
	if (!top->selected[0]) {
		word_say(top, what, "a follower", "there is none");
		return;
	}
	top->question = what;
}

/* False: it is to end. */
static bool ask_serve(struct top *top, enum top_ask ask)
{
	if (ask == ASK_QUIT || ask == ASK_ENDED)
		return false;
	if (ask == ASK_NOTHING || ask == ASK_SIZE)
		return true;
	if (top->question) {
		question_answer(top, ask == ASK_YES);
		return true;
	}
	switch (ask) {
	case ASK_PAUSE:
		top->paused = !top->paused;
		break;
	case ASK_NEXT:
		selection_move(top, 1);
		break;
	case ASK_LAST:
		selection_move(top, -1);
		break;
	case ASK_DROP:
		question_ask(top, "drop");
		break;
	case ASK_PROMOTE:
		question_ask(top, "promote");
		break;
	default:
		break;
	}
	return true;
}

static void top_show(struct top *top)
{
	const char *word = "q quit  p pause  j k select  d drop  P promote";
	enum line_kind kind = LINE_PLAIN;
	char line[FRAME_COLUMNS];

	if (top->gone) {
		kind = LINE_ALERT;
		snprintf(line, sizeof(line), "%s; q quits", gone_word(top));
		word = line;
	} else if (top->question) {
		kind = LINE_ALERT;
		snprintf(line, sizeof(line), "%s %s? (y/n)", top->question, top->selected);
		word = line;
	} else if (clock_ms() < top->word_ms) {
		word = top->word;
	} else if (top->paused) {
		kind = LINE_ALERT;
		word = "paused; p goes on";
	}
	frame_make(&top->frame, &top->sample, top->selected, screen_lines());
	screen_show(&top->frame, kind, word);
}

static void top_loop(struct top *top)
{
	uint64_t interval = (uint64_t)top->look->interval_ms;

	for (;;) {
		uint64_t now = clock_ms(), next = top->asked_ms + interval;

		if (now >= next && !top->paused) {
			top->gone = !sample_take(top);
			top->asked_ms = now;
			selection_move(top, 0);
		}
		top_show(top);
		next = top->asked_ms + interval;
		if (!ask_serve(top, screen_ask(now < next && !top->paused ? (int)(next - now) :
					       (int)interval)))
			return;
	}
}

/* --- one frame ------------------------------------------------------------------------ */

static int once(struct top *top)
{
	struct timespec t = { top->look->interval_ms / 1000,
			      top->look->interval_ms % 1000 * 1000000L };

	nanosleep(&t, NULL);
	if (!sample_take(top)) {
		say_error("mve ps lists the sessions", "%s: %s", gone_word(top), top->session.name);
		return EXIT_NO;
	}
	frame_make(&top->frame, &top->sample, "", ONCE_LINES);
	for (unsigned i = 0; i < top->frame.n; i++)
		puts(top->frame.line[i].text);
	return EXIT_OK;
}

int cmd_top(int argc, char **argv)
{
	struct look l = look_take(argc, argv, "nio", help);
	static struct top top;
	int code = l.code ? l.code : look_session(&l, &top.session);

	if (code)
		return code;
	if (!l.interval_ms)
		l.interval_ms = 1000;
	top.look = &l;
	if (!sample_take(&top)) {
		say_error("try again; mve ps shows whether it is there",
			  "the monitor does not answer: %s", l.name);
		return EXIT_SYSTEM;
	}
	if (l.once) {
		code = once(&top);
	} else if (screen_open()) {
		selection_move(&top, 0);
		top_loop(&top);
		screen_close();
	} else {
		code = EXIT_USE;
	}
	json_decref(top.sample.before);
	json_decref(top.sample.now);
	return code;
}
