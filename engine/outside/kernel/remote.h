/*
 * Working on a stopped process: its memory, and system calls made in its name.
 */
#ifndef MVE_OUTSIDE_REMOTE_H
#define MVE_OUTSIDE_REMOTE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/user.h>

#include "engine/outside/session/memory.h"

struct remote {
	pid_t pid;
	int memory;			/* /proc/PID/mem */
	uint64_t mask;			/* the thread's signal mask */
	struct user_regs_struct regs;	/* at the beginning */
	uint64_t at;			/* where calls are made: the start of the page at its rip */
	uint8_t saved[8];		/* the bytes there */
	bool begun;			/* it has left its execve */
	bool stops;			/* somebody has stopped it meanwhile (SIGSTOP) */
	bool paused;			/* the bytes there are the program's: no call can be made */
	/* Of a program that runs already: how a call is made instead, and where what it points
	   to may be written (attach/stub.h); or NULL. */
	long (*way)(void *way_of, long nr, const uint64_t args[6]);
	void *way_of;
	uint64_t data;
};

/*
 * Takes hold of a tracee that stands at its exec stop.  0 or a negative errno;
 * remote_end() only after 0.
 */
int remote_begin(struct remote *r, pid_t pid);

/*
 * Around what changes or reads the code of the page: it is the program's meanwhile, and what
 * it is then is put back in the end.
 */
int remote_pause(struct remote *r);
int remote_resume(struct remote *r);

/* Puts back what remote_begin changed; the registers become `regs`. */
int remote_end(struct remote *r, const struct user_regs_struct *regs);

/* A system call in the tracee's name; its result. */
long remote_call(struct remote *r, long nr, const uint64_t args[6]);
#define REMOTE(r, nr, ...) remote_call(r, nr, (const uint64_t[6]){ __VA_ARGS__ })

/* Lets the tracee run from `at`, or 0: from where it stands, to the next trap; 0 or an errno. */
int remote_run(struct remote *r, uint64_t at);

/* --- many calls in few stops: remote_batch.c -------------------------------------- */

#define BATCH_MAX	40
#define BATCH_BYTES	3584	/* of code: less than a page */
#define BATCH_DATA	1024	/* what calls may point to */
#define BATCH_STOP	(-1l)	/* a number that is no call's: stops there */
#define BATCH_FINALLY	(-2l)	/* where those before go that must not fail, and do */
_Static_assert(BATCH_BYTES < 4096, "the page that the tracee stands in");
_Static_assert(BATCH_DATA + BATCH_MAX * 8 + 63 < 0x1000, "batch_data is so far under the stack");

/* What an argument is: itself, the 32-bit number at its address, or that and a result. */
enum batch_of { OF_VALUE, OF_WORD, OF_RESULT };	/* OF_RESULT + i: of call i */

struct batch_call {
	long nr;
	bool must;		/* not fail: else on to the next stop, or BATCH_FINALLY */
	uint8_t args;
	uint64_t arg[6];
	uint8_t of[6];
};

struct remote_batch {
	struct remote *r;
	const struct batch_call *call;	/* by `way`: all of them, and the next one */
	unsigned calls, next;
	size_t len;
	bool full;
	unsigned opens;
	uint16_t open[BATCH_MAX];
	uint8_t code[BATCH_BYTES], saved[BATCH_BYTES];
};

/* Where what the calls point to may be written: under the stack. */
static inline uint64_t batch_data(const struct remote *r)
{
	return r->data ? r->data : (r->regs.rsp - 0x1000) & ~63ull;
}

/*
 * Runs the calls up to the first stop, or to the end, where it also stands still; then on
 * to the next.  0 or a negative errno.  remote_batch_end() only after remote_batch_begin() gave 0.
 */
int remote_batch_begin(struct remote_batch *b, struct remote *r, const struct batch_call *call,
		       unsigned n);
int remote_batch_next(struct remote_batch *b);

/* What the first n calls came to; -1 for one that has not been reached. */
int remote_batch_results(const struct remote_batch *b, long *result, unsigned n);

/* Takes the code out again, and what was left under the stack. */
void remote_batch_end(struct remote_batch *b);

#endif
