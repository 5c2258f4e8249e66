/*
 * See seize.h.  The kernel lets nobody trace a process that executes a program, and who wants
 * to waits until it has: for the program's file, which may be one that nobody answers for.  No
 * thread of ours can wait in our place, since who seizes is the tracer.  But the wait ends with
 * a signal; and so that the call is not begun again behind that, its handler has it end as one
 * that failed, if the thread stands at the call's instruction, and else does nothing.  A signal
 * that comes before is followed by others.
 */
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include "engine/core/must.h"
#include "engine/outside/session/seize.h"
#include "engine/outside/session/reach.h"

#define SEIZE_MS	100
#define AGAIN_MS	5
#define SEIZE_SIGNAL	SIGVTALRM

extern const char seize_call[], seize_end[];

static __attribute__((noinline, noclone)) long seize(pid_t tid, long options)
{
	register long data __asm__("r10") = options;
	long result;

	__asm__ volatile(".globl seize_call, seize_end\n"
			 ".hidden seize_call, seize_end\n"
			 "seize_call: syscall\n"
			 "seize_end:"
			 : "=a"(result)
			 : "a"(SYS_ptrace), "D"(PTRACE_SEIZE), "S"((long)tid), "d"(0L), "r"(data)
			 : "rcx", "r11", "memory");
	return result;
}

static void call_end(int sig, siginfo_t *info, void *context)
{
	greg_t *r = ((ucontext_t *)context)->uc_mcontext.gregs;

	(void)sig, (void)info;
	if (r[REG_RIP] != (greg_t)(uintptr_t)seize_call)
		return;
	r[REG_RIP] = (greg_t)(uintptr_t)seize_end;
	r[REG_RAX] = -ETIME;
}

/* --- the time ------------------------------------------------------------------------- */

/* The loop's alone: a child of ours has no timer. */
static timer_t timer;
static pid_t timer_of;

static bool timer_ready(void)
{
	struct sigevent event = { .sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SEIZE_SIGNAL };

	event._sigev_un._tid = gettid();
	if (timer_of != getpid() && !timer_create(CLOCK_MONOTONIC, &event, &timer))
		timer_of = getpid();
	return timer_of == getpid();
}

static void timer_set(long first_ms)
{
	const struct itimerspec at = {
		.it_value = { 0, first_ms * 1000000 },
		.it_interval = { 0, first_ms ? AGAIN_MS * 1000000 : 0 },
	};

	timer_settime(timer, 0, &at, NULL);
}

static void alarm_set(sigset_t *set)
{
	sigemptyset(set);
	sigaddset(set, SEIZE_SIGNAL);
}

/* What is done with the signal, and whether it is blocked, is the server's to inherit. */
static int seize_within(pid_t tid, long options)
{
	struct sigaction action = { .sa_sigaction = call_end, .sa_flags = SA_SIGINFO }, before;
	const struct timespec none = { 0 };
	sigset_t own, mask;
	int result;

	alarm_set(&own);
	sigaction(SEIZE_SIGNAL, &action, &before);
	sigprocmask(SIG_UNBLOCK, &own, &mask);
	timer_set(SEIZE_MS);
	result = (int)seize(tid, options);
	sigprocmask(SIG_BLOCK, &own, NULL);
	timer_set(0);
	while (sigtimedwait(&own, NULL, &none) > 0)
		;
	sigaction(SEIZE_SIGNAL, &before, NULL);
	sigprocmask(SIG_SETMASK, &mask, NULL);
	return result;
}

int thread_seize(pid_t tid, long options)
{
	int result;

	MUST(tid > 0);
	if (!reach_may(tid))
		return -ETIME;
	if (!timer_ready())
		return -errno;
	result = seize_within(tid, options);
	if (result == -ETIME)
		reach_waited(tid, SEIZE_MS);
	return result;
}
