/* A request that fails goes back, by the program's own runtime of checkpoints. */
#ifndef MVE_INSIDE_ROLLBACK_H
#define MVE_INSIDE_ROLLBACK_H

#include "engine/abi/rollback.h"
#include "engine/inside/gate/thread.h"
#include "engine/inside/signal/ucontext.h"

/* NULL: the program has no checkpoints, or nobody wants requests taken back. */
static inline struct rollback *rollback_of(void)
{
	return (struct rollback *)boot.rollback;
}

/* The program is about to begin. */
void rollback_begin(void);
/* The process leads from here on, or follows. */
void rollback_lead(struct thread *t);
void rollback_follow(struct thread *t);
/* This thread's request has a checkpoint. */
bool rollback_is_open(const struct thread *t);
/* Something has happened in it that cannot go back: from here on a fault is deadly. */
void rollback_spoil(const char *why);
/*
 * It has failed, by a signal at an address and a place in the program.  True: it goes on in
 * the runtime; false: the signal has its way, and the monitor has been told why.
 */
bool rollback_fault(struct thread *t, int sig, uint64_t at, struct gregs *r);
/* The same as the program is about to send itself the signal. */
bool rollback_call(struct thread *t, int sig);
/* The same for a follower whose leader's request was taken back while its own went on. */
bool rollback_told(struct thread *t);
/* The number is the runtime's own descriptor: no version has it of another. */
bool rollback_keeps(int32_t fd);
/* ROLLBACK_OTHERS */
long rollback_others(const struct thread *t, bool begins);
/* A handler of the program's begins, or is left. */
void rollback_handler(struct thread *t, bool begins);
/* What failed last, as rollback_fault was told; true: a follower's leader has said so before. */
bool rollback_failed(int *sig, uint64_t *at);
/* It is taken back; or it is not after all, that is told, and the program dies of it now. */
void rollback_over(bool taken_back);

#endif
