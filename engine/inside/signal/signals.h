/*
 * What the files about signals share: signals.c (arrival and delivery), leave.c
 * (the way out of the gate), caught.c (mve's own signals), sigcalls.c (the
 * program's calls).
 */
#ifndef MVE_INSIDE_SIGNALS_H
#define MVE_INSIDE_SIGNALS_H

#include "engine/inside/gate/thread.h"
#include "engine/inside/signal/ucontext.h"

#define SECCOMP_CODE	1			/* si_code SYS_SECCOMP */
#define AUTODISARM	((int32_t)(1u << 31))	/* SS_AUTODISARM */

/* A query of the runtime's own, when a handler is about to run. */
bool signal_asks(struct thread *t, long nr, long *result);
void signal_overdue(struct thread *t, struct ucontext_raw *uc);

void signal_handle(int sig, uint8_t *info, struct ucontext_raw *uc);
void signal_exit(struct thread *t);
/* The signal that is deferred waits for a further call. */
bool signal_waits_on(struct thread *t);

#endif
