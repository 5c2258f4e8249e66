/* A prepared server's updates: what its threads ask, and a twin that becomes another build. */
#ifndef MVE_INSIDE_OFFLINE_H
#define MVE_INSIDE_OFFLINE_H

#include "engine/inside/gate/thread.h"

/* thread.update: */
enum update_thread {
	UPDATE_THREAD_NOT,
	UPDATE_THREAD_OURS,	/* it serves updates, and has no lane */
	UPDATE_THREAD_POINT,	/* it stands at its point, or has since gone on */
	UPDATE_THREAD_OFFLINE,	/* of a twin that changes: its calls are its own */
};

/*
 * The thread of a new twin is about to go on: if that is to change before it follows it is
 * off-line; one that stands at no point waits until that is over.
 */
void offline_begin(struct thread *t);
bool offline_is(const struct thread *t);
/* A call of such a thread, or UPDATE_CALL. */
long offline_call(struct thread *t, long nr);

#endif
