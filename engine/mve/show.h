/*
 * What the commands that look at a session share.
 */
#ifndef MVE_SHOW_H
#define MVE_SHOW_H

#include <jansson.h>
#include <stdbool.h>

#include "engine/outside/session/session.h"

struct look {
	const char *name;	/* NULL: none was given */
	const char *follower;
	const char *file;
	bool json, kill, keep, list, once, dry, wait, even;
	unsigned number;	/* 0: not given */
	long seconds;		/* -1: not given */
	long interval_ms;	/* 0: not given */
	int code;		/* not 0: a message was given, exit with it */
};

/*
 * Reads NAME and options; `allowed` lists the letters of those that the command
 * takes: j(son), k(ill), K(eep), s(econds), l(ist), o(nce), i(nterval), n(ame),
 * f(ollower; f?: it may be left out), # (a number), D(ry-run), w(ait), whose seconds may be given.
 * With --help prints `help`.
 */
struct look look_take(int argc, char **argv, const char *allowed, const char *help);

/* Says why a session's folder cannot be looked at; false: it can, or there is none. */
bool look_fails(const char *name, int result);

/* A number from 1 on, of digits alone; false: it is none. */
bool count_take(const char *text, uint64_t *n);
/* A number of seconds, up to an hour; false: it is none. */
bool seconds_take(const char *text, long *seconds);

/* Behind getopt: the command's mark stands where the option's value should. */
bool value_forgotten(char *const *argv);

/* Finds the session and checks that it is watched; 0 or an exit code. */
int look_session(const struct look *l, struct session *s);

/* Prints an answer of the monitor as JSON. */
int show_json(json_t *j);

/*
 * The monitor's last answer; while what is against it passes it is asked again, for so many
 * seconds, and that is said once.  `ask` is taken.
 */
json_t *show_asked(const struct session *s, json_t *ask, int object, long wait_s);

/* Whether the monitor did as it was asked, in words; an exit code. */
int show_done(json_t *reply, const char *what, const char *whom);

/*
 * What each version's first process has in memory of its own, which no other shares, as
 * `own_kib`: what a twin has come to cost.  Asked here, for whoever asks may have to wait for
 * the process, and the monitor must not.
 */
void show_add_own(json_t *status);

/* The version of which this is so, in a status; NULL: none. */
const json_t *show_version(const json_t *status, const char *key, const char *text);
/* Who leads, or is alone. */
const json_t *show_leader(const json_t *status);
/* The status once it is over, or a minute later; NULL: the monitor does not answer. */
json_t *show_until(const struct session *s, bool (*over)(const json_t *status, const void *of),
		   const void *of);

json_int_t show_number(const json_t *j, const char *key);
const char *show_text(const json_t *j, const char *key);

#endif
