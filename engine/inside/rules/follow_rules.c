/*
 * Rules at work: the inside as the host of engine/core/rules.c.  A compiled object
 * lies in the area (abi/area.h); a process copies it into memory of its own when a
 * thread first meets a call with it, and again when the area has a newer one: each
 * thread changes over when it has nothing half matched, and the last one of an older
 * object unmaps it.  Which rules are on is each thread's own affair: that depends on
 * whose stream it reads, and after a takeover some still read the old leader's.
 *
 * The object's code is not ours: it runs under rules_try, so that a fault in it,
 * or the monitor's word that it has run for a second, ends the question with a
 * verdict on the rule and not with a crash.  It sees the leader's events through
 * sight_peek() and sight_bytes(): views into the ring where an argument lies in one piece,
 * else copies in the thread's workspace, HELD_ROOM bytes at most; a longer one is
 * empty.  Serving what a rule says is follow_serve.c's.
 *
 * Events that rules do not see: locks, clocks (unless a rule names one), and what
 * was answered before its turn.  A signal, or a program's end, ends what can be
 * seen: no rule reaches over it.
 */
#include <asm/signal.h>
#include <asm/unistd.h>
#include <linux/errno.h>
#include <linux/mman.h>
#include <linux/sched.h>
#include <linux/time.h>
#include <linux/time_types.h>

#include "engine/abi/waits.h"
#include "engine/core/must.h"
#include "engine/core/ring.h"
#include "engine/core/rules.h"
#include "engine/core/walk.h"
#include "engine/inside/gate/gate.h"
#include "engine/inside/gate/request.h"
#include "engine/inside/gate/thread.h"
#include "engine/inside/lanes/host.h"
#include "engine/inside/order/apart.h"
#include "engine/inside/replay/follow.h"
#include "engine/inside/rules/follow_rules.h"
#include "engine/inside/rules/rules_near.h"
#include "engine/inside/rules/rules_object.h"
#include "engine/inside/rules/rules_sight.h"
#include "engine/inside/signal/ucontext.h"


_Static_assert(sizeof(struct loaded) <= PAGE, "the mapping's first page");

/* The thread's place is ready for a call; false: there are no rules to ask. */
bool rules_place_ready(struct thread *t, struct walk *w, long nr)
{
	struct rules_thread *rt = t->rules;
	uint32_t generation = brief()->rules, source = t->reader.cursor->source;

	if (!rt && !rules_place_map(t))
		return false;
	rt = t->rules;
	if (!rt->now || rules_idle(&rt->state)) {
		bool newer = !rt->now || rt->now->generation != generation;

		if (newer)
			rules_object_get(t);
		if (rt->now && (newer || rt->source != source) && !rules_object_choose(t, source))
			rt->now = NULL;
	}
	if (!rt->now) {
		rules_failed(t, "the object cannot be used: it is damaged, or has @process rules");
		return false;
	}
	rt->call = (struct rules_call){ .nr = (uint32_t)nr };
	for (int i = 0; i < RULES_ARGS; i++)
		rt->call.args[i] = w->args[i];
	rt->walk = w;
	rt->own_known = 0;
	rt->own_used = 0;
	rt->before.active = rt->state.active;
	rt->before.out = rt->state.out;
	rt->before.ran = rt->state.ran;
	sight_begin(t);
	return true;
}

/* What is read fills its chunk, and nothing is known to come behind it but more. */
bool rules_may_go_on(const struct reader *r)
{
	const uint8_t *chunk = (const uint8_t *)(r->from + 1) + (uint64_t)r->chunk * CHUNK_SIZE;
	struct reader next = *r;

	next.ahead = true;
	return r->piece - chunk == (CHUNK_CELLS - 1) * CELL_SIZE && !reader_next(&next);
}

/* The signal handler's: the code of a rule is left. */
bool rules_left(struct thread *t, struct gregs *r, int sig)
{
	extern char rules_left_here[];
	struct rules_thread *rt = t->rules;
	uint32_t now;

	if (!rt || !rt->in_rule)
		return false;
	now = __atomic_load_n(&t->slot->matching, __ATOMIC_RELAXED);
	if (sig == SIGSYS && (!now || t->slot->match_over != now))
		return false;
	rt->left_by = (uint8_t)sig;
	rt->in_rule = 0;
	r->rip = (uint64_t)rules_left_here;
	r->rsp = rt->back;
	return true;
}

struct asking {
	struct thread *t;
	enum rules_verdict (*what)(struct thread *);
};

static long asked(void *arg)
{
	const struct asking *a = arg;

	return a->what(a->t);
}

enum rules_verdict rules_ask(struct thread *t, enum rules_verdict (*what)(struct thread *))
{
	struct rules_thread *rt = t->rules;
	struct asking a = { t, what };
	long verdict;

	/* One question at a time: there is one stack for it, and one way back. */
	MUST(!rt->in_rule && rt->stack && t == thread_self());

	/* Odd, and another each time: the monitor sees whether it is still the same. */
	rt->asked += 2;
	__atomic_store_n(&t->slot->matching, rt->asked | 1, __ATOMIC_RELAXED);
	rt->in_rule = 1;
	verdict = rules_try(asked, &a, &rt->back, rt->stack);
	rt->in_rule = 0;
	__atomic_store_n(&t->slot->matching, 0, __ATOMIC_RELAXED);
	if (verdict >= 0)
		return (enum rules_verdict)verdict;
	rt->answer.fault = RULES_OK;
	rt->answer.rule = rt->run.rule;
	return RULES_ERROR;
}

void rules_run_ready(struct thread *t, const struct rules_host *host, bool expired)
{
	struct rules_thread *rt = t->rules;

	MUST(rt->now && rt->now->users);

	rt->run.host = host;
	rt->run.arg = t;
	rt->run.state = &rt->state;
	rt->run.call = &rt->call;
	rt->run.room = rt->build_room;
	rt->run.room_size = sizeof(rt->build_room);
	rt->run.scope = RULES_THREAD;
	rt->run.expired = expired;
	rt->run.composed = 0;
	rt->run.rule = 0;
	rt->run.line = rt->run.file = 0;
	rt->left_by = 0;
}

static enum rules_verdict ask_next(struct thread *t)
{
	return rules_next(&t->rules->rules, &t->rules->run, &t->rules->answer);
}

static enum rules_verdict ask_first(struct thread *t)
{
	return rules_first(&t->rules->rules, &t->rules->run, &t->rules->answer);
}

static enum rules_verdict ask_unexpected(struct thread *t)
{
	return rules_unexpected(&t->rules->rules, &t->rules->run, &t->rules->answer);
}

static uint64_t now_ms(void)
{
	struct __kernel_timespec now = { 0, 0 };

	OWN2(__NR_clock_gettime, CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* Waits for one more event than `n`; false: not within the limit. */
static bool more_wait(struct thread *t, unsigned n, unsigned limit_ms)
{
	uint64_t until = now_ms() + limit_ms, sleep = PAUSE_FIRST_NS;

	for (;;) {
		uint32_t seen = change_now();
		struct reader r = t->reader;

		r.head = CONSUME(lane_head, &r.from->lane[r.index].head);
		if (sight_peek(t, n))
			return true;
		if (now_ms() >= until || t->reader.broken ||
		    streams.conduct->ended >> t->reader.cursor->source & 1)
			return false;
		/* The leader may have no room for it but what our image holds. */
		lane_rest(&r, seen, (struct also){ 0 }, sleep);
		sleep = sleep * 2 < PAUSE_IDLE_NS ? sleep * 2 : PAUSE_IDLE_NS;
	}
}

static enum rules_verdict next_decided(struct thread *t)
{
	struct rules_host host = { sight_peek, sight_bytes };
	struct rules_thread *rt = t->rules;
	enum rules_verdict verdict;
	bool expired = false;

	for (;;) {
		rules_run_ready(t, &host, expired);
		verdict = rules_ask(t, ask_next);
		if (verdict != RULES_HOLD)
			return verdict;
		if (!rt->answer.limit_ms || expired)
			return RULES_DEFAULT;
		expired = !more_wait(t, rt->answer.events, rt->answer.limit_ms);
	}
}

/*
 * The thread's rules, if rules_place_ready() would leave them, and its place in them, as
 * they are.
 */
static const struct rules *settled(const struct thread *t)
{
	const struct rules_thread *rt = t->rules;

	if (!rt || !rt->now || rt->now->generation != brief()->rules ||
	    rt->source != t->reader.cursor->source || !rules_idle(&rt->state))
		return NULL;
	return &rt->rules;
}

/* No rule begins with the leader's next call: most calls come no farther than here. */
static bool front_unwanted(struct thread *t)
{
	const struct rules *rules = settled(t);
	bool whole = rules && t->rules->state.begun && t->rules->lens == APART_ALL;
	const struct event *e = whole ? reader_peek(&t->reader) : NULL;

	return e && sight_of(t, e, 0) == SEEN &&
	       !(rules_want(rules, RULES_THREAD, e->call) & RULES_WANTS_EVENT);
}

/* No rule names the follower's call so. */
static bool call_unwanted(const struct thread *t, long nr, uint8_t so)
{
	const struct rules *rules = settled(t);

	return rules && !(rules_want(rules, RULES_THREAD, (uint32_t)nr) & so);
}

enum rules_verdict rules_decide_again(struct thread *t, struct walk *w, long nr)
{
	return rules_place_ready(t, w, nr) ? next_decided(t) : RULES_DEFAULT;
}

enum rules_verdict rules_decide(struct thread *t, struct walk *w, long nr)
{
	return front_unwanted(t) ? RULES_DEFAULT : rules_decide_again(t, w, nr);
}

/* A rule that adds calls is asked for, one that names this call `so`. */
static enum rules_verdict decide_added(struct thread *t, struct walk *w, long nr, uint8_t so,
				       enum rules_verdict (*what)(struct thread *))
{
	struct rules_host host = { sight_peek, sight_bytes };

	if (call_unwanted(t, nr, so) || !rules_place_ready(t, w, nr))
		return RULES_DEFAULT;
	rules_run_ready(t, &host, false);
	return rules_ask(t, what);
}

enum rules_verdict rules_decide_first(struct thread *t, struct walk *w, long nr)
{
	return decide_added(t, w, nr, RULES_WANTS_NOW, ask_first);
}

enum rules_verdict rules_decide_unexpected(struct thread *t, struct walk *w, long nr)
{
	return decide_added(t, w, nr, RULES_WANTS_FIRST, ask_unexpected);
}

/* It never waits for the leader otherwise. */
bool rules_name_call(struct thread *t, struct walk *w, long nr)
{
	uint8_t so = RULES_WANTS_CALL | RULES_WANTS_FIRST;

	return !call_unwanted(t, nr, so) && rules_place_ready(t, w, nr) &&
	       rules_want(&t->rules->rules, RULES_THREAD, (uint32_t)nr) & so;
}

/* No call: a rule that waits for one is not begun. */
#define NO_CALL		(-1)

bool rules_drop_front(struct thread *t)
{
	static const uint64_t none[CALL_ARGS];
	struct walk w = { .args = none };
	enum rules_verdict verdict;
	struct rules_thread *rt;
	uint8_t begun;

	if (front_unwanted(t) || !rules_place_ready(t, &w, NO_CALL) || t->rules->state.active)
		return false;
	rt = t->rules;
	begun = rt->state.begun;
	verdict = next_decided(t);
	rt->state.begun = begun;
	rt->state.active = 0;
	if (verdict != RULES_SKIP || rt->rules.object.rows[rt->answer.rule].outs)
		return false;
	rules_drop(t, rt->answer.skip);
	return true;
}

const char *rules_fault_word(const struct rules_thread *rt)
{
	if (rt->answer.fault)
		return rules_fault_text(rt->answer.fault);
	switch (rt->left_by) {
	case SIGSYS: return "it ran for more than a second";
	case SIGFPE: return "it divided by zero";
	case SIGILL: case SIGTRAP: return "it ran what is no instruction";
	default: return "it touched memory that is not there";
	}
}

enum step_result rules_failed(struct thread *t, const char *text)
{
	long reply;

	MUST(t->rules && !t->rules->in_rule);
	rules_near_note(t, NOTE_FAILED, t->rules->answer.rule, text);
	rules_place_clear(t->rules);
	reply = request_ask(t, REQ_VERDICT, VERDICT_FAULTY, 0, 0);
	if (reply != ANSWER_RETRY)
		OWN1(__NR_exit_group, 1);
	return STEP_AGAIN;
}
