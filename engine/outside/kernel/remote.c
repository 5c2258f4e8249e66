/*
 * Remote calls.  The tracee stands at the first instruction of a new program,
 * before any of its code has run; `syscall; int3` is put into that page for a while, at its
 * start: the instruction itself may be the last of what is mapped.
 * All its signals wait meanwhile, except the SIGTRAP that ends a call, and a SIGSTOP, which no
 * mask holds back: that one is sent again at the end.
 */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include "engine/core/must.h"
#include "engine/outside/kernel/process.h"
#include "engine/outside/kernel/remote.h"

#define CALL_BYTES	2	/* of `syscall`; the trap stands behind it */

static const uint8_t call_code[8] = { 0x0f, 0x05, 0xcc, 0xcc, 0xcc, 0xcc, 0xcc, 0xcc };

/* Stopped by somebody, or continued: neither is where the call ends. */
static bool is_others(const siginfo_t *stop)
{
	return stop->si_code == CLD_TRAPPED &&
	       (stop->si_status == SIGSTOP ||
		stop->si_status == (SIGTRAP | PTRACE_EVENT_STOP << 8));
}

/*
 * Lets the tracee run until it stops again; *sig is what stopped it.  Its stop and its end
 * are only looked at: the one is over when it goes on, the other is the monitor's to collect.
 */
static int run_until_stop(struct remote *r, int *sig)
{
	siginfo_t stop;

	do {
		if (ptrace(PTRACE_CONT, r->pid, 0, 0) < 0)
			return -errno;
		while (waitid(P_PID, (id_t)r->pid, &stop,
			      WEXITED | WSTOPPED | WNOWAIT | __WALL) < 0)
			if (errno != EINTR)
				return -errno;
		*sig = stop.si_status;
		r->stops |= *sig == SIGSTOP;
	} while (is_others(&stop));
	return stop.si_code == CLD_TRAPPED || stop.si_code == CLD_STOPPED ? 0 : -ESRCH;
}

/* Of a stop and a SIGCONT the kernel keeps the one that came last. */
static void stop_again(const struct remote *r)
{
	if (r->stops && !process_awaits(r->pid, SIGCONT))
		kill(r->pid, SIGSTOP);
}

static int signals_hold(struct remote *r)
{
	uint64_t held = ~(1ull << (SIGTRAP - 1));

	if (ptrace(PTRACE_GETSIGMASK, r->pid, 8, &r->mask) < 0 ||
	    ptrace(PTRACE_SETSIGMASK, r->pid, 8, &held) < 0)
		return -errno;
	return 0;
}

static int begin_at_stop(struct remote *r)
{
	int result;

	if (ptrace(PTRACE_GETREGS, r->pid, 0, &r->regs) < 0)
		return -errno;
	r->regs.rax = 0;
	r->at = r->regs.rip & ~4095ull;
	result = memory_read(r->memory, r->at, r->saved, sizeof(r->saved));
	if (!result)
		result = memory_write(r->memory, r->at, call_code, sizeof(call_code));
	if (result)
		return result;
	result = signals_hold(r);
	if (result)
		memory_write(r->memory, r->at, r->saved, sizeof(r->saved));
	return result;
}

int remote_begin(struct remote *r, pid_t pid)
{
	int result;

	memset(r, 0, sizeof(*r));
	r->pid = pid;
	r->memory = memory_open(pid);
	if (r->memory < 0)
		return r->memory;
	result = begin_at_stop(r);
	if (result)
		memory_close(r->memory);
	return result;
}

int remote_pause(struct remote *r)
{
	MUST(!r->paused && !r->way);
	r->paused = true;
	return memory_write(r->memory, r->at, r->saved, sizeof(r->saved));
}

/* Where it fails calls fail, too: they must not run what stands there now. */
int remote_resume(struct remote *r)
{
	int result = memory_read(r->memory, r->at, r->saved, sizeof(r->saved));

	MUST(r->paused);
	if (!result)
		result = memory_write(r->memory, r->at, call_code, sizeof(call_code));
	r->paused = result != 0;
	return result;
}

int remote_end(struct remote *r, const struct user_regs_struct *regs)
{
	int result = r->paused ? 0 : memory_write(r->memory, r->at, r->saved, sizeof(r->saved));

	stop_again(r);
	if (ptrace(PTRACE_SETREGS, r->pid, 0, regs) < 0 ||
	    ptrace(PTRACE_SETSIGMASK, r->pid, 8, &r->mask) < 0)
		result = -errno;
	memory_close(r->memory);
	return result;
}

int remote_run(struct remote *r, uint64_t at)
{
	struct user_regs_struct regs = r->regs;
	int sig, result;

	regs.rip = at;
	regs.orig_rax = (uint64_t)-1;
	if (at && ptrace(PTRACE_SETREGS, r->pid, 0, &regs) < 0)
		return -errno;
	r->begun = true;
	result = run_until_stop(r, &sig);
	return result ? result : sig == SIGTRAP ? 0 : -EIO;
}

long remote_call(struct remote *r, long nr, const uint64_t args[6])
{
	struct user_regs_struct regs = r->regs;
	int sig, result;

	if (r->way)
		return r->way(r->way_of, nr, args);
	if (r->paused)
		return -EIO;
	/* The execve writes its result into rax on its way out: let it. */
	if (!r->begun && (result = remote_run(r, r->at + CALL_BYTES)))
		return result;
	regs.rip = r->at;
	regs.rax = (uint64_t)nr;
	regs.orig_rax = (uint64_t)-1;
	regs.rdi = args[0];
	regs.rsi = args[1];
	regs.rdx = args[2];
	regs.r10 = args[3];
	regs.r8 = args[4];
	regs.r9 = args[5];
	if (ptrace(PTRACE_SETREGS, r->pid, 0, &regs) < 0)
		return -errno;
	result = run_until_stop(r, &sig);
	if (result)
		return result;
	if (sig != SIGTRAP)
		return -EIO;
	if (ptrace(PTRACE_GETREGS, r->pid, 0, &regs) < 0)
		return -errno;
	return (long)regs.rax;
}
