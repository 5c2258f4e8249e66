/*
 * What the kernel says of a process.  A process is known by its pid and the time it began,
 * so that a pid that was given out again is never taken for it.
 */
#ifndef MVE_OUTSIDE_PROCESS_H
#define MVE_OUTSIDE_PROCESS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "engine/abi/request.h"

/* When it began, in clock ticks since boot; 0: there is none, or it has ended. */
uint64_t process_began(pid_t pid);
/* What its threads have used of processors. */
uint64_t process_used_ms(pid_t pid);
/* Of children that it has waited for. */
uint64_t process_ended_us(pid_t pid);
/* Its parent; 0: it has none that we see. */
pid_t process_parent(pid_t pid);
/* It is `of`, or a child of it, or of one of its children. */
bool process_descends(pid_t pid, pid_t of);
/* Who traces it, or 0. */
pid_t process_tracer(pid_t pid);
struct thread_status {
	uint32_t table;		/* how many descriptors its process has room for; 0: unknown */
	uint32_t threads;	/* of that */
	uint64_t pending, shared;	/* signals that wait for it, and for the process */
};

/* That of this process' first thread is to be had at once from now on. */
void thread_status_ready(pid_t pid);
/* What the kernel has of a thread, in one look; false: it is gone. */
bool thread_status(pid_t pid, pid_t tid, struct thread_status *s);
/* How many numbers its table of descriptors has room for; 0: unknown. */
uint32_t process_table(pid_t pid);
/* Real, effective, saved, and the file system's; false: it is gone. */
bool process_ids(pid_t pid, unsigned uid[4], unsigned gid[4]);
/* It lives, and the kernel does not let us look into it: it is not dumpable, say. */
bool process_closed(pid_t pid);
/* Its RLIM_NLIMITS limits, now and at most, as who may not ask the kernel for them has them. */
int process_limits(pid_t pid, uint64_t limit[][2]);
/* What it takes away from the rights of new files (umask); 022 if the kernel does not say. */
uint32_t process_mask(pid_t pid);
/* A filter of system calls is installed in it (seccomp). */
bool process_filtered(pid_t pid);
/* Its real user; of one that has ended, the overflow one. */
uid_t process_user(pid_t pid);
/* Whether this signal is on its way to it, to whichever thread. */
bool process_awaits(pid_t pid, int sig);
/* All its user ids are ours, and we are not root. */
bool process_like_us(pid_t pid);
/* A signal to that process and no other: 0, or a negative errno. */
int process_signal(pid_t pid, uint64_t began, int sig);
/* As in /proc; 0: it is not there. */
char thread_state(pid_t pid, pid_t tid);
bool thread_ended(pid_t pid, pid_t tid);
/* All of its threads have: a first one that has ended waits for the others. */
bool process_over(pid_t pid);
/* One that ends has given its memory up, and what /proc has of it belongs to root. */
bool thread_has_memory(pid_t pid, pid_t tid);
/* What the thread has used of processors; where nobody counts it, more than any limit. */
uint64_t thread_used_us(pid_t pid, pid_t tid);
/* How long this thread has waited for a processor; where nobody counts it, 0. */
uint64_t own_queued_us(void);
/* Whether the kernel would let the thread run, if there were a processor. */
bool thread_runs(pid_t pid, pid_t tid);
/* And what it is that it lacks. */
enum runs thread_wants(pid_t pid, pid_t tid);
/* ... or any thread of the process, of so many that are looked at. */
bool process_runs(pid_t pid, unsigned most);
/* Asks the thread to come to our code (abi/knock.h). */
void thread_knock(pid_t pid, pid_t tid);

/* We have more than one processor: who is waited for may run meanwhile. */
bool cpus_several(void);

#endif
