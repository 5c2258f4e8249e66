/* Handlers of deadly signals: how they end is not known before. */
#ifndef MVE_INSIDE_FAULTING_H
#define MVE_INSIDE_FAULTING_H

#include "engine/core/ring.h"
#include "engine/inside/gate/thread.h"

/* A handler of a deadly signal is about to be told, or has begun with its frame at sp. */
void fault_mark(struct thread *t);
void fault_begin(struct thread *t, int sig, const struct altstack *alt, uint64_t sp);
/* A thread that is faulting makes a call, perhaps behind its handler. */
void fault_look(struct thread *t);
void fault_end(struct thread *t);
void fault_lead(struct thread *t);
/* The place is behind the fault of the lane's thread; whose version has died. */
bool fault_behind(const struct section *from, uint32_t lane, uint64_t pos);
bool fault_crashed(uint32_t source);
bool fault_stands(const struct thread *o);
void fault_wait(const struct thread *t, uint32_t seen, uint64_t ns);
/* This follower has sent itself the signal, as its leader has; a child of fork has not. */
void fault_sent(void);
void fault_fork(struct thread *t);

#endif
