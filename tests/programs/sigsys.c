/*
 * A program with a seccomp filter of its own that traps, and a handler of
 * its own for SIGSYS (Chromium's sandbox, gVisor, some Go programs): it sees
 * its own traps with the right call, address and arguments, and a SIGSYS
 * that somebody sends; nothing else.
 */
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <ucontext.h>
#include "check.h"

static volatile sig_atomic_t handled;
static volatile siginfo_t last;
static volatile greg_t regs[NGREG];

static void handler(int sig, siginfo_t *info, void *context)
{
	ucontext_t *uc = context;

	handled++;
	last = *info;
	for (int i = 0; i < NGREG; i++)
		regs[i] = uc->uc_mcontext.gregs[i];
	if (info->si_code == 1)	/* SYS_SECCOMP: a result of our own */
		uc->uc_mcontext.gregs[REG_RAX] = 4321;
}

static void trap_uname_and_time(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_uname, 1, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getsid, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP | 7),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { COUNT(code), code };

	CHECK_EQ(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
	CHECK_EQ(raw3(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program), 0);
}

static void one_trap(void)
{
	static char where;
	extern char behind_trap[];
	long ret;

	handled = 0;
	asm volatile("syscall\n.globl behind_trap\n.hidden behind_trap\n"
		     "behind_trap:" : "=a"(ret)
		     : "0"(SYS_uname), "D"(&where), "S"(22l), "d"(33l)
		     : "rcx", "r11", "memory");
	CHECK_EQ(ret, 4321);
	CHECK_EQ(handled, 1);
	CHECK_EQ(last.si_signo, SIGSYS);
	CHECK_EQ(last.si_code, 1);
	CHECK_EQ(last.si_errno, 7);
	CHECK_EQ(last.si_syscall, SYS_uname);
	CHECK_EQ(last.si_arch, AUDIT_ARCH_X86_64);
	CHECK_EQ(last.si_call_addr, behind_trap);
	CHECK_EQ(regs[REG_RAX], SYS_uname);
	CHECK_EQ(regs[REG_RDI], &where);
	CHECK_EQ(regs[REG_RSI], 22);
	CHECK_EQ(regs[REG_RDX], 33);
	CHECK_EQ(regs[REG_RIP], behind_trap);
}

static void sent(void)
{
	handled = 0;
	CHECK_EQ(kill(getpid(), SIGSYS), 0);
	CHECK_EQ(handled, 1);
	CHECK_EQ(last.si_code, SI_USER);
	CHECK_EQ(last.si_pid, getpid());
	CHECK_EQ(raise(SIGSYS), 0);
	CHECK_EQ(handled, 2);
	CHECK_EQ(last.si_code, SI_TKILL);
	for (int i = 0; i < 100; i++)
		CHECK_EQ(raw0(SYS_getppid), getppid());
	CHECK_EQ(handled, 2);
}

static void killed_without_handler(void)
{
	on_signal(SIGSYS, SIG_DFL, 0);
	trap_uname_and_time();
	raw0(SYS_getsid);
}

static void killed_when_blocked(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGSYS);
	sigprocmask(SIG_BLOCK, &set, NULL);
	trap_uname_and_time();
	raw0(SYS_getsid);
}

static void handle_all(void)
{
	on_siginfo(SIGSYS, handler, 0);
	sent();
	trap_uname_and_time();
	for (int i = 0; i < 100; i++)
		one_trap();
	sent();
}

int main(void)
{
	struct sigaction sa;

	CHECK_EQ(sigaction(SIGSYS, NULL, &sa), 0);
	CHECK(sa.sa_handler == SIG_DFL && !sa.sa_flags);
	IN_CHILD(handle_all);
	CHECK_EQ(child_status(killed_without_handler) & ~0x80, SIGSYS);
	CHECK_EQ(child_status(killed_when_blocked) & ~0x80, SIGSYS);
	on_signal(SIGSYS, SIG_IGN, 0);
	raise(SIGSYS);
	CHECK_EQ(sigaction(SIGSYS, NULL, &sa), 0);
	CHECK(sa.sa_handler == SIG_IGN);
	return passed("sigsys");
}
