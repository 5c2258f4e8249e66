/* What a version dies of. */
#ifndef MVE_INSIDE_CRASH_H
#define MVE_INSIDE_CRASH_H

#include "engine/inside/gate/thread.h"
#include "engine/inside/signal/ucontext.h"

/* Dies of a signal, as if nobody handled it. */
_Noreturn void crash_die(const struct thread *t, int sig);
/* The leader's call is about to kill this process; true: another leads, let it. */
bool crash_call(struct thread *t, long nr, const uint64_t *args);
/* Of a twin that changes: it dies of its own call here, if that is to kill it. */
void crash_offline(struct thread *t, long nr, const uint64_t *args);
/* Which signal the call sends to this process, or to a thread of it; 0: none, or to others. */
int crash_sent_to_us(const struct thread *t, long nr, const uint64_t *args);
/* It is about to exit: the same, if that is in a handler of a deadly signal. */
bool crash_exits(struct thread *t);
/* The monitor was told of this version's end: if another leads, the thread does no more. */
void crash_leave(struct thread *t);
/*
 * The signal that has cut its call short may be its death: true, it is, and to followers
 * there was no call; else they wait in front of it until that is known.
 */
bool crash_cuts(struct thread *t);
/* A follower's call is answered: what its leader sent itself by it, it would have, too. */
void crash_sent(const struct thread *t, long nr, const uint64_t *args);
/* The leader has sent a deadly signal by this event's call. */
bool crash_was_sent(const struct event *e);
/* It is one of those, and the version does not mean it. */
bool crash_is(struct thread *t, const uint8_t *info);
/* A follower is told of a signal, and whether its leader's version means it. */
void crash_meant(struct thread *t, int sig, bool meant);
/* A handler for one time is there to say last words. */
bool crash_is_last(int sig, const struct action *a);
/* The thread is about to die of it; it was at `at` that it faulted. */
void crash_tell(struct thread *t, int sig, uint64_t at, const struct gregs *r);

#endif
