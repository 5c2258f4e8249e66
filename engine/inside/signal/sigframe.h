/* The frame of a handler, where it has room. */
#ifndef MVE_INSIDE_SIGFRAME_H
#define MVE_INSIDE_SIGFRAME_H

#include "engine/inside/gate/thread.h"
#include "engine/inside/signal/ucontext.h"

/*
 * The state of floating point and vectors that a program's frame names becomes that of a
 * frame of the kernel's; false: it has another form, or cannot be read.
 */
bool frame_fp_take(uint64_t ours, uint64_t theirs);
/* Builds the frame that the kernel would have built; its address, or 0: it has no room. */
uint64_t frame_build(struct thread *t, const struct action *a, const uint8_t *info,
		     const struct ucontext_raw *uc);

#endif
