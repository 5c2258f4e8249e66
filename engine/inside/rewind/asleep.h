/* A twin's process that is to be an image on disk: see asleep.c. */
#ifndef MVE_INSIDE_ASLEEP_H
#define MVE_INSIDE_ASLEEP_H

#include "engine/inside/gate/thread.h"

/*
 * The process has one thread, which can ask the monitor.  It sleeps until it is killed, and comes
 * back in the process that is made of the file: in another session, as the version that stands
 * in boot.
 */
void asleep(struct thread *t);

#endif
