/* A follower waits for the next event of its lane, and takes it. */
#ifndef MVE_INSIDE_WAIT_H
#define MVE_INSIDE_WAIT_H

#include "engine/core/ring.h"
#include "engine/inside/gate/thread.h"

/* The stream makes no sense: the follower is dropped. */
void follow_broken(struct thread *t);
/* Nobody will ever ask for the follower again. */
bool follow_is_orphan(const struct thread *t);
/* What is asked of a wait for an event that need not come. */
enum over {
	OVER_NOT,	/* it goes on until the event comes, or a thread was told in its sleep */
	OVER_PERHAPS,	/* this is asked again soon */
	OVER_YES
};
typedef enum over over_test(void *what);

/* The next event; NULL when there is none left and this thread leads now. */
const struct event *follow_event(struct thread *t);
/* The same; NULL also, after a look or two, where over(what) says so. */
const struct event *follow_event_or(struct thread *t, over_test *over, void *what);
/* A thread that sleeps in a futex of its own finds that it was told something. */
void follow_told_asleep(void);
/* Where the stream has ended and is read: goes over to the next one, or leads. */
void follow_ended(struct thread *t);
uint8_t follow_take(struct thread *t);
bool follow_behind(struct thread *t, unsigned n, over_test *over, void *what);
void follow_skip_lane(struct thread *t);

#endif
