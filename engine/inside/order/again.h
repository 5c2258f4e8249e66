/* Events that are met again, in a version that has gone back to its image. */
#ifndef MVE_INSIDE_AGAIN_H
#define MVE_INSIDE_AGAIN_H

#include "engine/inside/gate/thread.h"
#include "engine/inside/rewind/image.h"

void again_met(struct thread *t, uint64_t seq);

/* The thread is about to take the event. */
static inline void again_meet(struct thread *t, uint64_t seq)
{
	if (__builtin_expect(image_tries(), 0))
		again_met(t, seq);
}

#endif
