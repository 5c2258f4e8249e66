/*
 * Rules at work on a follower: what the host asks, and what it must do with the
 * answer.  One struct rules for an object that is loaded in a process, one
 * struct rules_state for each thread (and one for the process if rules are
 * @process), one struct rules_run for a call.
 *
 * For each of the follower's calls that is compared, or that rules_want() names:
 *
 *	run = { host, arg, state, call, room, room_size, scope, expired };
 *	verdict = rules_first(rules, &run, &answer);
 *
 * before it waits for the leader, and if that is RULES_DEFAULT
 *
 *	verdict = rules_next(rules, &run, &answer);
 *
 * and then, by verdict, what enum rules_verdict says.  Other fields of run need
 * no value.  The call and all that its views lead to must stay until the answer
 * has been acted on, and after RULES_RUN until rules_ran() is back.
 */
#ifndef MVE_CORE_RULES_H
#define MVE_CORE_RULES_H

#include "engine/abi/rules.h"

enum rules_verdict {
	/*
	 * No rule: go on as if there were none.  If that finds that the call is
	 * not the next event's, ask rules_unexpected() before it is a divergence.
	 */
	RULES_DEFAULT,
	/*
	 * Answer from event `event` (counted from the cursor): compare the
	 * arguments of `compare`, with edit's values where edit.edited says so;
	 * give result and memory of the event, or edit's.  Then drop `skip` events.
	 */
	RULES_MATCH,
	/* Let the follower make the call; then rules_ran(). `how`: rules_out_flags. */
	RULES_RUN,
	/* Return edit.ret; memory of arguments in edit.edited is edit.buf. Drop `skip`. */
	RULES_ANSWER,
	/* Drop `skip` events and ask again with the same call. */
	RULES_SKIP,
	/*
	 * Ask again when more than `events` events are there, or with `expired`
	 * set when limit_ms is over (0: wait as one would for any event).
	 */
	RULES_HOLD,
	/* A rule is being followed, and this is not the call it says. */
	RULES_DIVERGE,
	/* The rule itself failed: `fault`. */
	RULES_ERROR,
};

struct rules_answer {
	uint16_t rule;		/* rules_row, unless RULES_DEFAULT */
	uint16_t out;
	uint8_t event;
	uint8_t skip;
	uint8_t compare;
	uint8_t how;
	uint16_t fault;		/* enum rules_fault */
	uint16_t limit_ms;
	uint32_t events;
	struct rules_edit edit;
};

enum rules_stage { RULES_STAGE_ANY, RULES_STAGE_OLD, RULES_STAGE_NEW };

struct rules {
	struct rules_object object;
	bool apart;		/* a rule that is on has connections apart */
	uint32_t on[RULES_MAX / 32];
};

/*
 * Takes an object into use: 0, or -22 if it is of another version or makes no
 * sense.  All rules are on that are not for a stage or a version.
 */
int rules_attach(struct rules *rules, rules_entry *entry);

/* Turns on the rules for a stage and a pair of versions ("" or NULL: unknown). */
void rules_choose(struct rules *rules, enum rules_stage stage, const char *leader,
	const char *follower);

/* Is there a rule that adds the call before anything of the leader's is looked at? */
enum rules_verdict rules_first(const struct rules *rules, struct rules_run *run,
	struct rules_answer *answer);

enum rules_verdict rules_next(const struct rules *rules, struct rules_run *run,
	struct rules_answer *answer);

/* The call was not the next event's: is there a rule that adds it? */
enum rules_verdict rules_unexpected(const struct rules *rules, struct rules_run *run,
	struct rules_answer *answer);

/* After RULES_RUN, with the result: what the program is told. Drop answer's skip. */
int64_t rules_ran(const struct rules *rules, struct rules_run *run,
	struct rules_answer *answer, int64_t ret);

/*
 * The rule that came nearest, for a report: tries all of them on the events at
 * the cursor and the call.  RULES_NONE, or a rule with run->why filled; if it holds,
 * run->why_step is 0x80 + the call of its right side that the follower's is, or 0.
 */
int rules_nearest(const struct rules *rules, struct rules_run *run);

/* What the rules of a scope want of a call number: enum rules_wants. */
static inline uint8_t rules_want(const struct rules *rules, unsigned scope, uint32_t nr)
{
	return nr < rules->object.wants_size ? rules->object.wants[scope][nr] : 0;
}

/* Nothing is half matched: an object may be replaced, a role changed. */
static inline bool rules_idle(const struct rules_state *state)
{
	return !state->active && !state->ran;
}

/* Names for messages; they live in the object. */
const char *rules_name(const struct rules *rules, unsigned rule);
const char *rules_file(const struct rules *rules, unsigned rule);
const char *rules_fault_text(unsigned fault);

#endif
