/* Programs that have other rights than who executed them: they begin in another realm. */
#ifndef MVE_OUTSIDE_EXEC_MOVE_H
#define MVE_OUTSIDE_EXEC_MOVE_H

#include "engine/abi/layout.h"
#include "engine/outside/monitor/monitor.h"

/* The lane that a leader's thread names is its own, as only those with its rights can write. */
bool exec_move_is(const struct version *v, const struct request *r);
/*
 * The leader's program stands at its first instruction: t->lane is to be of the rights that it
 * has.  False: there is none yet.
 */
bool exec_move_lane(struct monitor *m, pid_t pid, struct tracee *t);
/* It is held, laid out so, or it is not: then nobody is told of it.  Its old lane is over. */
void exec_move_told(struct version *v, const struct tracee *t, const struct layout *layout);
/*
 * Where the program of a follower's twin begins, who asks in the lane that the leader's has left;
 * its thread is given the leader's layout.  False: the leader's never came to be.
 */
bool exec_move_follows(struct version *v, const struct request *r, struct tracee *t,
		       struct layout *like);
/* It stands there: it reads the new lane from the beginning, and nobody the old one. */
void exec_move_reads(struct version *v, pid_t pid, const struct tracee *t);

#endif
