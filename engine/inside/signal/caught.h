/* mve's own signals: the net, marks, watched pages. */
#ifndef MVE_INSIDE_CAUGHT_H
#define MVE_INSIDE_CAUGHT_H

#include "engine/inside/gate/thread.h"
#include "engine/inside/signal/ucontext.h"

#define STRICT_TRAP	0x4d56	/* the data of our own filter's trap: seccomp.c */

/* True when the signal was not the program's. */
bool hidden_serve(struct thread *t, int sig, const uint8_t *info,
		  struct ucontext_raw *uc);

#endif
