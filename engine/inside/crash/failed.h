/* What becomes of a version in which mve itself fails. */
#ifndef MVE_INSIDE_FAILED_H
#define MVE_INSIDE_FAILED_H

#include "engine/inside/gate/thread.h"
#include "engine/inside/signal/ucontext.h"

/* From here on a MUST that fails is told. */
void failed_begin(void);
/* The first thread has its slot and its lane: so is what failed before that. */
void failed_begun(void);
/*
 * A fault that C code of the inside has made, in a call.  True: the context goes on outside of
 * what failed; false: it is to die of it where it is.
 */
bool failed_fault(struct thread *t, int sig, uint64_t at, struct ucontext_raw *uc);

#endif
