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
 * peek() and bytes(): views into the ring where an argument lies in one piece,
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

#include "engine/inside/order/locks.h"
#include "engine/inside/rules/follow_rules.h"
#include "engine/inside/signal/ucontext.h"

#define PAGE		4096ull
#define RULES_STACK	(16 * PAGE)
#define RULES_GUARD	(16 * PAGE)
#define LOOK_FIRST_NS	50000
#define LOOK_LAST_NS	2000000
#define HELD_FAR	256	/* events from the cursor, in one sequence */
#define SOME_ADDRESS	1	/* what an event knows of a pointer: it was not null */

static struct loaded *newest;
static uint32_t load_lock;

long rules_try(long (*call)(void *), void *arg, uint64_t *back, uint64_t stack);

/* --- the object ---------------------------------------------------------------------- */

static uint64_t pages(uint64_t n)
{
	return (n + PAGE - 1) & ~(PAGE - 1);
}

static bool bank_sane(uint32_t size, uint32_t text, uint32_t entry)
{
	return size && size <= sizeof(((struct rules_bank *)0)->bytes) && text <= size &&
	       entry < text && !(text % PAGE);
}

/* The bank's object in memory of our own, behind its page; NULL: it cannot be. */
static struct loaded *object_map(uint32_t generation)
{
	const struct rules_bank *b = &brief()->bank[generation % 2];
	uint32_t size = b->size, text = b->text, entry = b->entry;
	uint64_t len = PAGE + pages(size);
	struct loaded *l;
	long at;

	if (!bank_sane(size, text, entry))
		return NULL;
	at = own_map(len);
	if (at < 0)
		return NULL;
	l = (struct loaded *)at;
	bytes_copy((void *)((uint64_t)at + PAGE), b->bytes, size);
	/* Acquire: the bank was whole when it was copied if its turn is not over. */
	if (__atomic_load_n(&brief()->rules, __ATOMIC_ACQUIRE) != generation) {
		OWN2(__NR_munmap, at, len);
		return NULL;
	}
	OWN3(__NR_mprotect, (uint64_t)at + PAGE, text, PROT_READ | PROT_EXEC);
	l->len = len;
	l->generation = generation;
	l->rules.object.rows = (const struct rules_row *)((uint64_t)at + PAGE + entry);
	return l;
}

_Static_assert(sizeof(struct loaded) <= PAGE, "the mapping's first page");

static long object_attach(void *arg)
{
	struct loaded *l = arg;

	return rules_attach(&l->rules, (rules_entry *)(uintptr_t)l->rules.object.rows);
}

/* All that an object points to lies in it. */
static bool object_whole(const struct loaded *l)
{
	const struct rules_object *o = &l->rules.object;
	uint64_t end = (uint64_t)l + l->len;
	const void *const at[] = { o->rows, o->outs, o->text, o->wanted, o->wants[0], o->wants[1],
				   (const void *)(uintptr_t)o->pick, (const void *)(uintptr_t)o->left,
				   (const void *)(uintptr_t)o->fits, (const void *)(uintptr_t)o->act };

	for (unsigned i = 0; i < sizeof(at) / sizeof(at[0]); i++)
		if ((uint64_t)at[i] - (uint64_t)l - PAGE >= l->len - PAGE)
			return false;
	/* Looked at without rules_try. */
	for (unsigned i = 0; i < RULES_SCOPES; i++)
		if (o->wants_size > end - (uint64_t)o->wants[i])
			return false;
	return !(o->flags & RULES_HAS_PROCESS);
}

static struct loaded *object_load(struct thread *t, uint32_t generation)
{
	struct rules_thread *rt = t->rules;
	struct loaded *l = object_map(generation);
	long result;

	if (!l)
		return NULL;
	rt->in_rule = 1;
	result = rules_try(object_attach, l, &rt->back, rt->stack);
	rt->in_rule = 0;
	if (!result && object_whole(l))
		return l;
	OWN2(__NR_munmap, l, l->len);
	return NULL;
}

static void lock(void)
{
	/* Acquire: pairs with unlock. */
	while (__atomic_exchange_n(&load_lock, 1, __ATOMIC_ACQUIRE))
		OWN0(__NR_sched_yield);
}

static void unlock(void)
{
	/* Release: the next holder sees `newest`. */
	__atomic_store_n(&load_lock, 0, __ATOMIC_RELEASE);
}

static void object_release(struct loaded *l)
{
	if (l && !--l->users && l != newest)
		OWN2(__NR_munmap, l, l->len);
}

/* The area's object; it may be replaced while it is copied. */
static struct loaded *object_newest(struct thread *t)
{
	uint32_t generation;

	do {
		/* Acquire: pairs with the monitor's release; the bank is written. */
		generation = __atomic_load_n(&brief()->rules, __ATOMIC_ACQUIRE);
		if (!newest || newest->generation != generation) {
			struct loaded *was = newest;

			newest = object_load(t, generation);
			if (was && !was->users)
				OWN2(__NR_munmap, was, was->len);
		}
	} while (!newest && generation != brief()->rules);
	return newest;
}

/* Changes the thread over to it. */
static void object_get(struct thread *t)
{
	struct rules_thread *rt = t->rules;

	lock();
	object_release(rt->now);
	rt->now = object_newest(t);
	if (rt->now)
		rt->now->users++;
	unlock();
}

struct choice {
	struct rules *rules;
	const struct release *leader, *follower;
};

static long object_choose(void *arg)
{
	const struct choice *c = arg;
	int32_t leader = c->leader->age, follower = c->follower->age;

	rules_choose(c->rules, leader < follower ? RULES_STAGE_OLD : leader > follower ?
		     RULES_STAGE_NEW : RULES_STAGE_ANY, c->leader->name, c->follower->name);
	return 0;
}

/* Which rules are on, for the leader whose stream it reads. */
static bool choose(struct thread *t, uint32_t source)
{
	struct rules_thread *rt = t->rules;
	const struct brief *b = brief();
	struct choice c = { &rt->rules, &b->release[source % RELEASES],
			    &b->release[b->self % RELEASES] };
	long result;

	rt->rules.object = rt->now->rules.object;
	rt->source = source;
	rt->in_rule = 1;	/* names lie in the object */
	result = rules_try(object_choose, &c, &rt->back, rt->stack);
	rt->in_rule = 0;
	return !result;
}

/* --- a thread's place ------------------------------------------------------------------ */

/* Below the stack is a range that faults, wider than a frame is without probing. */
static bool place_map(struct thread *t)
{
	long at = own_map(sizeof(struct rules_thread));
	long stack = at < 0 ? at : own_map(RULES_GUARD + RULES_STACK);

	if (stack < 0) {
		if (at >= 0)
			OWN2(__NR_munmap, at, sizeof(struct rules_thread));
		return false;
	}
	OWN3(__NR_mprotect, stack, RULES_GUARD, PROT_NONE);
	t->rules = (struct rules_thread *)at;
	t->rules->stack = (uint64_t)stack + RULES_GUARD + RULES_STACK;
	t->rules->lens = APART_ALL;
	return true;
}

static void place_clear(struct rules_thread *rt)
{
	bytes_zero(&rt->state, sizeof(rt->state));
	rt->helds = 0;
	rt->in_rule = 0;
}

/* A new thread, or a copy of one: nothing is matched. */
void rules_child(struct thread *t)
{
	if (!(t->clone_flags & CLONE_VM))
		load_lock = 0;
	if (!t->rules)
		return;
	place_clear(t->rules);
	apart_forget(t);
}

/* It leads from here. */
void rules_forget(struct thread *t)
{
	if (t->rules)
		place_clear(t->rules);
}

/* Events are kept while the cursor stands still and a rule holds them. */
static void helds_ready(struct thread *t)
{
	struct rules_thread *rt = t->rules;
	const struct cursor *c = t->reader.cursor;

	if (rt->state.active && rt->front == c->at && rt->front_source == c->source)
		return;
	rt->helds = 0;
	rt->held_used = 0;
	rt->front = c->at;
	rt->front_source = c->source;
}

/* The thread's place is ready for a call; false: there are no rules to ask. */
static bool place_ready(struct thread *t, struct walk *w, long nr)
{
	struct rules_thread *rt = t->rules;
	uint32_t generation = brief()->rules, source = t->reader.cursor->source;

	if (!rt && !place_map(t))
		return false;
	rt = t->rules;
	if (!rt->now || rules_idle(&rt->state)) {
		bool newer = !rt->now || rt->now->generation != generation;

		if (newer)
			object_get(t);
		if (rt->now && (newer || rt->source != source) && !choose(t, source))
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
	helds_ready(t);
	return true;
}

/* --- the leader's events ------------------------------------------------------------------ */

/* What is read fills its chunk, and nothing is known to come behind it but more. */
static bool may_go_on(const struct reader *r)
{
	const uint8_t *chunk = (const uint8_t *)(r->from + 1) + (uint64_t)r->chunk * CHUNK_SIZE;
	struct reader next = *r;

	next.ahead = true;
	return r->piece - chunk == (CHUNK_CELLS - 1) * CELL_SIZE && !reader_next(&next);
}

/* The next piece, waiting for it: the deadline is not for that. */
static size_t piece(struct thread *t, struct reader *r, size_t want, const uint8_t **at)
{
	size_t n;

	while (!(n = reader_piece(r, want, at))) {
		if (!may_go_on(r))
			return reader_piece(r, want, at);
		__atomic_add_fetch(&t->slot->matching, 2, __ATOMIC_RELAXED);
		if (!host_more(r))
			return 0;
	}
	return n;
}

static bool take(struct thread *t, struct reader *r, void *to, size_t len)
{
	uint8_t *out = to;

	while (len) {
		const uint8_t *at;
		size_t n = piece(t, r, len, &at);

		if (!n)
			return false;
		if (out) {
			bytes_copy(out, at, n);
			out += n;
		}
		len -= n;
	}
	return true;
}

static bool take_length(struct thread *t, struct reader *r, uint32_t *len)
{
	return take(t, r, len, sizeof(*len));
}

static bool has_room(const struct rules_thread *rt, const struct reader *r, uint32_t len)
{
	return r->left >= len || len <= sizeof(rt->held_room) - rt->held_used;
}

/* A section's bytes, in one piece; empty when there is no room for them. */
static struct view gather(struct thread *t, struct reader *r, uint32_t len)
{
	struct rules_thread *rt = t->rules;
	uint8_t *to = rt->held_room + rt->held_used;

	if (r->left >= len) {
		struct view v = view_of(r->piece, len);

		r->piece += len;
		r->left -= len;
		return v;
	}
	if (len > sizeof(rt->held_room) - rt->held_used) {
		take(t, r, NULL, len);
		return view_none();
	}
	rt->held_used += len;
	return take(t, r, to, len) ? view_of(to, len) : view_none();
}

/* Notes where an argument's bytes are; false: the event has none for it. */
static bool section_note(struct thread *t, struct held *h, struct reader *r, unsigned i,
			 enum step step)
{
	uint32_t len = 0, other;

	if (step == STEP_MESSAGE) {
		if (!take_length(t, r, &other))			/* the flags */
			return false;
		for (int n = 0; n < 2; n++)			/* name, control */
			if (!take_length(t, r, &other) || !take(t, r, NULL, other))
				return false;
	}
	if (!take_length(t, r, &len))
		return false;
	h->len[i] = len;
	h->part[i] = *r;
	h->open |= (uint8_t)(1u << i);
	return true;
}

/* One behind another that is in pieces: that is gathered first. */
static bool section_pass(struct thread *t, struct held *h, struct reader *r, unsigned i)
{
	*r = h->part[i];
	h->buf[i] = gather(t, r, h->len[i]);
	h->open &= (uint8_t)~(1u << i);
	return !r->broken;
}

static void sections_note(struct thread *t, struct held *h, struct walk *w)
{
	struct reader r = h->at;
	int before = -1;

	for (unsigned i = 0; i < w->desc->nargs; i++) {
		enum step step = step_kind(w, i);

		if (step == STEP_NONE || step == STEP_VALUE)
			continue;
		if (before >= 0 && !section_pass(t, h, &r, (unsigned)before))
			return;
		if (step == STEP_MESSAGES || step == STEP_STRINGS)
			return;
		if (!section_note(t, h, &r, i, step)) {
			h->call.args[i] = 0;	/* nothing was told of it */
			return;
		}
		before = (int)i;
	}
}

static void values_take(struct held *h, struct walk *w, const struct thread *t)
{
	const struct rules_call *own = &t->rules->call;
	bool same = own->nr == h->call.nr;
	unsigned values = 0;

	for (unsigned i = 0; i < CALL_ARGS; i++)
		h->call.args[i] = 0;
	for (unsigned i = 0; i < w->desc->nargs; i++) {
		enum arg_kind kind = w->desc->args[i].kind;

		/* As the match does: where it is the same call, its pointers are null as ours. */
		if (kind >= KIND_VALUES || kind == KIND_PTR)
			h->call.args[i] = same && !own->args[i] ? 0 : SOME_ADDRESS;
		else if (step_kind(w, i) == STEP_VALUE && values < EVENT_ARGS)
			h->call.args[i] = h->event->arg[values++];
	}
}

static void held_fill(struct thread *t, struct held *h, const struct event *e, struct reader *at)
{
	struct walk w = { .desc = call_find(e->call), .args = h->call.args, .result = e->result };

	h->event = e;
	h->at = *at;
	h->at.ahead = true;	/* it only looks: nothing is given back */
	h->open = 0;
	h->call = (struct rules_call){ .nr = e->call, .ret = e->result, .host = h };
	for (unsigned i = 0; i < RULES_ARGS; i++)
		h->buf[i] = view_none();
	if (!w.desc)
		return;
	values_take(h, &w, t);
	if (call_has_variants(e->call)) {
		w.desc = call_find_variant(e->call, h->call.args);
		values_take(h, &w, t);
	}
	if (w.desc->class != CLASS_LIFE)
		sections_note(t, h, &w);
}

enum sight { SEEN, UNSEEN, BARRIER };

static enum sight sight_of(struct thread *t, const struct event *e, unsigned ahead)
{
	const struct call_desc *d = e->kind == EVENT_CALL ? call_find(e->call) : NULL;

	if (apart_is_taken(t, ahead) || event_aside(e))
		return UNSEEN;
	if (t->rules->lens != APART_ALL && apart_of(e) != t->rules->lens)
		return UNSEEN;
	if (e->kind != EVENT_CALL)
		return BARRIER;
	return d && d->class == CLASS_SOFT && event_is_plain(e) &&
	       !(t->rules->rules.object.flags & RULES_CLOCKS) ? UNSEEN : SEEN;
}

/* One more event; false: it is not there (yet). */
static bool held_add(struct thread *t)
{
	struct rules_thread *rt = t->rules;
	const struct held *last = rt->helds ? &rt->held[rt->helds - 1] : NULL;
	struct reader r = last ? last->at : t->reader;
	unsigned ahead = last ? last->ahead + 1u : 0;
	unsigned most = rt->rules.apart ? APART_EVENTS : HELD_FAR;
	const struct event *e;

	if (last && last->event->flags & EVENT_SIGNAL_NEXT)
		return false;
	for (e = last ? reader_next(&r) : reader_peek(&r); e; e = reader_next(&r), ahead++) {
		enum sight s = sight_of(t, e, ahead);

		if (ahead >= most)
			return false;
		if (s == UNSEEN)
			continue;
		if (s != SEEN)
			return false;
		rt->held[rt->helds].ahead = (uint16_t)ahead;
		held_fill(t, &rt->held[rt->helds++], e, &r);
		return true;
	}
	return false;
}

static const struct rules_call *peek(void *arg, unsigned i)
{
	struct thread *t = arg;

	while (i < RULES_STEPS && t->rules->helds <= i)
		if (!held_add(t))
			return NULL;
	return i < RULES_STEPS ? &t->rules->held[i].call : NULL;
}

/* What another thread gave must have been given here, too: as where no rule is. */
static void order_kept(struct thread *t, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		const struct event *e = t->rules->held[i].event;

		if (comes_after(call_find(e->call), e))
			order_wait_all_told(t, e->seq);
	}
}

uint8_t rules_drop(struct thread *t, unsigned n)
{
	struct rules_thread *rt = t->rules;
	uint64_t last = n ? rt->held[n - 1].at.pos : 0;
	uint8_t flags = 0;
	const struct event *e;

	if (!n || n > rt->helds)
		return 0;
	order_kept(t, n);
	if (rt->lens != APART_ALL)
		return apart_drop(t, n);
	while ((e = reader_peek(&t->reader)) && t->reader.pos <= last) {
		bool target = t->reader.pos == last;

		if (e->kind == EVENT_LOCK)
			lock_passed(t, e);
		if (target)
			flags = follow_take(t);
		else
			follow_take(t);
		if (target)
			break;
	}
	rt->helds = 0;
	return flags;
}

/* --- the follower's own call ----------------------------------------------------------------- */

static struct view own_room(struct rules_thread *rt, uint64_t at, uint64_t len, struct view so_far)
{
	uint8_t *to = rt->own_room + rt->own_used;

	if (len > sizeof(rt->own_room) - rt->own_used || target_in(to, at, len))
		return view_none();
	rt->own_used += (uint32_t)len;
	return so_far.len_ ? view_of(so_far.at_, so_far.len_ + len) : view_of(to, len);
}

static struct view own_text(struct rules_thread *rt, uint64_t at)
{
	uint8_t *to = rt->own_room + rt->own_used;
	uint32_t n = 0;

	while (n < STRING_MAX && rt->own_used + n < sizeof(rt->own_room) &&
	       !target_in(to + n, at + n, 1) && to[n])
		n++;
	rt->own_used += n;
	return view_of(to, n);
}

static struct view own_spans(struct rules_thread *rt, uint64_t spans, uint64_t n)
{
	struct view v = view_none();

	for (uint64_t i = 0; i < n && i < 1024; i++, spans += sizeof(struct span)) {
		struct span s;

		if (target_in(&s, spans, sizeof(s)))
			break;
		if (s.len)
			v = own_room(rt, s.at, s.len, v);
	}
	return v;
}

static struct view own_bytes(struct rules_thread *rt, unsigned i)
{
	struct walk w = *rt->walk;
	struct message m;

	w.result = INT64_MAX;	/* all that it offers */
	if (!w.desc || i >= w.desc->nargs || !w.args[i] || w.desc->args[i].dir == DIR_OUT)
		return view_none();
	switch (step_kind(&w, i)) {
	case STEP_TEXT:
		return own_text(rt, w.args[i]);
	case STEP_BYTES:
		return own_room(rt, w.args[i], step_length(&w, i), view_none());
	case STEP_VECTOR:
		return own_spans(rt, w.args[i], w.args[w.desc->args[i].len_arg]);
	case STEP_MESSAGE:
		return target_in(&m, w.args[i], sizeof(m)) ? view_none()
							   : own_spans(rt, m.iov, m.iov_n);
	default:
		return view_none();
	}
}

static struct view bytes(void *arg, const struct rules_call *call, unsigned i)
{
	struct thread *t = arg;
	struct rules_thread *rt = t->rules;
	struct held *h = call->host;

	if (i >= RULES_ARGS)
		return view_none();
	if (h) {
		struct reader r = h->part[i];

		if (h->open >> i & 1 && has_room(rt, &r, h->len[i]))
			h->buf[i] = gather(t, &r, h->len[i]);
		h->open &= (uint8_t)~(1u << i);
		return h->buf[i];
	}
	if (!(rt->own_known >> i & 1))
		rt->own[i] = own_bytes(rt, i);
	rt->own_known |= (uint8_t)(1u << i);
	return rt->own[i];
}

struct view follow_own_bytes(struct thread *t, unsigned i)
{
	return bytes(t, &t->rules->call, i);
}

/* --- asking ---------------------------------------------------------------------------------- */

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

static void run_ready(struct thread *t, const struct rules_host *host, bool expired)
{
	struct rules_thread *rt = t->rules;

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
	uint64_t until = now_ms() + limit_ms, sleep = LOOK_FIRST_NS;

	for (;;) {
		uint32_t seen = change_now();

		if (peek(t, n))
			return true;
		if (now_ms() >= until || t->reader.broken ||
		    streams.conduct->ended >> t->reader.cursor->source & 1)
			return false;
		change_wait(seen, sleep);
		sleep = sleep * 2 < LOOK_LAST_NS ? sleep * 2 : LOOK_LAST_NS;
	}
}

static enum rules_verdict next_decided(struct thread *t)
{
	struct rules_host host = { peek, bytes };
	struct rules_thread *rt = t->rules;
	enum rules_verdict verdict;
	bool expired = false;

	for (;;) {
		run_ready(t, &host, expired);
		verdict = rules_ask(t, ask_next);
		if (verdict != RULES_HOLD)
			return verdict;
		if (!rt->answer.limit_ms || expired)
			return RULES_DEFAULT;
		expired = !more_wait(t, rt->answer.events, rt->answer.limit_ms);
	}
}

/* The thread's rules, if place_ready() would leave them, and its place in them, as they are. */
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

enum step_result rules_meet(struct thread *t, struct walk *w, long nr, long *result)
{
	if (front_unwanted(t) || !place_ready(t, w, nr))
		return STEP_NO_RULE;
	return rules_serve(t, w, nr, next_decided(t), &t->rules->before, result);
}

/* A rule that adds calls is asked for, one that names this call `so`. */
static enum step_result meet_added(struct thread *t, struct walk *w, long nr, long *result,
				   uint8_t so, enum rules_verdict (*what)(struct thread *))
{
	struct rules_host host = { peek, bytes };

	if (call_unwanted(t, nr, so) || !place_ready(t, w, nr))
		return STEP_NO_RULE;
	run_ready(t, &host, false);
	return rules_serve(t, w, nr, rules_ask(t, what), &t->rules->before, result);
}

enum step_result rules_meet_first(struct thread *t, struct walk *w, long nr, long *result)
{
	return meet_added(t, w, nr, result, RULES_WANTS_NOW, ask_first);
}

enum step_result rules_meet_unexpected(struct thread *t, struct walk *w, long nr, long *result)
{
	return meet_added(t, w, nr, result, RULES_WANTS_FIRST, ask_unexpected);
}

/* Only where a rule names the call: it never waits for the leader otherwise. */
enum step_result rules_meet_local(struct thread *t, struct walk *w, long nr, long *result)
{
	enum step_result step;

	if (call_unwanted(t, nr, RULES_WANTS_CALL | RULES_WANTS_FIRST) || !place_ready(t, w, nr) ||
	    !(rules_want(&t->rules->rules, RULES_THREAD, (uint32_t)nr) &
	      (RULES_WANTS_CALL | RULES_WANTS_FIRST)))
		return STEP_NO_RULE;
	step = rules_meet_first(t, w, nr, result);
	if (step != STEP_NO_RULE)
		return step;
	do
		step = rules_serve(t, w, nr, next_decided(t), &t->rules->before, result);
	while (step == STEP_AGAIN && place_ready(t, w, nr));
	if (step != STEP_NO_RULE)
		return step;
	return rules_meet_unexpected(t, w, nr, result);
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

	if (front_unwanted(t) || !place_ready(t, &w, NO_CALL) || t->rules->state.active)
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

/* --- what reports say of rules ------------------------------------------------------------------ */

static void text_copy(char *to, size_t size, const char *from)
{
	size_t n = 0;

	/* Names lie in the object, which may be damaged. */
	while (n + 1 < size && !target_in(&to[n], (uint64_t)from + n, 1) && to[n])
		n++;
	to[n] = 0;
}

static bool is_memory(const struct rules_call *call, unsigned arg)
{
	const struct call_desc *d = call_find_variant(call->nr, call->args);

	return d && arg < d->nargs && d->args[arg].kind >= KIND_VALUES;
}

static void value_bytes(struct note_value *v, struct view bytes)
{
	v->memory = 1;
	v->len = bytes.len_;
	target_in(v->bytes, (uint64_t)bytes.at_,
		  bytes.len_ < sizeof(v->bytes) ? bytes.len_ : sizeof(v->bytes));
}

static void value_take(struct thread *t, struct note_value *v, const struct rules_call *call,
		       unsigned arg)
{
	*v = (struct note_value){ .known = 1, .number = call->args[arg % RULES_ARGS] };
	if (is_memory(call, arg))
		value_bytes(v, bytes(t, call, arg));
}

/* Of a whole call: the first content that there is, else its first argument. */
static unsigned telling_arg(struct thread *t, const struct rules_call *call)
{
	for (unsigned i = 0; i < RULES_ARGS; i++)
		if (is_memory(call, i) && bytes(t, call, i).len_)
			return i;
	return 0;
}

/* What the rule was tried on, and what that had there. */
static void note_had(struct thread *t, struct rule_note *to)
{
	struct rules_thread *rt = t->rules;
	const struct rules_call *call = to->step & 0x80 ? &rt->call : peek(t, to->step);

	if (!call)
		return;
	if (to->why != RULES_WHY_ARG && to->why != RULES_WHY_FOREIGN)
		to->arg = (uint8_t)telling_arg(t, call);
	to->had_call = call->nr + 1;
	value_take(t, &to->had, call, to->arg);
}

/* A match whose content or number, as the rule left it, is another. */
static void note_made(struct thread *t, struct rule_note *to)
{
	struct rules_thread *rt = t->rules;
	const struct rules_edit *edit = &rt->answer.edit;
	unsigned arg = rt->mismatch.arg % RULES_ARGS;
	const struct rules_call *call = peek(t, rt->answer.event);

	to->why = RULES_WHY_DIFFERS;
	to->step = 0x80;
	to->arg = (uint8_t)arg;
	to->had_call = rt->call.nr + 1;
	value_take(t, &to->had, &rt->call, arg);
	if (!call)
		return;
	to->want_made = 1;
	value_take(t, &to->made, call, arg);
	if (!(edit->edited >> arg & 1))
		return;
	to->made.number = edit->args[arg];
	if (to->made.memory)
		value_bytes(&to->made, edit->buf[arg]);
}

static void note(struct thread *t, enum note_kind kind, unsigned rule, const char *text)
{
	struct rules_thread *rt = t->rules;
	struct rule_note *to = &t->slot->rule;
	const struct rules_object *o = rt->now ? &rt->rules.object : NULL;
	bool inner;

	*to = (struct rule_note){ .kind = kind, .why = rt->run.why, .step = rt->run.why_step,
				  .arg = rt->run.why_arg };
	if (text)
		text_copy(to->text, sizeof(to->text), text);
	if (!o || rule >= o->rules)
		return;
	if (kind != NOTE_FAILED && rt->differs)
		note_made(t, to);
	else if (kind != NOTE_FAILED)
		note_had(t, to);
	inner = rt->run.line && (kind == NOTE_FAILED || to->why == RULES_WHY_GUARD);
	if (!text)
		text_copy(to->text, sizeof(to->text), o->wanted + rt->run.why_want);
	to->line = inner ? rt->run.line : o->rows[rule].line;
	text_copy(to->name, sizeof(to->name), o->text + o->rows[rule].name);
	text_copy(to->file, sizeof(to->file),
		  o->text + (inner ? rt->run.file : o->rows[rule].file));
}

static enum rules_verdict ask_nearest(struct thread *t)
{
	int rule = rules_nearest(&t->rules->rules, &t->rules->run);

	t->rules->answer.rule = (uint16_t)rule;
	return rule < 0 ? RULES_DEFAULT : RULES_MATCH;
}

/* It holds, but is one for what a rule's call opened, and this is not: then that is why. */
static void foreign_note(struct rules_thread *rt)
{
	const struct rules_object *o = &rt->rules.object;
	unsigned pos = rt->run.why_step & 0x7f;

	if (rt->run.why == RULES_WHY_NONE && rt->run.why_step & 0x80 &&
	    o->outs[o->rows[rt->answer.rule].first_out + pos].flags & RULES_OUT_PRIVATE &&
	    !rules_opened(rt->call.args[0]))
		rules_no(&rt->run, RULES_WHY_FOREIGN, 0x80u | pos, 0, 0);
}

void rules_note_nearest(struct thread *t, struct walk *w, long nr)
{
	struct rules_host host = { peek, bytes };
	struct rules_thread *rt = t->rules;

	t->slot->rule.kind = NOTE_NONE;
	if (!rt || !rt->now)
		return;
	if (rt->state.active) {
		note(t, NOTE_FOLLOWED, rt->state.active - 1u, NULL);
		return;
	}
	/* It may be one that no rule names, and so none that they were asked about. */
	if (!place_ready(t, w, nr))
		return;
	run_ready(t, &host, true);
	if (rules_ask(t, ask_nearest) != RULES_MATCH)
		return;
	foreign_note(rt);
	note(t, NOTE_NEAREST, rt->answer.rule, NULL);
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

	note(t, NOTE_FAILED, t->rules->answer.rule, text);
	place_clear(t->rules);
	reply = request_ask(t, REQ_VERDICT, VERDICT_FAULTY, 0, 0);
	if (reply != ANSWER_RETRY)
		OWN1(__NR_exit_group, 1);
	return STEP_AGAIN;
}
