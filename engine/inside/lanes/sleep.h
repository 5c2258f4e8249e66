/*
 * How a follower's thread sleeps until its lane goes on, and how the leader's wakes it; and
 * the change of who leads, which wakes all.
 */
#ifndef MVE_INSIDE_SLEEP_H
#define MVE_INSIDE_SLEEP_H

#include "engine/core/pairs.h"
#include "engine/core/ring.h"
#include "engine/inside/gate/thread.h"

struct lock_call;

extern struct streams streams;

/*
 * Before a program has a second thread: everyone's barriers are its threads', too.  Later it
 * costs a grace period of the kernel's, some milliseconds; a second time it costs nothing.
 */
void barriers_begin(void);
/* What runs of the session's programs has seen what we wrote, and we what it wrote before. */
void everyones_barrier(void);

uint32_t change_now(void);
/* Sleeps until conduct.change is not `seen`, or for ns at most. */
void change_wait(uint32_t seen, uint64_t ns);
/* Wakes all that sleep there, of every version; the page need not be ours. */
void change_wake(void);

struct word {
	const uint32_t *at;	/* NULL: none */
	uint32_t seen;
};

/* What else ends a sleep for a lane. */
struct also {
	struct word word[3];
};

/*
 * Sleeps until the lane's head is not what the reader saw last, conduct.change is not `seen`,
 * the monitor has died, or one of `also` is not what it was; for ns at most, 0: without an end.
 */
void lane_rest(const struct reader *r, uint32_t seen, struct also also, uint64_t ns);
/* The same, but the lane's thread is not asked to wake us: for a time that is not long. */
void lane_sleep(const struct reader *r, uint32_t seen, struct also also, uint64_t ns);
/* Sleeps until one of some words is not what it was, as above; who changes it wakes. */
void words_sleep(const struct word *word, uint32_t words, uint32_t seen, uint64_t ns);
void word_wake(const uint32_t *word);
/* Wakes the lane's readers. */
void lane_wake(const struct section *s, uint32_t lane);

/* Something is to be done for who sleeps, or is no longer asleep. */
void sleepers_meet(struct thread *t);
/* The same, for what has been told on the program's stack, which is all of it: 0. */
long sleepers_told(struct thread *t, struct lock_call *c);

/* Behind each event: mostly there is one reader, who is as it was at the last event. */
static INLINE bool sleepers_differ(const struct thread *t)
{
	const struct twins *s = &t->twins;

	/* Who follows is read after the count. */
	return CONSUME(conduct_change, &streams.conduct->change) != s->of ||
	       LIGHT(sleeper, s->asleep) != s->seen;
}

/* Wakes the lane's readers, if one sleeps. */
static INLINE void sleepers_look(struct thread *t)
{
	if (__builtin_expect(sleepers_differ(t), 0))
		sleepers_meet(t);
}

/* The open event is told. */
static INLINE void lane_commit(struct thread *t)
{
	writer_commit(&t->writer);
	sleepers_look(t);
}

/* The thread tells in its lane from here on. */
static inline void lane_attach(struct thread *t, struct streams *s)
{
	writer_attach(&t->writer, s, t->lane);
	t->twins.of = TWINS_UNKNOWN;
	t->unheard = 0;
	t->edge = 0;
	for (uint32_t i = 0; i < KNOWN_EDGES; i++)
		known_edges(t)[i] = 0;
}

#endif
