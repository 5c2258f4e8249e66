/* An image of this process: taken, asleep, and what it is when it goes on. */
#ifndef MVE_INSIDE_IMAGE_H
#define MVE_INSIDE_IMAGE_H

#include "engine/inside/gate/thread.h"
#include "engine/inside/rewind/stand.h"

/*
 * All threads stand: makes the copy and tells the monitor; false: that has been tried.  In the
 * copy it comes back when that goes on, and all threads are there.
 */
bool image_take(struct thread *t, uint32_t image);
/* The thread has taken an event: where much has been read another image is due. */
void image_read(struct thread *t);

/*
 * The process is another now, and so are the others of its version: an image that goes on, or
 * a leader's twin.  `was`: the parent of the one whose copy it is.
 */
void image_moved(struct thread *t, int32_t was);

/* The version leads: it has no image, and no child that the program did not make. */
void images_lead(struct thread *t);
void images_fork(struct thread *t);

/* How often it has gone on: events are met again. */
static inline uint32_t image_tries(void)
{
	return __atomic_load_n(&images()->tries, __ATOMIC_RELAXED);
}

/*
 * The order of the version's threads is lost, at this lock: it goes back to its image.  Comes
 * back where it cannot.
 */
void image_lost(struct thread *t, enum image_loss loss, uint64_t lock);

#endif
