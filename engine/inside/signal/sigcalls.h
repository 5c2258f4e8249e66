/* sigaction, sigprocmask, sigaltstack, sigreturn and their like. */
#ifndef MVE_INSIDE_SIGCALLS_H
#define MVE_INSIDE_SIGCALLS_H

#include "engine/core/walk.h"
#include "engine/inside/gate/thread.h"
#include "engine/inside/signal/ucontext.h"

long serve_sigaction(struct thread *t);
long serve_sigprocmask(struct thread *t);
long serve_sigpending(struct thread *t);
long serve_sigaltstack(struct thread *t);
long serve_sigreturn(struct thread *t);
/* It is not made now, or by the program itself: its frame is again what that has left there. */
void sigreturn_undo(struct thread *t);
/* A call that sends a signal was made, or answered: perhaps the thread has sent it to itself. */
void signal_owe(struct thread *t, const struct walk *w);
/* What an rt_sigreturn's frame says beside the registers becomes the thread's. */
void frame_settle(struct thread *t, const struct ucontext_raw *uc);
long serve_sigtimedwait(struct thread *t);
long serve_masked(struct thread *t, uint64_t *mask_at);
long serve_pselect(struct thread *t);
long serve_signalfd(struct thread *t);

#endif
