/*
 * Threads' blocks and their slots in the session area.
 *
 * A block is taken by the parent before a clone and given back by the thread's
 * own last instruction before exit (thread_exit in gate.S), so nothing may free
 * it later; but a child that shared our memory may have ended without that, by
 * exit_group or a signal.  Blocks are mapped once and used again.  A slot outlives its thread
 * only as counts: the next owner counts on.
 */
#include <asm/unistd.h>
#include <linux/errno.h>
#include <linux/signal.h>

#include "engine/core/must.h"
#include "engine/core/pairs.h"
#include "engine/inside/gate/block.h"
#include "engine/inside/gate/gate.h"
#include "engine/inside/gate/latch.h"
#include "engine/inside/gate/memory.h"
#include "engine/inside/gate/thread.h"

#define BLOCKS	AREA_THREADS

static struct thread *blocks[BLOCKS];
static uint64_t used[BLOCKS / 64];
static uint32_t used_high;	/* rows that were ever used are below this */
static struct slot no_slot;	/* for threads beyond AREA_THREADS */

/* Under the latch, or before there are others. */
static struct thread *block_use(uint32_t index)
{
	if (index >= used_high)
		__atomic_store_n(&used_high, index + 1, __ATOMIC_RELAXED);
	/* Atomic: a thread that ends clears its bit without the latch. */
	ANNOUNCE_BY(seal, fetch_or, &used[index / 64], 1ull << index % 64);
	return blocks[index];
}

/* Sets the fields that never change while the block lives. */
void block_prepare(struct thread *t, uint32_t index)
{
	extern char gate_patch[];

	MUST(index < BLOCKS);
	t->self = t;
	t->index = index;
	t->gate = (uint64_t)gate_patch;
	t->handlers = &role_handlers[0][0];
	t->stack_top = (uint64_t)t + BLOCK_STACK_TOP;
	blocks[index] = t;
	block_use(index);
}

static struct thread *block_map(uint32_t index)
{
	long at = own_map(BLOCK_SIZE);

	if (at < 0)
		return NULL;
	MUST(!((uint64_t)at % 4096));
	block_prepare((struct thread *)at, index);
	return blocks[index];
}

static struct thread *block_at(uint32_t index)
{
	MUST(index < BLOCKS);
	if (!blocks[index])
		return block_map(index);
	return block_use(index);
}

static struct thread *block_find(void)
{
	for (uint32_t w = 0; w < BLOCKS / 64; w++) {
		uint64_t bits = CONSUME(block_used, &used[w]);

		if (~bits)
			return block_at(w * 64 + (uint32_t)__builtin_ctzll(~bits));
	}
	return NULL;
}

/* Who waits for the child of a vfork frees its block himself. */
static bool is_gone(const struct thread *o)
{
	return is_guest(o) && !(o->clone_flags & CLONE_VFORK) && o->tid > 0 &&
	       o->pid != thread_self()->pid && OWN3(__NR_tgkill, o->pid, o->tid, 0) == -ESRCH;
}

static void guests_bury(void)
{
	struct thread *o;

	for (uint32_t i = 0; (o = block_next(&i)); i++)
		if (is_gone(o))
			block_free(o);
}

/* A block for a new thread, or NULL when there is none. */
struct thread *block_take(void)
{
	struct thread *t;

	latch_take(LATCH_blocks);
	t = block_find();
	if (!t) {
		guests_bury();
		t = block_find();
	}
	/* Not that of a thread which lives: that is its stack. */
	MUST(!t || (t != thread_self() && t->index < BLOCKS && blocks[t->index] == t));
	latch_give(LATCH_blocks);
	return t;
}

/* The thread's bit, where it is in this word. */
static uint64_t own_bits(const struct thread *t, uint32_t word)
{
	return t->index / 64 == word ? 1ull << t->index % 64 : 0;
}

/* After a fork the child has one thread.  A page in which nothing changes is not copied. */
void block_keep_only(struct thread *t)
{
	MUST(blocks[t->index] == t && t == thread_self());
	for (uint32_t w = 0; w < BLOCKS / 64; w++)
		if (used[w] != own_bits(t, w))
			used[w] = own_bits(t, w);
}

/* Nobody else has this memory: no other thread, nor a child that shares it. */
bool block_is_only(const struct thread *t)
{
	const uint32_t end = __atomic_load_n(&used_high, __ATOMIC_RELAXED);

	MUST(t == thread_self());	/* who alone could make another one */
	for (uint32_t w = 0; w * 64 < end; w++)
		if (CONSUME(block_used, &used[w]) != own_bits(t, w))
			return false;
	return true;
}

/* The block of a thread that lives, or may; NULL when the row is free. */
struct thread *block_live(uint32_t index)
{
	MUST(index < BLOCKS);
	uint64_t bits = LOOK(seal, &used[index / 64]);

	return bits >> index % 64 & 1 ? blocks[index] : NULL;
}

/* The block at or behind row *index whose thread lives; NULL: there is none. */
struct thread *block_next(uint32_t *index)
{
	const uint32_t end = __atomic_load_n(&used_high, __ATOMIC_RELAXED);

	MUST(end <= BLOCKS);
	for (uint32_t i = *index; i < end; i = (i / 64 + 1) * 64) {
		uint64_t bits = __atomic_load_n(&used[i / 64], __ATOMIC_RELAXED) >> i % 64;

		if (!bits)
			continue;
		*index = i + (uint32_t)__builtin_ctzll(bits);
		return blocks[*index];
	}
	return NULL;
}

/* For a block whose thread is known to be gone, or never began. */
void block_free(struct thread *t)
{
	/* Its own row, and not one that has been given back. */
	MUST(blocks[t->index] == t && used[t->index / 64] >> t->index % 64 & 1);
	MUST(t != thread_self());
	if (!t->in_exec)
		slot_release(t);
	PUBLISH_BY(block_used, fetch_and, &used[t->index / 64], ~(1ull << t->index % 64));
}

uint64_t *block_bitmap(uint32_t index);
uint64_t *block_bitmap(uint32_t index)
{
	MUST(index < BLOCKS);
	return &used[index / 64];
}

static uint64_t holder_of(const struct thread *t)
{
	return (uint64_t)(uint32_t)t->pid << 32 | (uint32_t)t->tid;
}

/*
 * By both ids at once: with the owner of one thread and the process of another a slot
 * would look like that of a dead one, and two threads would have it.
 */
static bool slot_try(struct thread *t, struct slot *s, uint64_t holder)
{
	if (!BOTH_IF(slot_holder, &s->holder, &holder, holder_of(t)))
		return false;
	s->vpid = s->vtid = 0;
	s->image = boot.image;
	s->unheld = s->asleep = 0;
	s->asked = RS_IDLE;
	t->slot = s;
	return true;
}

#define SLOT_PROBES	8	/* dead owners looked for at a claim */
_Static_assert(BLOCKS % 64 == 0 && BLOCKS == BRIEF_SLOTS, "bits of words, answers of slots");

static bool slot_is_free(uint64_t holder)
{
	return !(uint32_t)holder;
}

static bool slot_abandoned(uint64_t holder)
{
	return !slot_is_free(holder) &&
	       OWN3(__NR_tgkill, (int32_t)(holder >> 32), (uint32_t)holder, 0) == -ESRCH;
}

static uint64_t holder_now(const struct slot *s)
{
	return CONSUME(slot_holder, &s->holder);
}

static bool slot_reuse(struct thread *t, struct area *a, uint32_t high)
{
	/* Its own from before an execve: it would be a thread that nobody hears of any more. */
	for (uint32_t i = 0; i < high; i++)
		if (holder_now(&a->slot[i]) == holder_of(t) &&
		    slot_try(t, &a->slot[i], holder_of(t)))
			return true;
	for (uint32_t i = 0; i < high; i++) {
		uint64_t holder = holder_now(&a->slot[i]);

		if (slot_is_free(holder) && slot_try(t, &a->slot[i], holder))
			return true;
	}
	for (uint32_t n = 0; n < SLOT_PROBES && high; n++) {
		struct slot *s = &a->slot[((uint32_t)t->tid + n) % high];
		uint64_t holder = holder_now(s);

		if (slot_abandoned(holder) && slot_try(t, s, holder))
			return true;
	}
	return false;
}

/*
 * Says once more whose the thread's slot is, and that it is one that is looked at: a worker
 * that gave up root can have written there, and the monitor would hear of us no more.
 */
void slot_mend(struct thread *t)
{
	struct area *a = (struct area *)boot.area;
	uint32_t n = (uint32_t)(t->slot - a->slot);
	uint32_t high = __atomic_load_n(&a->slots_high, __ATOMIC_RELAXED);

	MUST(n < AREA_THREADS);

	PUBLISH(slot_holder, &t->slot->holder, holder_of(t));
	while (high <= n && !PUBLISH_IF(area_slots_high, &a->slots_high, &high, n + 1))
		;
}

/* Gives the thread a slot of the area to count and to ask in. */
void slot_claim(struct thread *t)
{
	struct area *a = (struct area *)boot.area;
	uint32_t high = __atomic_load_n(&a->slots_high, __ATOMIC_RELAXED);

	/* With an id that is 0 the slot would be a free one. */
	MUST(t->pid > 0 && t->tid > 0);
	t->slot = &no_slot;
	if (high > AREA_THREADS)
		high = AREA_THREADS;
	while (!slot_reuse(t, a, high) && high < AREA_THREADS) {
		if (__atomic_compare_exchange_n(&a->slots_high, &high, high + 1, false,
						__ATOMIC_RELAXED, __ATOMIC_RELAXED) &&
		    slot_try(t, &a->slot[high], 0))
			break;
	}
	t->counts = &t->slot->counts[0][0];
}

/* The counts stay: the session's sums are over all slots. */
void slot_release(struct thread *t)
{
	if (t->slot && t->slot != &no_slot &&
	    t->slot->owner == (uint32_t)t->tid) {
		/* The next one may be killed before it says what it is called. */
		t->slot->vpid = t->slot->vtid = 0;
		PUBLISH(slot_holder, &t->slot->owner, 0);
	}
	t->slot = &no_slot;
	t->counts = &no_slot.counts[0][0];
}

/*
 * Asked to stand before that, the thread has all blocked already, and its own mask is noted for
 * the end of its call; asked behind it, the caller's noting comes last.
 */
uint64_t signals_block(struct thread *t)
{
	uint64_t all = ALL_SIGNALS & ~HIDDEN_SIGNALS, was = 0;

	MUST(t == thread_self());	/* whose mask is changed */

	turn_begin(t);
	OWN4(__NR_rt_sigprocmask, SIG_SETMASK, &all, &was, 8);
	if (t->pending)
		was = t->held_mask;
	turn_end(t);
	return was;
}
