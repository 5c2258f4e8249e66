/*
 * The table of a takeover as a whole: each event in each state is handled or said to be
 * impossible, once; what waits has a limit and a row for it; from each state everything comes to
 * an end; and while the streams are the old leader's each state has a way back.
 */
#include <criterion/criterion.h>
#include <string.h>

#include "engine/outside/monitor/monitor.h"
#include "engine/outside/takeover/takeover_parts.h"

#define EVENTS	MOVE_nothing
#define OLD	0
#define NEW	1

static const struct state {
	const char *name, *limit, *back;
	int streams;
} states[] = {
#define STATE(name, streams, limit, back, what) { #name, #limit, back, streams },
#include "engine/outside/takeover/moves.def"
};

static const char *const events[] = {
#define EVENT(name, what) #name,
#include "engine/outside/takeover/moves.def"
};

static const struct {
	enum move_state state;
	enum move_event event;
	enum move_state next;
} rows[] = {
#define ON(state, event, act, next) { MOVE_IS_##state, MOVE_##event, MOVE_IS_##next },
#include "engine/outside/takeover/moves.def"
};

#define ROWS	(sizeof(rows) / sizeof(rows[0]))
#define E(event) (1u << MOVE_##event)

static const struct {
	enum move_state state;
	unsigned events;
} never[] = {
#define NEVER(state, events, why) { MOVE_IS_##state, events },
#include "engine/outside/takeover/moves.def"
};

static int said(unsigned state, unsigned event)
{
	int n = 0;

	for (unsigned i = 0; i < ROWS; i++)
		n += rows[i].state == state && rows[i].event == event;
	for (unsigned i = 0; i < sizeof(never) / sizeof(never[0]); i++)
		n += never[i].state == state && never[i].events >> event & 1;
	return n;
}

Test(moves, each_pair_once)
{
	for (unsigned s = 0; s < MOVE_STATES; s++)
		for (unsigned e = 0; e < EVENTS; e++)
			cr_assert_eq(said(s, e), 1, "%s, %s: %d times", states[s].name, events[e],
				     said(s, e));
}

static bool handles(unsigned state, enum move_event event)
{
	for (unsigned i = 0; i < ROWS; i++)
		if (rows[i].state == state && rows[i].event == event)
			return true;
	return false;
}

Test(moves, what_waits_has_a_limit)
{
	for (unsigned s = 0; s < MOVE_STATES; s++)
		cr_assert_eq(strcmp(states[s].limit, "none") != 0, handles(s, MOVE_late), "%s",
			     states[s].name);
}

/* The states from which rows lead to this one. */
static unsigned lead_to(enum move_state to)
{
	unsigned set = 1u << to, was = 0;

	while (set != was) {
		was = set;
		for (unsigned i = 0; i < ROWS; i++)
			if (set >> rows[i].next & 1)
				set |= 1u << rows[i].state;
	}
	return set;
}

static unsigned reached_from(enum move_state from)
{
	unsigned set = 1u << from, was = 0;

	while (set != was) {
		was = set;
		for (unsigned i = 0; i < ROWS; i++)
			if (set >> rows[i].state & 1)
				set |= 1u << rows[i].next;
	}
	return set;
}

Test(moves, all_come_to_an_end)
{
	cr_assert_eq(lead_to(MOVE_IS_idle), (1u << MOVE_STATES) - 1);
	cr_assert_eq(reached_from(MOVE_IS_idle), (1u << MOVE_STATES) - 1);
}

/* The streams change hands by one act, and back by one. */
Test(moves, one_way_over)
{
	for (unsigned i = 0; i < ROWS; i++) {
		int was = states[rows[i].state].streams, is = states[rows[i].next].streams;

		if (was == OLD && is == NEW)
			cr_assert_eq(rows[i].event, MOVE_read);
		if (was == NEW && is == OLD)
			cr_assert(rows[i].event == MOVE_all || rows[i].event == MOVE_undone);
		/* What cannot be undone is done by one act. */
		if (rows[i].event == MOVE_ready)
			cr_assert(rows[i].state == MOVE_IS_receives && rows[i].next == MOVE_IS_takes);
	}
}

/* What is planned can be undone while the streams are the old leader's. */
Test(moves, way_back)
{
	for (unsigned s = 0; s < MOVE_STATES; s++)
		if (states[s].streams == OLD && (reached_from(MOVE_IS_stops) >> s & 1))
			cr_assert(strcmp(states[s].back, "none") != 0, "%s", states[s].name);
	cr_assert(handles(MOVE_IS_stops, MOVE_refused) && handles(MOVE_IS_reads, MOVE_refused));
	cr_assert(handles(MOVE_IS_receives, MOVE_undone) && handles(MOVE_IS_takes, MOVE_undone));
}
