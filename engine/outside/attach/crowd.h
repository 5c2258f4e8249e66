/*
 * The threads of a process that runs, held still by ptrace: each with the registers that it
 * goes on with.  If we are killed the kernel lets them go.
 */
#ifndef MVE_OUTSIDE_CROWD_H
#define MVE_OUTSIDE_CROWD_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/ptrace.h>
#include <sys/types.h>
#include <sys/user.h>

#define CALL_LEN	2	/* of `syscall` */

struct stander {
	pid_t tid;
	struct user_regs_struct regs;	/* a call that was cut short is made again by them */
	uint64_t mask;			/* of its signals */
	struct __ptrace_rseq_configuration rseq;
	uint64_t block;			/* of the inside; 0: none */
	bool again;			/* it stands before a call that was cut short, */
	bool cut;			/* which the kernel would not make again */
	bool runs;			/* it was let go on, and is ours still */
	bool told;			/* the process' signals come for it, or its children's */
	bool busy;			/* when we leave: it has to run first; */
	bool came;			/* when we leave: `regs` are the program's already */
};

struct crowd {
	pid_t pid;
	struct stander *stander;
	unsigned n, room;
	bool asked_to_stop;	/* SIGSTOP came meanwhile: it is sent again in the end */
};

/*
 * Stops every thread, also those that come meanwhile, until then (now_us()).  0, or
 * a negative errno and all go on: -ETIME: one did not stand in time; -EALREADY: they stand
 * already, by a signal of somebody's.
 */
int crowd_stop(struct crowd *c, pid_t pid, uint64_t until_us);

/* Threads that have been made since; as above.  Of a process that stands there are none. */
int crowd_look(struct crowd *c, uint64_t until_us);

/* Signals that the thread may get now, of its own or of its process', as bits. */
uint64_t stander_waits(const struct crowd *c, pid_t tid);

/* One goes on, with what the kernel has of it, and stands again; one that ends is forgotten. */
void crowd_let(struct crowd *c, unsigned who);
/* So long those that run get the signals that come to them. */
void crowd_pass(struct crowd *c, uint64_t until_us);
int crowd_catch(struct crowd *c, unsigned who, uint64_t until_us);
/* Runs to where a call of it begins or ends; -ETIME: it does not come there, and runs. */
int crowd_step_call(struct crowd *c, unsigned who, uint64_t until_us);
/* One runs one instruction of its own. */
int crowd_step(struct crowd *c, unsigned who);

/*
 * How long a thread may take that we send somewhere, in its own time: much more than it needs.
 * It is the program's, and may be made to go nowhere.  One that a busy machine gives no processor
 * to is waited for: stopped half way it would stay so.
 */
#define STEP_US		1000000

struct step_time {
	pid_t tid;
	uint64_t began_us, used_us;
};

struct step_time step_time_begin(const struct crowd *c, pid_t tid);
/* By the clock: whoever has a way back is to take it. */
bool step_time_is_late(const struct step_time *t);

/* Runs until it has made, or is about to make, the call that it is at; 0 or a negative errno. */
int stander_step_call(struct crowd *c, const struct step_time *t);

/* Registers and mask that a thread goes on with; kept as its own. */
int stander_set(struct stander *s, const struct user_regs_struct *regs, uint64_t mask);

/*
 * All go on that stand, with what is theirs by now; and crowd_go: all, and it is empty.  For one
 * that runs has to stand first, for however long that takes: it would be traced for ever, and
 * stand at its next signal.
 */
void crowd_release(struct crowd *c);
void crowd_go(struct crowd *c);

#endif
