/*
 * Rules at work (engine/core/rules.c) and what C in rules may do to views
 * (engine/abi/rules.h), without the compiler: the object below is written by
 * hand, its rules are
 *
 *	0  dup(3), close(_) => close(_), getpid(), dup(_)	with @within 2
 *	1  dup(3) => getppid()*
 *	2  nothing => getuid() -> (ret) { ret += 100 }
 *	3  begin => getgid()
 *	4  read(_) => read(_) -> { more than the room }		only @new
 */
#include <criterion/criterion.h>
#include <string.h>

#include "engine/abi/table.h"
#include "engine/core/rules.h"

/* --- an object ------------------------------------------------------------- */

static const struct rules_out outs[] = {
	{ CALL_close, RULES_OUT_MATCH, 0, 1, 1, 0, 1 },
	{ CALL_getpid, RULES_OUT_RUN, 0, 0, 0, 0, 1 },
	{ CALL_dup, RULES_OUT_MATCH, 0, 0, 0, 0, 1 },
	{ CALL_getppid, RULES_OUT_RUN, RULES_OUT_STAR, 0, 0, 0, 2 },
	{ CALL_getuid, RULES_OUT_RUN, RULES_OUT_ACTION, 0, 0, 0, 3 },
	{ CALL_getgid, RULES_OUT_RUN, 0, 0, 0, 0, 4 },
	{ CALL_read, RULES_OUT_MATCH, RULES_OUT_ACTION, 0, 0, 0, 5 },
};

static const struct rules_row rows[] = {
	{ 1, 0, 0, 0, 1, 0, 3, 2, 70, 64, 0, 0 },
	{ 1, 0, 0, 0, 2, 3, 1, 1, 100, 64, 0, 0 },
	{ 1, 0, 0, 0, 3, 4, 1, 0, 100, 64, RULES_ROW_NOTHING, 0 },
	{ 1, 0, 0, 0, 4, 5, 1, 0, 100, 64, RULES_ROW_BEGIN, 0 },
	{ 1, 0, 0, 0, 5, 6, 1, 1, 100, 64, RULES_ROW_NEW, 0 },
};

static const uint8_t wants[CALL_MAX] = {
	[CALL_dup] = RULES_WANTS_EVENT, [CALL_read] = RULES_WANTS_EVENT,
	[CALL_getuid] = RULES_WANTS_FIRST, [CALL_getgid] = RULES_WANTS_FIRST,
};

static unsigned picks;

static int pick_left(struct rules_run *run)
{
	if (run->ev[0]->nr == CALL_read)
		return rules_on(run, 4) ? 4 : RULES_NONE;
	if (run->ev[0]->args[0] != 3)
		return RULES_NONE;
	if (!rules_more(run, 1) && !run->expired) {
		run->waits = 0;
		return RULES_WAIT;
	}
	if (run->events > 1 && run->ev[1]->nr == CALL_close && run->call->nr == CALL_close)
		return 0;
	return 1;
}

static int pick(struct rules_run *run, enum rules_pick which)
{
	picks++;
	if (which == RULES_NOTHING)
		return run->call->nr == CALL_getuid ? 2 : RULES_NONE;
	if (which == RULES_BEGIN)
		return run->call->nr == CALL_getgid ? 3 : RULES_NONE;
	return pick_left(run);
}

static bool left(struct rules_run *run, unsigned rule, unsigned n)
{
	if (rule > 1 || run->ev[0]->nr != CALL_dup)
		return rules_no(run, RULES_WHY_CALL, 0, 0, 0);
	return n == 1 || (rule == 0 && run->ev[1]->nr == CALL_close) ||
		rules_no(run, RULES_WHY_CALL, 1, 0, 0);
}

static bool fits(struct rules_run *run, unsigned out)
{
	return run->call->nr == outs[out].nr;
}

static void act(struct rules_run *run, unsigned out)
{
	if (out == 4) {
		run->edit.ret += 100;
		return;
	}
	rules_build(run);
	for (int i = 0; i < 100; i++)
		rules_add(run, view_text("text"));
	run->edit.buf[1] = rules_built(run);
	run->edit.edited = 2;
}

static int entry(struct rules_object *o, uint32_t version)
{
	cr_assert_eq(version, RULES_VERSION);
	*o = (struct rules_object){ .magic = RULES_MAGIC, .version = RULES_VERSION, .rules = 5,
		.steps_max = 2, .rows = rows, .outs = outs, .text = "\0rule", .wanted = "", .wants = { wants,
		wants }, .wants_size = CALL_MAX, .pick = pick, .left = left, .fits = fits,
		.act = act };
	return 0;
}

static int wrong_entry(struct rules_object *o, uint32_t version)
{
	entry(o, version);
	o->version++;
	return 0;
}

/* --- a host ---------------------------------------------------------------- */

struct stream {
	struct rules_call events[8];
	unsigned n, at, peeked;
	struct rules rules;
	struct rules_state state;
	struct rules_run run;
	struct rules_answer answer;
	struct rules_call call;
	uint8_t room[64];
};

static const struct rules_call *peek(void *arg, unsigned i)
{
	struct stream *s = arg;

	s->peeked++;
	return s->at + i < s->n ? &s->events[s->at + i] : NULL;
}

static struct view bytes(void *arg, const struct rules_call *call, unsigned i)
{
	(void)arg, (void)call, (void)i;
	return view_none();
}

static const struct rules_host host = { peek, bytes };

static void add(struct stream *s, uint32_t nr, uint64_t arg, int64_t ret)
{
	s->events[s->n++] = (struct rules_call){ .nr = nr, .args = { arg }, .ret = ret };
}

static struct stream begin(void)
{
	struct stream s = { .n = 0 };

	cr_assert_eq(rules_attach(&s.rules, entry), 0);
	return s;
}

static void call(struct stream *s, uint32_t nr)
{
	s->call = (struct rules_call){ .nr = nr };
	s->run = (struct rules_run){ .host = &host, .arg = s, .state = &s->state,
		.call = &s->call, .room = s->room, .room_size = sizeof(s->room) };
}

static enum rules_verdict next(struct stream *s, uint32_t nr)
{
	enum rules_verdict verdict;

	call(s, nr);
	verdict = rules_next(&s->rules, &s->run, &s->answer);
	s->at += verdict == RULES_SKIP || verdict == RULES_MATCH || verdict == RULES_RUN ?
		s->answer.skip : 0;
	return verdict;
}

/* --- taking objects -------------------------------------------------------- */

Test(rules, refuses_another_version)
{
	struct rules rules;

	cr_assert_lt(rules_attach(&rules, wrong_entry), 0);
}

Test(rules, stages_turn_rules_on)
{
	struct stream s = begin();

	add(&s, CALL_read, 5, 1);
	cr_assert_eq(next(&s, CALL_read), RULES_DEFAULT);
	rules_choose(&s.rules, RULES_STAGE_NEW, NULL, NULL);
	cr_assert_eq(next(&s, CALL_read), RULES_ERROR);
	cr_assert_eq(s.answer.fault, RULES_NO_ROOM);
	cr_assert_eq(s.answer.rule, 4);
}

/* --- matching -------------------------------------------------------------- */

Test(rules, an_event_that_begins_no_rule_costs_a_look)
{
	struct stream s = begin();

	s.state.begun = 1;
	add(&s, CALL_write, 1, 1);
	picks = 0;
	cr_assert_eq(next(&s, CALL_write), RULES_DEFAULT);
	cr_assert_eq(picks, 0);
	cr_assert_eq(s.peeked, 1);
}

Test(rules, holds_events_until_the_right_side_is_over)
{
	struct stream s = begin();

	add(&s, CALL_dup, 3, 7);
	add(&s, CALL_close, 9, 0);
	cr_assert_eq(next(&s, CALL_close), RULES_MATCH);
	cr_assert_eq(s.answer.event, 1);
	cr_assert_eq(s.answer.compare, 1);
	cr_assert_eq(s.answer.skip, 0);
	cr_assert_not(rules_idle(&s.state));
	cr_assert_eq(next(&s, CALL_getpid), RULES_RUN);
	cr_assert_eq(rules_ran(&s.rules, &s.run, &s.answer, 55), 55);
	cr_assert_eq(next(&s, CALL_dup), RULES_MATCH);
	cr_assert_eq(s.answer.skip, 2);
	cr_assert(rules_idle(&s.state));
}

Test(rules, another_call_than_the_next_diverges)
{
	struct stream s = begin();

	add(&s, CALL_dup, 3, 7);
	add(&s, CALL_close, 9, 0);
	cr_assert_eq(next(&s, CALL_close), RULES_MATCH);
	cr_assert_eq(next(&s, CALL_mmap), RULES_DEFAULT, "local calls pass");
	cr_assert_eq(next(&s, CALL_dup), RULES_DIVERGE);
	cr_assert_eq(s.answer.rule, 0);
}

Test(rules, waits_and_then_decides)
{
	struct stream s = begin();

	add(&s, CALL_dup, 3, 7);
	cr_assert_eq(next(&s, CALL_close), RULES_HOLD);
	cr_assert_eq(s.answer.limit_ms, 70);
	cr_assert_eq(s.answer.events, 1);
	call(&s, CALL_getppid);
	s.run.expired = 1;
	cr_assert_eq(rules_next(&s.rules, &s.run, &s.answer), RULES_RUN);
	cr_assert_eq(s.answer.rule, 1);
}

Test(rules, holds_without_a_limit_when_there_is_no_event)
{
	struct stream s = begin();

	cr_assert_eq(next(&s, CALL_close), RULES_HOLD);
	cr_assert_eq(s.answer.limit_ms, 0);
	cr_assert_eq(s.answer.events, 0);
}

Test(rules, a_star_ends_with_another_call)
{
	struct stream s = begin();

	add(&s, CALL_dup, 3, 7);
	add(&s, CALL_write, 1, 1);
	for (int i = 0; i < 3; i++) {
		cr_assert_eq(next(&s, CALL_getppid), RULES_RUN);
		rules_ran(&s.rules, &s.run, &s.answer, 0);
		cr_assert_eq(s.at, 0);
	}
	cr_assert_eq(next(&s, CALL_write), RULES_SKIP);
	cr_assert_eq(s.at, 1);
	cr_assert_eq(next(&s, CALL_write), RULES_DEFAULT);
}

Test(rules, adds_calls)
{
	struct stream s = begin();

	add(&s, CALL_write, 1, 1);
	cr_assert_eq(next(&s, CALL_getuid), RULES_DEFAULT);
	cr_assert_eq(rules_unexpected(&s.rules, &s.run, &s.answer), RULES_RUN);
	cr_assert_eq(rules_ran(&s.rules, &s.run, &s.answer, 5), 105);
	call(&s, CALL_write);
	cr_assert_eq(rules_unexpected(&s.rules, &s.run, &s.answer), RULES_DEFAULT);
}

Test(rules, begins_once)
{
	struct stream s = begin();

	add(&s, CALL_write, 1, 1);
	cr_assert_eq(next(&s, CALL_getgid), RULES_RUN);
	rules_ran(&s.rules, &s.run, &s.answer, 0);
	cr_assert_eq(next(&s, CALL_getgid), RULES_DEFAULT);
}

Test(rules, names_the_nearest)
{
	struct stream s = begin();

	add(&s, CALL_dup, 3, 7);
	add(&s, CALL_write, 1, 0);
	call(&s, CALL_write);
	cr_assert_eq(rules_nearest(&s.rules, &s.run), 1);
	cr_assert_str_eq(rules_name(&s.rules, 1), "rule");
}

/* --- views ----------------------------------------------------------------- */

Test(views, stay_inside)
{
	struct view v = view_text("abc def"), none = view_none();

	cr_assert_eq(view_at(v, 6), 'f');
	cr_assert_eq(view_at(v, 7), -1);
	cr_assert_eq(view_at(v, SIZE_MAX), -1);
	cr_assert_eq(view_len(view_sub(v, 4, SIZE_MAX)), 3);
	cr_assert_eq(view_len(view_sub(v, SIZE_MAX, 1)), 0);
	cr_assert_eq(view_len(view_from(v, 100)), 0);
	cr_assert_eq(view_find(v, 'z'), 7);
	cr_assert(view_is(view_cut(&v, ' '), "abc"));
	cr_assert(view_is(v, "def"));
	cr_assert(view_is(view_cut(&v, ' '), "def"));
	cr_assert_eq(view_len(v), 0);
	cr_assert_not(view_begins(none, "a"));
	cr_assert(view_begins(none, ""));
	cr_assert_eq(view_len(view_trim(view_text(" \r\n"))), 0);
	cr_assert(view_is(view_trim(view_text(" a b\n")), "a b"));
}

Test(views, read_numbers)
{
	cr_assert_eq(view_number(view_text("123x")), 123);
	cr_assert_eq(view_number(view_text("-5")), -5);
	cr_assert_eq(view_number(view_text("")), 0);
	cr_assert_gt(view_number(view_text("99999999999999999999999")), 0);
}

Test(views, build_within_the_room)
{
	struct stream s = begin();

	call(&s, CALL_read);
	rules_build(&s.run);
	rules_add(&s.run, view_text("n="));
	rules_add_number(&s.run, INT64_MIN);
	cr_assert(view_is(rules_built(&s.run), "n=-9223372036854775808"));
	for (int i = 0; i < 100; i++)
		rules_add(&s.run, view_text("0123456789"));
	cr_assert_eq(s.run.fault, RULES_NO_ROOM);
	cr_assert_leq(s.run.room_used, sizeof(s.room));
}
