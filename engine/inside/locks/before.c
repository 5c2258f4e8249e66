/*
 * A thread may sleep in a function of locks since before that was hooked.  Nobody would tell
 * whom a wake-up meant, nor when the thread took its mutex; and of a pool of threads a twin's
 * kernel would wake another one than the leader's.  So the function returns to lock_late
 * (lock_gate.S) instead:
 *
 * - Who waits for a condition or a semaphore comes out of it: the futex call times out (park.c).
 *   A condition's waiter goes on as if woken by chance, which a program must bear; a
 *   semaphore's calls its function again, which is hooked now.  There is no twin before that.
 * - Who waits for a mutex, which may be for ever, is from then on where a hooked function's call
 *   would be: a leader tells that it has the lock, a follower gives it back and takes it in turn.
 * - Who is at work in one is about to take its lock, and draws no turn for it.  There is no twin
 *   before it is out.
 *
 * Which function it is is read from the stack, by libc's unwind tables: one that is still
 * there, or what the program's own call leads to, if that has jumped elsewhere.  A hooked one
 * begins with a jump to its board, which says the kind.
 */
#include <linux/errno.h>

#include "engine/abi/locks.h"
#include "engine/core/host.h"
#include "engine/core/must.h"
#include "engine/inside/gate/block.h"
#include "engine/inside/gate/thread.h"
#include "engine/inside/lanes/host.h"
#include "engine/inside/locks/before.h"
#include "engine/inside/locks/locks.h"
#include "engine/inside/order/turns.h"

#define FRAMES		8	/* of libc's, from its call up to what the program called */
#define PUSHED		4	/* words, by the instructions that a hook has moved to its board */
#define BOARD		64	/* bytes around those where an entry board is (abi/locks.h) */

extern char lock_late[], lock_led[], lock_led_taken[], lock_alone[], lock_gate_led[];

/* Such waits, by the thread's index; a child's threads are others. */
static struct late {
	int32_t vtid;		/* a copy's are other threads, and believe to be these */
	uint32_t kind;		/* LOCK_NONE: it has yet to be looked for */
	uint64_t slot, back, arg;	/* where on its stack it was told to come to us */
	uint64_t function, original;	/* without its hook */
} lates[AREA_THREADS];

/* --- which function it is ----------------------------------------------------------------- */

#define NEAR		0xeb
#define FAR		0xe9
#define CALL		0xe8
#define INDIRECT	0xff
#define OF_CALL		0x15	/* of a place that is counted from here */
#define OF_JUMP		0x25

static bool led_by(uint64_t *to, uint64_t operand)
{
	int32_t far;

	if (code_read(&far, operand, sizeof(far)))
		return false;
	*to = operand + sizeof(far) + (uint64_t)(int64_t)far;
	return true;
}

static bool led_by_word(uint64_t *to, uint64_t operand)
{
	return led_by(to, operand) && !code_read(to, *to, sizeof(*to));
}

/* Of the function, by its board (abi/locks.h); false: it is not hooked. */
static bool hooked(struct late *l, uint64_t function)
{
	struct { uint8_t mov, kind, zero[3], lea[3]; } b = { 0 };
	uint64_t at = function;
	int8_t near;

	/* A short jump leads to a long one. */
	if (!code_read(&b, at, 2) && b.mov == NEAR && !code_read(&near, at + 1, 1))
		at += 2 + (uint64_t)(int64_t)near;
	if (code_read(&b, at, 1) || b.mov != FAR || !led_by(&at, at + 1) ||
	    code_read(&b, at, sizeof(b)))
		return false;
	l->kind = b.kind;
	l->function = function;
	return b.mov == 0xb8 && b.kind < LOCK_KINDS && !b.zero[0] && b.lea[0] == 0x4c &&
	       b.lea[1] == 0x8d && b.lea[2] == 0x1d && led_by(&l->original, at + sizeof(b));
}

/* What the call calls that returns to `back`: by itself, or by a jump in the program. */
static uint64_t called_at(uint64_t back)
{
	static const uint8_t mark[] = { 0xf3, 0x0f, 0x1e, 0xfa };	/* endbr64 */
	uint8_t code[12] = { 0 };
	uint64_t to = 0;
	unsigned at = 0;

	if (code_read(code, back - 6, 6))
		return 0;
	if (code[0] == INDIRECT && code[1] == OF_CALL)
		return led_by_word(&to, back - 4) ? to : 0;
	if (code[1] != CALL || !led_by(&to, back - 4) || code_read(code, to, sizeof(code)))
		return 0;
	if (code[0] == mark[0] && code[1] == mark[1] && code[2] == mark[2] && code[3] == mark[3])
		at = sizeof(mark);
	at += code[at] == 0xf2;		/* bnd */
	if (code[at] == INDIRECT && code[at + 1] == OF_JUMP && !led_by_word(&to, to + at + 2))
		return 0;
	return to;
}

static bool is_of_mutex(const struct late *l)
{
	return l->kind == LOCK_MUTEX_LOCK && l->arg;
}

/* Such a wait can be ended. */
static bool is_sleep(const struct late *l)
{
	return lock_how_of[l->kind] == LOCK_BY_COND || (l->kind == LOCK_SEM_WAIT && l->arg);
}

/* Else it sleeps for as long as others will. */
static bool comes_out(const struct late *l)
{
	switch (lock_how_of[l->kind]) {
	case LOCK_BY_ONCE:
	case LOCK_BY_GUARD:
	case LOCK_BY_RESULT:
	case LOCK_BY_WAKE:
	case LOCK_BY_INIT:
		return false;		/* it takes nothing */
	default:
		return !l->arg || is_sleep(l) || is_of_mutex(l);
	}
}

/* --- coming out --------------------------------------------------------------------------- */

static void late_begin(struct thread *t, uint64_t slot, struct late l)
{
	uint64_t to = (uint64_t)lock_late;
	struct late *was = &lates[t->index];

	if (target_in(&l.back, slot, sizeof(l.back)))
		return;
	/* The gate has called it. */
	if (l.back == (uint64_t)lock_led || l.back == (uint64_t)lock_led_taken)
		return;
	/* Nobody has followed after all, and now it is looked at again. */
	if (l.back == to) {
		MUST(was->vtid == t->vtid);
		l.back = was->back;
	}
	/* What an allocator locks is ordered by nobody. */
	if (local_code_in(l.back) || target_out(slot, &to, sizeof(to)))
		return;
	l.vtid = t->vtid;
	l.slot = slot;
	*was = l;
}

/* One that is still in its function; if it is not left after all it is looked for again. */
static void before_undo(const struct thread *t)
{
	struct late *l = &lates[t->index];
	uint64_t to;

	if (l->vtid != t->vtid || !l->slot || target_in(&to, l->slot, sizeof(to)) ||
	    to != (uint64_t)lock_late)
		return;
	if (!target_out(l->slot, &l->back, sizeof(l->back)))
		*l = (struct late){ .vtid = t->vtid };
}

/* It has found that its lock is not led, and has yet to come to libc's own code. */
static bool begins_at(struct late *l, uint64_t pc, uint64_t slot)
{
	uint64_t back;

	return !target_in(&back, slot, sizeof(back)) && hooked(l, called_at(back)) &&
	       (pc - (l->original - BOARD) < 2 * BOARD ||
		pc - (uint64_t)lock_alone < (uint64_t)(lock_gate_led - lock_alone));
}

static void begin_note(struct thread *t, struct caller_place at)
{
	struct late l = { 0 };

	for (uint64_t slot = at.rsp; slot < at.rsp + PUSHED * sizeof(slot); slot += sizeof(slot))
		if (begins_at(&l, at.pc, slot)) {
			if (comes_out(&l))
				late_begin(t, slot, l);
			return;
		}
}

static void function_note(struct thread *t, struct caller_place at, uint64_t futex)
{
	struct late l = { .arg = futex };
	uint64_t function;

	for (int i = 0; i < FRAMES && caller_up(&at, &function, !i); i++)
		if ((hooked(&l, function) || hooked(&l, called_at(at.pc))) && comes_out(&l)) {
			late_begin(t, at.rsp - sizeof(l.back), l);
			return;
		}
}

void before_note(struct thread *t, struct caller_place at, uint64_t futex)
{
	struct late *l = &lates[t->index];

	MUST(before_awaited(t));
	begin_note(t, at);
	function_note(t, at, futex);
	if (l->kind == LOCK_NONE)
		l->vtid = 0;
}

void before_begin(const struct thread *t)
{
	const struct thread *o;

	for (uint32_t i = 0; (o = block_next(&i)); i++)
		if (o->pid == t->pid && lates[o->index].vtid != o->vtid)
			lates[o->index] = (struct late){ .vtid = o->vtid };
}

/* --- being left --------------------------------------------------------------------------- */

/* Who was in a function that the lock gate has called, when it stood last; by index. */
int32_t led_tids[AREA_THREADS];

static bool in_lock_gate(uint64_t at)
{
	extern char lock_gate_end[];

	return at - (uint64_t)lock_alone < (uint64_t)(lock_gate_end - lock_alone);
}

/*
 * A word of the stack that says so may be what is left of a call before.  By libc's tables it is
 * known, where the program has a libc that has any.
 */
static bool is_led(struct caller_place at)
{
	uint64_t function, rsp = at.rsp;

	if (in_lock_gate(at.pc - 1) || in_lock_gate(at.pc))
		return true;
	for (int i = 0; i < FRAMES && caller_up(&at, &function, !i); i++)
		if (in_lock_gate(at.pc))
			return true;
	return caller_in_known_libc(at.pc) && lock_is_led(rsp);
}

void before_left(struct thread *t, struct caller_place at)
{
	MUST(t->index < AREA_THREADS);
	before_undo(t);
	led_tids[t->index] = is_led(at) ? t->tid : 0;
}

bool before_sleeps(const struct thread *t)
{
	const struct late *l = &lates[t->index];

	return l->vtid == t->vtid && is_sleep(l);
}

bool before_awaited(const struct thread *t)
{
	const struct late *l = &lates[t->index];

	return l->vtid == t->vtid && !is_of_mutex(l);
}

/* All stand. */
const struct thread *before_any(const struct thread *t)
{
	const struct thread *o;

	for (uint32_t i = 0; (o = block_next(&i)); i++)
		if (o->pid == t->pid && before_awaited(o))
			return o;
	return NULL;
}

uint64_t before_over(struct thread *t, struct late_return *r)
{
	struct late *l = &lates[t->index];

	MUST(l->vtid == t->vtid);
	l->vtid = 0;
	*r = (struct late_return){ 0, l->arg, r->result, l->back };
	if (is_of_mutex(l)) {
		r->kind = l->kind;
		return l->original;
	}
	if (l->kind == LOCK_SEM_WAIT && l->arg && (int32_t)r->result == -1)
		return l->function;
	if (lock_how_of[l->kind] == LOCK_BY_COND && (int32_t)r->result == ETIMEDOUT)
		r->result = 0;
	return 0;
}
