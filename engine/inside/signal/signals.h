/*
 * What the files about signals share: signals.c (arrival and delivery), leave.c
 * (the way out of the gate), caught.c (mve's own signals), sigcalls.c (the
 * program's calls).
 */
#ifndef MVE_INSIDE_SIGNALS_H
#define MVE_INSIDE_SIGNALS_H

#include "engine/inside/signal/ucontext.h"

#define SECCOMP_CODE	1			/* si_code SYS_SECCOMP */
#define AUTODISARM	((int32_t)(1u << 31))	/* SS_AUTODISARM */

/* signals.c */
bool is_handler(uint64_t handler);
long kernel_action(int sig, const struct action *a);
struct action action_for_kernel(int sig, const struct action *a);
/* A query of the runtime's own, when a handler is about to run. */
bool signal_asks(struct thread *t, long nr, long *result);

/* crash.c */
/* With followers, a death of these is told to the monitor first. */
bool crash_signal(int sig);
/* A handler for one time is there to say last words. */
bool crash_is_last(int sig, const struct action *a);
/* The thread is about to die of it; it was at `at` that it faulted. */
void crash_tell(struct thread *t, int sig, uint64_t at, const struct gregs *r);
/* A handler of a deadly signal is about to be told, or has begun with its frame at sp. */
void fault_mark(struct thread *t);
void fault_begin(struct thread *t, int sig, const struct altstack *alt, uint64_t sp);

/* sigframe.c */
bool on_stack(const struct altstack *a, uint64_t sp);
/* Builds the frame that the kernel would have built; its address, or 0: it has no room. */
uint64_t frame_build(struct thread *t, const struct action *a, const uint8_t *info,
		     const struct ucontext_raw *uc);

/* leave.c: what the program may see of an interrupted call. */
void window_leave(uint64_t *rip);
void call_context(struct gregs *r, uint64_t resume, enum tier tier, bool done);
void sigreturn_leave(struct thread *t, struct gregs *r);
void gate_leave(struct thread *t, struct gregs *r);
void call_again(struct thread *t, struct gregs *r);
long call_cut(const struct thread *t, const struct gregs *r);
bool in_short_call(uint64_t rip);
/* Tells its signals to followers. */
bool signal_leads(const struct thread *t);
void signal_overdue(struct thread *t, struct ucontext_raw *uc);
void call_interrupt(struct thread *t, struct gregs *r);
/*
 * The bytes at rip, where an instruction was met: in place, or in `to`, with zeroes for
 * what cannot be read, where its page ends soon.
 */
#define CODE_LOOK	8
const uint8_t *code_at(uint64_t rip, uint8_t to[CODE_LOOK]);
bool copy_failed_at(struct gregs *r);

/* caught.c: true when the signal was not the program's. */
bool hidden_serve(struct thread *t, int sig, const uint8_t *info,
		  struct ucontext_raw *uc);
void hidden_block(struct thread *t, uint64_t blocked);
bool hidden_come(struct thread *t, uint64_t unblocked);
void hidden_forget(const struct thread *t, int sig);
uint8_t *hidden_info(struct thread *t, int sig);

/* insn.c */
bool insn_caught(struct thread *t, struct ucontext_raw *uc);
bool insn_faults(struct thread *t, int *sig, uint8_t *info, const struct ucontext_raw *uc);

#endif
