/* Mappings of files in a follower. */
#ifndef MVE_INSIDE_FOLLOW_MMAP_H
#define MVE_INSIDE_FOLLOW_MMAP_H

#include "engine/inside/gate/thread.h"

long follow_mmap(struct thread *t);

#endif
