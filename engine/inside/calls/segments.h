/* System V memory of the leader and of its followers. */
#ifndef MVE_INSIDE_SEGMENTS_H
#define MVE_INSIDE_SEGMENTS_H

#include "engine/inside/gate/thread.h"

/* What the leader got by shmget, shmctl and shmat; and shmdt, of any version. */
void shm_made(const uint64_t *args, long id);
void shm_changed(const uint64_t *args);
long shm_attach(struct thread *t, uint64_t leaders);
long shm_detach(struct thread *t);

#endif
