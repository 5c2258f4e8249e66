/* sigaction, sigprocmask, sigaltstack, sigreturn and their like. */
#ifndef MVE_INSIDE_SIGCALLS_H
#define MVE_INSIDE_SIGCALLS_H

#include "engine/inside/gate/thread.h"

long serve_sigaction(struct thread *t);
long serve_sigprocmask(struct thread *t);
long serve_sigpending(struct thread *t);
long serve_sigaltstack(struct thread *t);
long serve_sigreturn(struct thread *t);
long serve_sigtimedwait(struct thread *t);
long serve_masked(struct thread *t, uint64_t *mask_at);
long serve_pselect(struct thread *t);
long serve_signalfd(struct thread *t);

#endif
