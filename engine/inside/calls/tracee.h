/* Registers of our threads, for who traces them. */
#ifndef MVE_INSIDE_TRACEE_H
#define MVE_INSIDE_TRACEE_H

#include "engine/inside/gate/thread.h"

long serve_ptrace(struct thread *t);

#endif
