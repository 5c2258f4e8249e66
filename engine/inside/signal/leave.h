/* Taking a thread out of the gate or a board; what it may see of a call that was cut. */
#ifndef MVE_INSIDE_LEAVE_H
#define MVE_INSIDE_LEAVE_H

#include "engine/inside/gate/thread.h"
#include "engine/inside/signal/ucontext.h"

/* What the program may see of an interrupted call. */
void window_leave(uint64_t *rip);
void call_context(struct gregs *r, uint64_t resume, enum tier tier, bool done);
void sigreturn_leave(struct thread *t, struct gregs *r);
/* Takes a thread that a signal found on the short way out of the gate; to which place that is. */
void gate_leave(struct thread *t, struct gregs *r);
uint64_t gate_place(const struct thread *t, const struct gregs *r);
void call_again(struct thread *t, struct gregs *r);
void call_again_timed(const struct thread *t, struct gregs *r);
long call_cut(const struct thread *t, const struct gregs *r);
/* The same, or of one that is about to begin: whether it was cut is then not to be seen. */
long call_pending(const struct thread *t, const struct gregs *r);
/* It is not made any more, and has ended so. */
void call_end(struct gregs *r, long result);
/* C code of ours makes a call of the program's, which has not begun, or was cut short. */
bool call_begins(const struct gregs *r);
/*
 * A thread in C code, in a handler of ours: it comes to the end of its call, which is made
 * again from the start if it waits, as if a signal waited there.
 */
void boundary_ask(struct thread *t, struct ucontext_raw *uc);
void call_interrupt(struct thread *t, struct gregs *r);
/*
 * The bytes at rip, where an instruction was met: in place, or in `to`, with zeroes for
 * what cannot be read, where its page ends soon.
 */
#define CODE_LOOK	8
const uint8_t *code_at(uint64_t rip, uint8_t to[CODE_LOOK]);
bool copy_failed_at(struct gregs *r);
/* The same of the gate's look at the processor's counter. */
bool counter_failed_at(struct gregs *r);

#endif
