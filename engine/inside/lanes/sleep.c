/*
 * Sleeping for a lane.  A follower's thread that finds nothing sleeps on the head of its lane,
 * which the leader's thread changes with each event; it can only read it, and that is enough to
 * wait.  The leader's thread makes no call for that: it looks behind each event whether its
 * twin says in `asleep` that it sleeps, and then wakes it.
 *
 * That none is missed is a handshake (pairs.h): one writes `head` and looks at `asleep`, the
 * other writes `asleep` and looks at `head`.  The leader, which does it at each event, pays no
 * barrier; who goes to sleep asks the kernel for one on all processors that run a program of
 * ours (membarrier(2)).  And `asleep` says which head was seen: a sleep that must end is told
 * from one behind the very event.  tests/model/sleep.pml is that for a model checker.
 *
 * What another version writes in `asleep` may be anything: it costs the leader a futex call
 * for an event at most, which `wakes` counts.
 *
 * Where the kernel has no futex_waitv (before 5.16), or a sandbox forbids one of the two,
 * nobody sleeps for longer than PAUSE_LAST_NS; nor when the monitor has died.
 */
#include <asm/unistd.h>
#include <linux/errno.h>
#include <linux/futex.h>
#include <linux/membarrier.h>
#include <linux/time.h>
#include <linux/time_types.h>

#include "engine/abi/waits.h"
#include "engine/core/must.h"
#include "engine/inside/gate/gate.h"
#include "engine/inside/gate/request.h"
#include "engine/inside/gate/ways.h"
#include "engine/inside/lanes/host.h"
#include "engine/inside/lanes/now.h"
#include "engine/inside/lanes/sleep.h"

static uint8_t blind;

void barriers_begin(void)
{
	OWN3(__NR_membarrier, MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED, 0, 0);
}

uint32_t change_now(void)
{
	/* What the monitor changed is read after the count. */
	return CONSUME(conduct_change, &streams.conduct->change);
}

static struct __kernel_timespec timespec_of(uint64_t ns)
{
	return (struct __kernel_timespec){ (long long)(ns / SECOND_NS),
					   (long long)(ns % SECOND_NS) };
}

void change_wait(uint32_t seen, uint64_t ns)
{
	struct __kernel_timespec t = timespec_of(ns);

	OWN4(__NR_futex, &streams.conduct->change, FUTEX_WAIT, seen, &t);
}

void word_wake(const uint32_t *word)
{
	OWN3(__NR_futex, word, FUTEX_WAKE, EVERYBODY);
}

void change_wake(void)
{
	word_wake(&streams.conduct->change);
}

/* The half that changes with each event: the other stands behind it. */
static const uint32_t *head_word(const struct section *s, uint32_t lane)
{
	return (const uint32_t *)&s->lane[lane].head;
}

void lane_wake(const struct section *s, uint32_t lane)
{
	MUST(lane < LANES);
	word_wake(head_word(s, lane));
}

/* --- who sleeps ------------------------------------------------------------------------ */

/* For the first of them. */
static void blind_sleep(const struct word *word, uint64_t ns)
{
	struct __kernel_timespec t = timespec_of(ns && ns < PAUSE_LAST_NS ? ns : PAUSE_LAST_NS);

	OWN4(__NR_futex, word->at, FUTEX_WAIT, word->seen, &t);
}

/* The kernel wakes one when the monitor dies. */
static void alive_pass_on(const uint32_t *alive)
{
	if (!monitor_alive())
		word_wake(alive);
}

static void word_add(struct futex_waitv *w, uint32_t *n, struct word word)
{
	w[(*n)++] = (struct futex_waitv){ .val = word.seen, .uaddr = (uint64_t)word.at,
					  .flags = FUTEX_32 };
}

void words_sleep(const struct word *word, uint32_t words, uint32_t seen, uint64_t ns)
{
	const uint32_t *alive = &brief()->alive.word;
	struct futex_waitv w[VERSIONS + 2];
	struct __kernel_timespec until;
	long result = -ENOSYS;
	uint32_t n = 0;

	MUST(words && words <= VERSIONS);
	word_add(w, &n, (struct word){ alive, __atomic_load_n(alive, __ATOMIC_RELAXED) });
	word_add(w, &n, (struct word){ &streams.conduct->change, seen });
	for (uint32_t i = 0; i < words; i++)
		word_add(w, &n, word[i]);
	if (!ns && !monitor_alive())
		ns = PAUSE_LAST_NS;
	until = timespec_of(clock_ns(CLOCK_MONOTONIC) + ns);
	if (!blind)
		result = OWN6(__NR_futex_waitv, w, n, 0, ns ? &until : NULL, CLOCK_MONOTONIC, 0);
	if (result == -ENOSYS || result == -EPERM) {
		blind = 1;
		blind_sleep(word, ns);
	}
	alive_pass_on(alive);
}

void lane_sleep(const struct reader *r, uint32_t seen, struct also also, uint64_t ns)
{
	struct word word[4] = { { head_word(r->from, r->index), (uint32_t)r->head } };
	uint32_t n = 1;

	MUST(r->index < LANES);
	for (uint32_t i = 0; i < 3; i++)
		if (also.word[i].at)
			word[n++] = also.word[i];
	words_sleep(word, n, seen, ns);
}

void everyones_barrier(void)
{
	if (OWN3(__NR_membarrier, MEMBARRIER_CMD_GLOBAL_EXPEDITED, 0, 0) < 0)
		blind = 1;
}

void lane_rest(const struct reader *r, uint32_t seen, struct also also, uint64_t ns)
{
	struct section *own = streams_section(&streams, streams.self);

	HEAVY(sleeper, &own->asleep[r->index], asleep_at(r->head), everyones_barrier());
	/* Its first step is the look at the head. */
	lane_sleep(r, seen, also, ns);
	__atomic_store_n(&own->asleep[r->index], 0, __ATOMIC_RELAXED);
}

/* --- who wakes ------------------------------------------------------------------------- */

static const uint32_t nobody;

static void sleepers_find(struct thread *t)
{
	struct twins *s = &t->twins;
	uint32_t bits;

	s->of = change_now();
	s->count = 0;
	bits = streams_followers(&streams, t->writer.section);
	t->unheard = !bits;
	if (!bits) {
		s->twin[s->count++] = (struct twin){ &nobody, 0 };
	}
	for (; bits; bits &= bits - 1) {
		uint32_t v = (uint32_t)__builtin_ctz(bits) % VERSIONS;
		const struct section *other = streams_section(&streams, v);

		MUST(s->count < VERSIONS);
		s->twin[s->count++] = (struct twin){ &other->asleep[t->lane], 0 };
	}
}

/*
 * Each sleep is woken from once: who has been woken may have to wait for a processor.  One that
 * has seen this event, and is about to sleep behind it, must be woken by the next.
 */
static bool sleeper_wakes(struct twin *twin, uint64_t head)
{
	uint32_t asleep = LIGHT(sleeper, twin->asleep);

	if (asleep == twin->seen || asleep == asleep_at(head))
		return false;
	twin->seen = asleep;
	return asleep;
}

void sleepers_meet(struct thread *t)
{
	struct twins *s = &t->twins;
	bool wake = false;

	if (s->of != change_now())
		sleepers_find(t);
	MUST(s->count && s->count <= VERSIONS);
	for (uint64_t i = 0; i < s->count; i++)
		wake |= sleeper_wakes(&s->twin[i], t->writer.head);
	s->asleep = s->twin[0].asleep;
	s->seen = s->count > 1 ? SEEN_NEVER : s->twin[0].seen;
	if (!wake)
		return;
	__atomic_fetch_add(&t->writer.section->wakes, 1, __ATOMIC_RELAXED);
	lane_wake(t->writer.section, t->lane);
}

long sleepers_told(struct thread *t, struct lock_call *c)
{
	(void)c;
	sleepers_meet(t);
	return 0;
}
