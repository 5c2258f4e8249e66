/*
 * Printing signals: sets, actions, what siginfo says, and wait status.
 */
#include <signal.h>
#include <string.h>
#include <sys/wait.h>

#include "engine/outside/print/print_parts.h"

struct kernel_sigaction {
	uint64_t handler;
	uint64_t flags;
	uint64_t restorer;
	uint64_t mask;
};
_Static_assert(sizeof(struct kernel_sigaction) == 32, "the kernel's");
_Static_assert(sizeof(siginfo_t) == 128, "what print_signal is given");

void pr_sigset_at(struct call_print *p, uint64_t addr, uint64_t count, unsigned arg)
{
	uint8_t set[128];

	if (call_failed(p) && p->row->args[arg].dir == DIR_OUT) {
		pr_addr(p, addr);
		return;
	}
	if ((count != 8 && (p->nr != CALL_rt_sigpending || !count || count > 8)) ||
	    call_failed(p) || !mem_get(p, addr, set, count)) {
		pr_addr(p, addr);
		return;
	}
	pr_sigset(p, set, count);
}

/* pselect6() and io_pgetevents() take a pointer to { set, size }. */
void pr_sigset_arg(struct call_print *p, uint64_t addr, uint64_t count, unsigned arg)
{
	uint64_t pair[2];

	(void)count;
	if (!pr_fetch(p, addr, pair, sizeof(pair)))
		return;
	pr(p, "{sigmask=");
	if (pair[0])
		pr_sigset_at(p, pair[0], pair[1], arg);
	else
		pr(p, "NULL");
	pr(p, ", sigsetsize=%llu}", (unsigned long long)pair[1]);
}

void pr_sigaction(struct call_print *p, const void *data)
{
	const struct kernel_sigaction *a = data;

	pr(p, "{sa_handler=");
	if (a->handler == 0)
		pr(p, "SIG_DFL");
	else if (a->handler == 1)
		pr(p, "SIG_IGN");
	else if (a->handler == UINT64_MAX)
		pr(p, "SIG_ERR");
	else
		pr_addr(p, a->handler);
	pr(p, ", sa_mask=");
	pr_sigset(p, &a->mask, sizeof(a->mask));
	pr(p, ", sa_flags=");
	pr_flags(p, &xlat_sa_flags, a->flags);
	if (a->flags & 0x04000000) {
		pr(p, ", sa_restorer=");
		pr_addr(p, a->restorer);
	}
	pr(p, "}");
}

void pr_stack(struct call_print *p, const void *data)
{
	const stack_t *s = data;

	pr(p, "{ss_sp=");
	pr_addr(p, (uintptr_t)s->ss_sp);
	pr(p, ", ss_flags=");
	pr_flags(p, &xlat_ss_flags, (uint32_t)s->ss_flags);
	pr(p, ", ss_size=%llu}", (unsigned long long)s->ss_size);
}

void pr_signum(struct call_print *p, const void *data)
{
	pr(p, "[");
	pr_signal(p, *(const int *)data);
	pr(p, "]");
}

/* Only the first half of a sigevent is looked at, by the kernel too. */
void pr_sigevent(struct call_print *p, uint64_t addr, uint64_t count, unsigned arg)
{
	struct sigevent event, *e = &event;

	(void)count, (void)arg;
	if (call_failed(p) || !mem_get(p, addr, &event, 32)) {
		pr_addr(p, addr);
		return;
	}
	pr(p, "{");
	if (e->sigev_value.sival_ptr)
		pr(p, "sigev_value={sival_int=%d, sival_ptr=%p}, ", e->sigev_value.sival_int,
		   e->sigev_value.sival_ptr);
	pr(p, "sigev_signo=");
	if (e->sigev_notify == SIGEV_SIGNAL || e->sigev_notify == SIGEV_THREAD_ID ||
	    e->sigev_notify == SIGEV_THREAD)
		pr_signal(p, e->sigev_signo);
	else
		pr(p, "%u", e->sigev_signo);
	pr(p, ", sigev_notify=");
	pr_enum(p, &xlat_sigev_types, (uint32_t)e->sigev_notify);
	if (e->sigev_notify == 4)
		pr(p, ", sigev_notify_thread_id=%d", e->_sigev_un._tid);
	if (e->sigev_notify == SIGEV_THREAD)
		pr(p, ", sigev_notify_function=%p, sigev_notify_attributes=%p",
		   (void *)e->sigev_notify_function, (void *)e->sigev_notify_attributes);
	pr(p, "}");
}

static const struct xlat *codes_of(int sig)
{
	switch (sig) {
	case SIGCHLD:
		return &xlat_sigchld_codes;
	case SIGSEGV:
		return &xlat_sigsegv_codes;
	case SIGBUS:
		return &xlat_sigbus_codes;
	case SIGFPE:
		return &xlat_sigfpe_codes;
	case SIGILL:
		return &xlat_sigill_codes;
	case SIGTRAP:
		return &xlat_sigtrap_codes;
	case SIGPOLL:
		return &xlat_sigpoll_codes;
	case SIGSYS:
		return &xlat_sigsys_codes;
	}
	return &xlat_si_codes;
}

static void pr_si_code(struct call_print *p, int sig, int code)
{
	const char *name = xlat_name(&xlat_si_codes, (uint32_t)code);

	if (!name)
		name = xlat_name(codes_of(sig), (uint32_t)code);
	if (name)
		pr(p, "%s", name);
	else
		pr(p, "%#x", code);
}

static void pr_ticks(struct call_print *p, const char *name, long ticks)
{
	pr(p, ", %s=%ld", name, ticks);
	if (ticks)
		pr(p, " /* %ld.%02ld s */", ticks / 100, ticks % 100);
}

static void pr_si_child(struct call_print *p, const siginfo_t *si)
{
	pr(p, ", si_pid=%d, si_uid=%u, si_status=", si->si_pid, si->si_uid);
	if (si->si_code == CLD_EXITED)
		pr(p, "%d", si->si_status);
	else
		pr_signal(p, si->si_status);
	pr_ticks(p, "si_utime", si->si_utime);
	pr_ticks(p, "si_stime", si->si_stime);
}

static void pr_si_value(struct call_print *p, const siginfo_t *si)
{
	pr(p, ", si_int=%d, si_ptr=", si->si_int);
	pr_addr(p, (uintptr_t)si->si_ptr);
}

/* The fields that the kernel fills in for a signal of its own. */
static void pr_si_kernel(struct call_print *p, const siginfo_t *si)
{
	switch (si->si_signo) {
	case SIGCHLD:
		pr_si_child(p, si);
		break;
	case SIGILL:
	case SIGFPE:
	case SIGSEGV:
	case SIGBUS:
	case SIGTRAP:
		pr(p, ", si_addr=");
		pr_addr(p, (uintptr_t)si->si_addr);
		break;
	case SIGPOLL:
		pr(p, ", si_band=%ld, si_fd=%d", si->si_band, si->si_fd);
		break;
	case SIGSYS:
		pr(p, ", si_call_addr=");
		pr_addr(p, (uintptr_t)si->si_call_addr);
		pr(p, ", si_syscall=");
		if (call_find(si->si_syscall))
			pr(p, "__NR_%s", call_find(si->si_syscall)->name);
		else
			pr(p, "%#x", si->si_syscall);
		pr(p, ", si_arch=%s", si->si_arch == 0xc000003e ? "AUDIT_ARCH_X86_64" :
		   "AUDIT_ARCH_I386");
		break;
	default:
		if (si->si_pid || si->si_uid)
			pr(p, ", si_pid=%d, si_uid=%u", si->si_pid, si->si_uid);
		if (si->si_ptr)
			pr_si_value(p, si);
	}
}

void pr_siginfo(struct call_print *p, const void *data)
{
	const siginfo_t *si = data;

	if (!si->si_signo) {
		pr(p, "{}");
		return;
	}
	pr(p, "{si_signo=");
	pr_signal(p, si->si_signo);
	pr(p, ", si_code=");
	pr_si_code(p, si->si_signo, si->si_code);
	if (si->si_errno)
		pr(p, ", si_errno=%s", strerrorname_np(si->si_errno) ?: "???");
	switch (si->si_code) {
	case SI_USER:
	case SI_TKILL:
		pr(p, ", si_pid=%d, si_uid=%u", si->si_pid, si->si_uid);
		break;
	case SI_TIMER:
		pr(p, ", si_timerid=%#x, si_overrun=%d", si->si_timerid, si->si_overrun);
		pr_si_value(p, si);
		break;
	default:
		if (si->si_code > 0 && si->si_code != SI_KERNEL) {
			pr_si_kernel(p, si);
			break;
		}
		if (si->si_code != SI_KERNEL || si->si_pid || si->si_uid)
			pr(p, ", si_pid=%d, si_uid=%u", si->si_pid, si->si_uid);
		if (si->si_ptr)
			pr_si_value(p, si);
	}
	pr(p, "}");
}

void pr_siginfo_at(struct call_print *p, uint64_t addr, uint64_t count, unsigned arg)
{
	siginfo_t si;

	(void)count;
	if (p->row->args[arg].dir == DIR_OUT &&
	    (call_failed(p) || (p->nr == CALL_rt_sigtimedwait && p->ret <= 0)))
		pr_addr(p, addr);
	else if (pr_fetch(p, addr, &si, sizeof(si)))
		pr_siginfo(p, &si);
}

static void pr_status(struct call_print *p, int s)
{
	pr(p, "[{");
	if (s == 0xffff) {
		pr(p, "WIFCONTINUED(s)");
	} else if (WIFSTOPPED(s)) {
		pr(p, "WIFSTOPPED(s) && WSTOPSIG(s) == ");
		pr_signal(p, WSTOPSIG(s) & 0x7f);
		if (WSTOPSIG(s) & 0x80)
			pr(p, " | 0x80");
		s &= ~0xffff;
	} else if (WIFSIGNALED(s)) {
		pr(p, "WIFSIGNALED(s) && WTERMSIG(s) == ");
		pr_signal(p, WTERMSIG(s));
		if (WCOREDUMP(s))
			pr(p, " && WCOREDUMP(s)");
	} else {
		pr(p, "WIFEXITED(s) && WEXITSTATUS(s) == %d", WEXITSTATUS(s));
	}
	pr(p, "}]");
}

void pr_wstatus(struct call_print *p, uint64_t addr, uint64_t count, unsigned arg)
{
	int status;

	(void)count, (void)arg;
	if (p->ret <= 0)
		pr_addr(p, addr);
	else if (pr_fetch(p, addr, &status, sizeof(status)))
		pr_status(p, status);
}

void print_signal(struct call_print *p, int sig, const void *info)
{
	p->len = 0;
	pr(p, "--- ");
	pr_signal(p, sig);
	pr(p, " ");
	if (info)
		pr_siginfo(p, info);
	else
		pr(p, "{}");
	pr(p, " ---");
}
