/* Calls with code of their own: execve, exit, mmap, prctl and others. */
#ifndef MVE_INSIDE_SPECIAL_H
#define MVE_INSIDE_SPECIAL_H

#include "engine/inside/gate/thread.h"

long serve_special(struct thread *t, long nr);

#endif
