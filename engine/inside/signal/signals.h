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

bool is_handler(uint64_t handler);
long kernel_action(int sig, const struct action *a);
struct action action_for_kernel(int sig, const struct action *a);
/* A query of the runtime's own, when a handler is about to run. */
bool signal_asks(struct thread *t, long nr, long *result);
/* Tells its signals to followers. */
bool signal_leads(const struct thread *t);
void signal_overdue(struct thread *t, struct ucontext_raw *uc);

void signal_handle(int sig, uint8_t *info, struct ucontext_raw *uc);
void signal_exit(struct thread *t);
void signals_start(struct thread *t);
void signals_deaf(struct thread *t);
void signals_hear(struct thread *t);
void sighand_clear(struct sighand *s);

#endif
