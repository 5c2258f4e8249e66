/*
 * A leader's thread is *faulting* while a handler of a deadly signal runs that may end in
 * death, or go on as if nothing had been (crash.c).  Its lane is marked where that began, and
 * a follower that is not faulting itself stands there until it is known how it ends.
 */
#include <linux/signal.h>

#include "engine/core/must.h"
#include "engine/core/pairs.h"
#include "engine/core/ring.h"
#include "engine/inside/actions/actions.h"
#include "engine/inside/crash/faulting.h"
#include "engine/inside/gate/thread.h"
#include "engine/inside/lanes/host.h"
#include "engine/inside/signal/sigframe.h"

#define HANDLER_DEPTH	(8ull << 20)	/* of the stack that a handler may use */
enum faulting { FAULT_NOT, FAULT_ON_OWN, FAULT_ON_ALT };
_Static_assert(SIGSYS < 32, "deadly signals are bits of `meant`");

/*
 * This follower has sent itself a deadly signal that it has a handler for, as its leader has:
 * it runs that with its leader, and need not wait to hear how it ends.
 */
static uint32_t own_signal;

/* The half that changes: 0 while the handler runs. */
static const uint32_t *left_word(const struct section *s, uint32_t lane)
{
	return (const uint32_t *)&s->left[lane];
}

static bool leads(const struct thread *t)
{
	return t->has_lane && !t->following;
}

static void mark_set(const struct thread *t, uint64_t at)
{
	struct section *own = streams_section(&streams, streams.self);

	MUST(t->has_lane && t->lane < LANES);
	own->faulted[t->lane] = at + 1;
	/* What comes is told behind it. */
	PUBLISH(section_left, &own->left[t->lane], 0);
}

/* The last one that was left is forgotten. */
void fault_mark(struct thread *t)
{
	struct section *own = leads(t) ? streams_section(&streams, streams.self) : NULL;

	if (!t->faulting && own && (!own->faulted[t->lane] || own->left[t->lane]))
		mark_set(t, t->writer.lane->head);
}

void fault_begin(struct thread *t, int sig, const struct altstack *alt, uint64_t sp)
{
	if (t->faulting || !t->has_lane)
		return;
	fault_mark(t);
	MUST(crash_signal(sig));
	t->fault_sp = sp;
	t->fault_sig = (uint8_t)sig;
	PUBLISH(thread_faulting, &t->faulting, on_stack(alt, sp) ? FAULT_ON_ALT : FAULT_ON_OWN);
	t->slot->faulting = 1;
}

void fault_end(struct thread *t)
{
	if (!t->faulting)
		return;
	t->faulting = FAULT_NOT;
	t->slot->faulting = 0;
	__atomic_store_n(&own_signal, 0, __ATOMIC_RELAXED);
	if (!leads(t))
		return;
	PUBLISH(section_left, &streams_section(&streams, streams.self)->left[t->lane],
		t->writer.lane->head + 1);
	word_wake(left_word(streams_section(&streams, streams.self), t->lane));
}

/*
 * Whether the handler has been left, by its return or by a jump, shows in the stack of the
 * next call; the return itself is none.  One that comes to the same fault again dies of it.
 */
void fault_look(struct thread *t)
{
	uint64_t sp = t->frame.rsp;
	bool above = sp > t->fault_sp + 8 || (sp < t->fault_sp && t->fault_sp - sp > HANDLER_DEPTH);

	if (t->faulting == FAULT_ON_ALT && t->alt.size ? !on_stack(&t->alt, sp) : above)
		fault_end(t);
}

/* A version that comes to lead while its own handler runs. */
void fault_lead(struct thread *t)
{
	if (t->faulting)
		mark_set(t, 0);
}

bool fault_behind(const struct section *from, uint32_t lane, uint64_t pos)
{
	uint64_t left = CONSUME(section_left, &from->left[lane]);
	uint64_t mark = from->faulted[lane];

	return mark && pos + 1 >= mark && (!left || pos + 1 < left);
}

bool fault_crashed(uint32_t source)
{
	const struct conduct *c = streams.conduct;

	return (CONSUME(conduct_bits, &c->ended) & c->crashed) >> source & 1;
}

/* It waits to hear how the leader's handler ends. */
bool fault_stands(const struct thread *o)
{
	uint32_t source = o->reader.cursor->source % VERSIONS;

	/* Planned: what it did in its handler is as good as the rest. */
	if (CONSUME(thread_faulting, &o->faulting) ||
	    __atomic_load_n(&own_signal, __ATOMIC_RELAXED) ||
	    !fault_behind(o->reader.from, o->lane, o->reader.pos) ||
	    o->reader.from->left[o->lane])
		return false;
	return fault_crashed(source) || !(streams.conduct->ended >> source & 1);
}

void fault_wait(const struct thread *t, uint32_t seen, uint64_t ns)
{
	words_sleep(&(struct word){ left_word(t->reader.from, t->lane), 0 }, 1, seen, ns);
}

void fault_sent(void)
{
	MUST(streams.conduct);
	__atomic_store_n(&own_signal, 1, __ATOMIC_RELAXED);
}

/* What is pending is the parent's. */
void fault_fork(struct thread *t)
{
	(void)t;
	if (own_signal)
		own_signal = 0;
}
