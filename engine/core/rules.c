/*
 * The host's side of rules: follows one rule's right side at a time, and asks
 * the compiled object which rule begins where.
 *
 * A rule is taken when its left side holds for the events at the cursor and its
 * right side begins with the follower's call.  From then on it is *active*: the
 * cursor stays before its first event until the last call of its right side has
 * been served, so labels and bound names lead to events that are still there.
 * Then all of them are dropped at once.
 *
 * Called by one thread for its own state; makes no system call, allocates
 * nothing, and reads the target's memory only through the host's functions.
 */
#include "engine/abi/table.h"
#include "engine/core/must.h"
#include "engine/core/rules.h"

_Static_assert(RULES_MAX % 32 == 0, "which are on are bits of words");
_Static_assert(RULES_MAX < UINT16_MAX, "and state.active is one more");
_Static_assert(RULES_ARGS == CALL_ARGS, "a rule sees what a call has");

#define EINVAL_ANSWER	(-22)

static void answer_clear(struct rules_run *run, struct rules_answer *answer)
{
	answer->rule = 0;
	answer->out = 0;
	answer->event = answer->skip = answer->compare = answer->how = 0;
	answer->fault = RULES_OK;
	answer->limit_ms = 0;
	answer->events = 0;
	answer->edit.edited = answer->edit.ret_set = 0;
	answer->edit.ret = 0;
	run->edit.edited = run->edit.ret_set = 0;
	run->edit.ret = 0;
	run->events = 0;
	run->said_no = 0;
	run->room_used = 0;
	run->composed = 0;
	run->why = RULES_WHY_NONE;
	run->why_want = 0;
	run->fault = RULES_OK;
}

static enum rules_verdict failed(struct rules_answer *answer, unsigned fault)
{
	answer->fault = (uint16_t)fault;
	return RULES_ERROR;
}

/* --- taking an object ------------------------------------------------------ */

static bool object_sane(const struct rules_object *o)
{
	return o->magic == RULES_MAGIC && o->version == RULES_VERSION &&
		o->rules <= RULES_MAX && o->steps_max <= RULES_STEPS &&
		o->pick && o->left && o->fits && o->act && o->rows && o->outs &&
		o->text && o->wanted && o->wants[RULES_THREAD] && o->wants[RULES_PROCESS];
}

int rules_attach(struct rules *rules, rules_entry *entry)
{
	int err = entry(&rules->object, RULES_VERSION);

	if (err || !object_sane(&rules->object))
		return EINVAL_ANSWER;
	rules_choose(rules, RULES_STAGE_ANY, 0, 0);
	return 0;
}

static bool text_same(const char *a, const char *b)
{
	while (*a && *a == *b)
		a++, b++;
	return *a == *b;
}

/* A rule for a version is on only when that is known to be the one. */
static bool for_version(const struct rules *rules, uint32_t wanted, const char *is)
{
	return !wanted || (is && text_same(rules->object.text + wanted, is));
}

static bool for_stage(unsigned flags, enum rules_stage stage)
{
	if (!(flags & (RULES_ROW_OLD | RULES_ROW_NEW)))
		return true;
	return (flags & RULES_ROW_OLD && stage == RULES_STAGE_OLD) ||
		(flags & RULES_ROW_NEW && stage == RULES_STAGE_NEW);
}

void rules_choose(struct rules *rules, enum rules_stage stage, const char *leader,
	const char *follower)
{
	for (unsigned i = 0; i < RULES_MAX / 32; i++)
		rules->on[i] = 0;
	rules->apart = false;
	for (unsigned i = 0; i < rules->object.rules; i++) {
		const struct rules_row *row = &rules->object.rows[i];

		if (for_stage(row->flags, stage) && for_version(rules, row->leader, leader) &&
		    for_version(rules, row->follower, follower)) {
			rules->on[i / 32] |= 1u << i % 32;
			rules->apart |= (row->flags & RULES_ROW_APART) != 0;
		}
	}
}

/* --- following a right side ------------------------------------------------ */

static const struct rules_out *out_row(const struct rules *rules, const struct rules_row *row,
	unsigned pos)
{
	return &rules->object.outs[row->first_out + pos];
}

/* The call of a right side, from `pos` on, that is the follower's; outs: none
 * is, but all that is left may be left out; -1: it is another call. */
static int right_find(const struct rules *rules, struct rules_run *run,
	const struct rules_row *row, unsigned pos)
{
	for (; pos < row->outs; pos++) {
		if (rules->object.fits(run, row->first_out + pos))
			return (int)pos;
		run->why_step = (uint8_t)(0x80 | pos);
		if (!(out_row(rules, row, pos)->flags & RULES_OUT_STAR))
			return -1;
	}
	return row->outs;
}

/* How many bytes the follower's buffer holds, by the table's rule, is the host's
 * to know: an edit longer than that is refused where it is copied out. */
static void out_serve(const struct rules *rules, struct rules_run *run,
	struct rules_answer *answer, const struct rules_out *out)
{
	unsigned index = (unsigned)(out - rules->object.outs);

	answer->compare = out->compare;
	answer->event = out->step;
	answer->how = out->flags;
	if (out->kind == RULES_OUT_MATCH)
		rules_more(run, out->step);
	if (out->kind != RULES_OUT_RUN && out->flags & RULES_OUT_ACTION)
		rules->object.act(run, index);
}

/* @then: the next rule sees what this one made of the event. */
static void compose(const struct rules *rules, struct rules_run *run, unsigned rule)
{
	/* rulec refuses a chain that leads back; the bound is for a broken object. */
	for (unsigned n = 0; n < rules->object.rules; n++) {
		unsigned then = rules->object.rows[rule].then;

		if (!then || then > rules->object.rules)
			return;
		rule = then - 1;
		run->composed = 1;
		if (!rules_on(run, rule) || !rules->object.left(run, rule, 1))
			return;
		rules->object.act(run, rules->object.rows[rule].first_out);
	}
}

static const enum rules_verdict verdict_of[] = {
	[RULES_OUT_MATCH] = RULES_MATCH,
	[RULES_OUT_RUN] = RULES_RUN,
	[RULES_OUT_ANSWER] = RULES_ANSWER,
};

/* The follower's call is out `pos` of the active rule. */
static enum rules_verdict right_serve(const struct rules *rules, struct rules_run *run,
	struct rules_answer *answer, const struct rules_row *row, unsigned pos)
{
	struct rules_state *state = run->state;
	const struct rules_out *out = out_row(rules, row, pos);

	out_serve(rules, run, answer, out);
	if (row->then && !run->fault)
		compose(rules, run, answer->rule);
	answer->out = (uint16_t)pos;
	answer->edit = run->edit;
	state->out = (uint16_t)(out->flags & RULES_OUT_STAR ? pos : pos + 1);
	if (out->kind == RULES_OUT_RUN)
		state->ran = (uint16_t)(pos + 1);
	if (state->out >= row->outs) {
		answer->skip = (uint8_t)row->steps;
		state->active = 0;
	}
	if (run->fault)
		return failed(answer, run->fault);
	return verdict_of[out->kind];
}

/* Peeks the events that the active rule holds: they are at the cursor. */
static bool events_take(struct rules_run *run, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		if (!rules_more(run, i))
			return false;
	return true;
}

/* A clock is none of the rules' affairs, unless one of them names one. */
static bool is_soft(const struct rules *rules, const struct rules_call *call)
{
	const struct call_desc *row = call_find(call->nr);

	return row && row->class == CLASS_SOFT && !(rules->object.flags & RULES_CLOCKS);
}

/* Calls that no event is made of go on as ever while a rule is followed. */
static bool is_invisible(const struct rules *rules, const struct rules_call *call)
{
	const struct call_desc *row = call_find(call->nr);

	return is_soft(rules, call) || (row && row->class == CLASS_LOCAL);
}

/* RULES_DEFAULT: the call is none of the rule's; if that is over, ask the others. */
static enum rules_verdict right_next(const struct rules *rules, struct rules_run *run,
	struct rules_answer *answer)
{
	struct rules_state *state = run->state;
	const struct rules_row *row = &rules->object.rows[state->active - 1];
	int pos;

	MUST(state->active && state->active <= rules->object.rules);
	answer->rule = (uint16_t)(state->active - 1);
	answer->out = state->out;
	if (!events_take(run, row->steps))
		return failed(answer, RULES_WRONG_EVENT);
	pos = right_find(rules, run, row, state->out);
	if (pos < 0)
		return is_invisible(rules, run->call) ? RULES_DEFAULT : RULES_DIVERGE;
	if (pos < row->outs)
		return right_serve(rules, run, answer, row, (unsigned)pos);
	state->active = 0;
	answer->skip = (uint8_t)row->steps;
	if (row->flags & RULES_ROW_TELLS)
		rules->object.act(run, row->first_out);
	if (run->fault)
		return failed(answer, run->fault);
	return row->steps ? RULES_SKIP : RULES_DEFAULT;
}

static enum rules_verdict rule_start(const struct rules *rules, struct rules_run *run,
	struct rules_answer *answer, int rule)
{
	MUST((unsigned)rule < rules->object.rules && !run->state->active);
	run->state->active = (uint16_t)(rule + 1);
	run->state->out = 0;
	return right_next(rules, run, answer);
}

/* --- choosing a rule ------------------------------------------------------- */

/* A rule for the follower's call alone; RULES_DEFAULT if there is none. */
static enum rules_verdict first_call(const struct rules *rules, struct rules_run *run,
	struct rules_answer *answer, enum rules_pick which)
{
	uint8_t so = which == RULES_FIRST ? RULES_WANTS_NOW : RULES_WANTS_FIRST;
	int rule;

	if (!(rules_want(rules, run->scope, run->call->nr) & so))
		return RULES_DEFAULT;
	rule = rules->object.pick(run, which);
	return rule >= 0 ? rule_start(rules, run, answer, rule) : RULES_DEFAULT;
}

static enum rules_verdict hold(const struct rules *rules, struct rules_run *run,
	struct rules_answer *answer)
{
	MUST(run->waits < rules->object.rules);
	answer->rule = run->waits;
	answer->events = run->events;
	answer->limit_ms = rules->object.rows[run->waits].within_ms;
	return RULES_HOLD;
}

static enum rules_verdict by_events(const struct rules *rules, struct rules_run *run,
	struct rules_answer *answer)
{
	int rule;

	if (is_soft(rules, run->call))
		return RULES_DEFAULT;
	if (!rules_more(run, 0))
		return RULES_HOLD;
	if (!(rules_want(rules, run->scope, run->ev[0]->nr) & RULES_WANTS_EVENT))
		return RULES_DEFAULT;
	rule = rules->object.pick(run, RULES_LEFT);
	if (rule == RULES_WAIT && run->events < rules->object.rows[run->waits].within_events)
		return hold(rules, run, answer);
	if (rule == RULES_WAIT) {
		run->expired = 1;
		rule = rules->object.pick(run, RULES_LEFT);
	}
	return rule >= 0 ? rule_start(rules, run, answer, rule) : RULES_DEFAULT;
}

enum rules_verdict rules_next(const struct rules *rules, struct rules_run *run,
	struct rules_answer *answer)
{
	struct rules_state *state = run->state;
	enum rules_verdict verdict;

	answer_clear(run, answer);
	run->on = rules->on;
	if (state->active) {
		verdict = right_next(rules, run, answer);
		if (verdict != RULES_DEFAULT || state->active)
			return verdict;
		/* rules_first() could not say, for this one was not over. */
		verdict = first_call(rules, run, answer, RULES_FIRST);
		if (verdict != RULES_DEFAULT)
			return verdict;
	}
	if (!state->begun) {
		verdict = first_call(rules, run, answer, RULES_BEGIN);
		state->begun |= verdict != RULES_DEFAULT || !is_invisible(rules, run->call);
		if (verdict != RULES_DEFAULT)
			return verdict;
	}
	return by_events(rules, run, answer);
}

enum rules_verdict rules_first(const struct rules *rules, struct rules_run *run,
	struct rules_answer *answer)
{
	answer_clear(run, answer);
	run->on = rules->on;
	if (run->state->active)
		return RULES_DEFAULT;
	return first_call(rules, run, answer, RULES_FIRST);
}

enum rules_verdict rules_unexpected(const struct rules *rules, struct rules_run *run,
	struct rules_answer *answer)
{
	answer_clear(run, answer);
	run->on = rules->on;
	if (run->state->active)
		return RULES_DEFAULT;
	return first_call(rules, run, answer, RULES_NOTHING);
}

int64_t rules_ran(const struct rules *rules, struct rules_run *run,
	struct rules_answer *answer, int64_t ret)
{
	const struct rules_row *row = &rules->object.rows[answer->rule];
	const struct rules_out *out = out_row(rules, row, answer->out);

	MUST(answer->rule < rules->object.rules && answer->out < row->outs);
	if (!run->state->ran)
		return ret;
	run->state->ran = 0;
	if (!(out->flags & RULES_OUT_ACTION))
		return ret;
	run->edit.ret = ret;
	rules->object.act(run, row->first_out + answer->out);
	answer->fault = run->fault;
	answer->edit = run->edit;
	return run->edit.ret;
}

/* --- reports --------------------------------------------------------------- */

#define SCORE_CALL	16	/* more than what one call can come to */

/* How near the call that does not fit comes: another one is not near at all. */
static unsigned call_score(const struct rules_run *run)
{
	switch (run->why) {
	case RULES_WHY_ARG: return 1u + run->why_arg % RULES_ARGS;
	case RULES_WHY_GUARD: return 2 + RULES_ARGS;
	default: return 0;
	}
}

/* How much of a rule holds: the calls of its left side, and the follower's. */
static unsigned rule_score(const struct rules *rules, struct rules_run *run, unsigned rule)
{
	const struct rules_row *row = &rules->object.rows[rule];
	unsigned n = 0;
	int pos;

	if (row->flags & RULES_ROW_BEGIN && run->state->begun)
		return 0;
	rules_no(run, RULES_WHY_NONE, 0, 0, 0);
	while (n < row->steps && rules_more(run, n) && rules->object.left(run, rule, n + 1))
		n++;
	if (n < row->steps && n == run->events)
		rules_no(run, RULES_WHY_MORE, n, 0, 0);
	if (n < row->steps)
		return n * SCORE_CALL + call_score(run);
	pos = right_find(rules, run, row, 0);
	if (pos < 0)
		return n * SCORE_CALL + call_score(run);
	rules_no(run, RULES_WHY_NONE, pos < row->outs ? 0x80u | (unsigned)pos : 0, 0, 0);
	return n * SCORE_CALL + SCORE_CALL - 1;
}

int rules_nearest(const struct rules *rules, struct rules_run *run)
{
	unsigned best_score = 0;
	int best = RULES_NONE;

	run->on = rules->on;
	run->events = 0;
	run->said_no = 0;
	run->composed = 0;
	for (unsigned i = 0; i < rules->object.rules; i++) {
		unsigned score = rules_on(run, i) ? rule_score(rules, run, i) : 0;

		if (score > best_score) {
			best_score = score;
			best = (int)i;
		}
	}
	if (best >= 0)
		rule_score(rules, run, (unsigned)best);
	return best;
}

const char *rules_name(const struct rules *rules, unsigned rule)
{
	return rules->object.text + rules->object.rows[rule].name;
}

const char *rules_file(const struct rules *rules, unsigned rule)
{
	return rules->object.text + rules->object.rows[rule].file;
}

const char *rules_fault_text(unsigned fault)
{
	switch (fault) {
	case RULES_NO_ROOM: return "the buffer that the rule builds is too long";
	case RULES_TOO_LONG: return "the edited buffer is longer than the follower's";
	case RULES_WRONG_EVENT: return "an event that the rule holds is gone";
	default: return "no fault";
	}
}
