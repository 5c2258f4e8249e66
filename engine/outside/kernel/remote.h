/*
 * Working on a stopped process: its memory, and system calls made in its name.
 */
#ifndef MVE_OUTSIDE_REMOTE_H
#define MVE_OUTSIDE_REMOTE_H

#include <stdint.h>
#include <sys/types.h>
#include <sys/user.h>

struct remote {
	pid_t pid;
	int memory;			/* /proc/PID/mem */
	uint64_t mask;			/* the thread's signal mask */
	struct user_regs_struct regs;	/* at the beginning */
	uint8_t saved[8];		/* the bytes at its rip */
};

/*
 * Takes hold of a tracee that stands at its exec stop: goes on to the end of
 * the execve.  0 or a negative errno; remote_end() only after 0.
 */
int remote_begin(struct remote *r, pid_t pid);

/* Puts back what remote_begin changed; the registers become `regs`. */
int remote_end(struct remote *r, const struct user_regs_struct *regs);

/* A system call in the tracee's name; its result. */
long remote_call(struct remote *r, long nr, const uint64_t args[6]);
#define REMOTE(r, nr, ...) remote_call(r, nr, (const uint64_t[6]){ __VA_ARGS__ })

#define BATCH_MAX	24

struct batch_call {
	long nr;
	uint64_t arg[6];
};

/*
 * Several calls at one go, which is one stop instead of one each: the code for them is
 * written at `code`, where the tracee may execute, and their results come by way of
 * `scratch`, where it may write.  All are made, whether those before failed or not.  0 or
 * a negative errno.
 */
int remote_batch(struct remote *r, uint64_t code, uint64_t scratch, const struct batch_call *call,
		 unsigned n, long *result);

/* The memory of a process, by an open /proc/PID/mem; 0 or a negative errno. */
int memory_open(pid_t pid);
int memory_read(int memory, uint64_t at, void *to, size_t len);
int memory_write(int memory, uint64_t at, const void *from, size_t len);

/*
 * The same without a descriptor, of a process that may run: what there is up to
 * the first hole; bytes read, or a negative errno.
 */
long memory_peek(pid_t pid, uint64_t at, void *to, size_t len);

#endif
