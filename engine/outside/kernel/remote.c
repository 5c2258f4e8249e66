/*
 * Remote calls.  The tracee stands at the first instruction of a new program,
 * before any of its code has run; `syscall; int3` is put there for a while.
 * All its signals wait meanwhile, except the SIGTRAP that ends a call.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "engine/outside/kernel/remote.h"

static const uint8_t call_code[8] = { 0x0f, 0x05, 0xcc, 0xcc, 0xcc, 0xcc, 0xcc, 0xcc };

int memory_open(pid_t pid)
{
	char name[64];
	int fd;

	snprintf(name, sizeof(name), "/proc/%d/mem", pid);
	fd = open(name, O_RDWR | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

int memory_read(int memory, uint64_t at, void *to, size_t len)
{
	ssize_t n = pread(memory, to, len, (off_t)at);

	return n == (ssize_t)len ? 0 : n < 0 ? -errno : -EFAULT;
}

int memory_write(int memory, uint64_t at, const void *from, size_t len)
{
	ssize_t n = pwrite(memory, from, len, (off_t)at);

	return n == (ssize_t)len ? 0 : n < 0 ? -errno : -EFAULT;
}

long memory_peek(pid_t pid, uint64_t at, void *to, size_t len)
{
	size_t got = 0;

	while (got < len) {
		uint64_t from = at + got;
		size_t want = 4096 - from % 4096 < len - got ? 4096 - from % 4096 : len - got;
		struct iovec here = { (char *)to + got, want }, there = { (void *)from, want };
		ssize_t n = process_vm_readv(pid, &here, 1, &there, 1, 0);

		if (n <= 0)
			return got ? (long)got : -errno;
		got += (size_t)n;
	}
	return (long)got;
}

/* Lets the tracee run until it stops again; the stop's status. */
static int run_until_stop(pid_t pid, int request, int *status)
{
	siginfo_t end;

	if (ptrace(request, pid, 0, 0) < 0)
		return -errno;
	/* An end is only looked at: the monitor collects it. */
	while (waitid(P_PID, (id_t)pid, &end, WEXITED | WSTOPPED | WNOWAIT | __WALL) < 0)
		if (errno != EINTR)
			return -errno;
	if (end.si_code == CLD_EXITED || end.si_code == CLD_KILLED || end.si_code == CLD_DUMPED)
		return -ESRCH;
	return waitpid(pid, status, __WALL) == pid && WIFSTOPPED(*status) ? 0 : -ESRCH;
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
	int status, result;

	/* The execve writes its result into rax on the way out: let it. */
	result = run_until_stop(r->pid, PTRACE_SYSCALL, &status);
	if (result)
		return result;
	if (ptrace(PTRACE_GETREGS, r->pid, 0, &r->regs) < 0)
		return -errno;
	result = signals_hold(r);
	if (!result)
		result = memory_read(r->memory, r->regs.rip, r->saved, sizeof(r->saved));
	if (!result)
		result = memory_write(r->memory, r->regs.rip, call_code, sizeof(call_code));
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
		close(r->memory);
	return result;
}

int remote_end(struct remote *r, const struct user_regs_struct *regs)
{
	int result = memory_write(r->memory, r->regs.rip, r->saved, sizeof(r->saved));

	if (ptrace(PTRACE_SETREGS, r->pid, 0, regs) < 0 ||
	    ptrace(PTRACE_SETSIGMASK, r->pid, 8, &r->mask) < 0)
		result = -errno;
	close(r->memory);
	return result;
}

/* --- many calls in one stop ------------------------------------------------------ */

#define CALL_CODE	77	/* seven moves, the call, and the result's store */

static uint8_t *put(uint8_t *to, const void *opcode, size_t n, uint64_t value, size_t bytes)
{
	memcpy(to, opcode, n);
	memcpy(to + n, &value, bytes);
	return to + n + bytes;
}

static uint8_t *batch_put(uint8_t *to, const struct batch_call *c, uint64_t result_at)
{
	static const char *const move[6] = { "\x48\xbf", "\x48\xbe", "\x48\xba",	/* rdi, rsi, rdx */
					     "\x49\xba", "\x49\xb8", "\x49\xb9" };	/* r10, r8, r9 */

	for (int i = 0; i < 6; i++)
		to = put(to, move[i], 2, c->arg[i], 8);
	to = put(to, "\xb8", 1, (uint64_t)c->nr, 4);		/* mov $nr,%eax */
	to = put(to, "\x0f\x05", 2, 0, 0);			/* syscall */
	return put(to, "\x48\xa3", 2, result_at, 8);		/* mov %rax,result */
}

/* From `at` to the trap behind the code that stands there. */
static int run_from(struct remote *r, uint64_t at)
{
	struct user_regs_struct regs = r->regs;
	int status, result;

	regs.rip = at;
	regs.orig_rax = (uint64_t)-1;
	if (ptrace(PTRACE_SETREGS, r->pid, 0, &regs) < 0)
		return -errno;
	result = run_until_stop(r->pid, PTRACE_CONT, &status);
	return result ? result : WSTOPSIG(status) == SIGTRAP ? 0 : -EIO;
}

int remote_batch(struct remote *r, uint64_t code, uint64_t scratch, const struct batch_call *call,
		 unsigned n, long *result)
{
	uint8_t bytes[BATCH_MAX * CALL_CODE + 1], *end = bytes;
	size_t len;
	int err;

	if (n > BATCH_MAX)
		return -E2BIG;
	for (unsigned i = 0; i < n; i++)
		end = batch_put(end, &call[i], scratch + i * sizeof(*result));
	*end++ = 0xcc;
	len = (size_t)(end - bytes);
	err = memory_write(r->memory, code, bytes, len);
	if (!err)
		err = run_from(r, code);
	if (!err)
		err = memory_read(r->memory, scratch, result, n * sizeof(*result));
	/* No call shall stand where nobody knows of it. */
	memset(bytes, 0, len);
	memory_write(r->memory, code, bytes, len);
	return err;
}

long remote_call(struct remote *r, long nr, const uint64_t args[6])
{
	struct user_regs_struct regs = r->regs;
	int status, result;

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
	result = run_until_stop(r->pid, PTRACE_CONT, &status);
	if (result)
		return result;
	if (WSTOPSIG(status) != SIGTRAP)
		return -EIO;
	if (ptrace(PTRACE_GETREGS, r->pid, 0, &regs) < 0)
		return -errno;
	return (long)regs.rax;
}
