/*
 * The beginning of a program: the monitor has mapped the image, filled `boot`
 * and set the first thread going in inside_start, at the moment when the kernel
 * was about to enter the program.  When this is done the program begins as if
 * nothing had been.
 */
#include <asm/unistd.h>
#include <linux/signal.h>

#include "engine/inside/thread.h"

void inside_begin(struct thread *t);

/* What the last program of this process believed of the hidden signals. */
static void hidden_begin(struct thread *t)
{
	struct action *sys = &t->sig->action[SIGSYS], *ill = &t->sig->action[SIGILL];
	struct action *segv = &t->sig->action[SIGSEGV];
	const struct action dfl = { 0 }, ign = { .handler = (uint64_t)SIG_IGN };

	*sys = boot.hidden & SIGSYS_IGNORED ? ign : dfl;
	*ill = boot.hidden & SIGILL_IGNORED ? ign : dfl;
	*segv = boot.hidden & SIGSEGV_IGNORED ? ign : dfl;
	if (boot.hidden & SIGSEGV_BLOCKED)
		t->hidden_blocked |= SIG_BIT(SIGSEGV);
	if (boot.hidden & SIGSYS_BLOCKED)
		t->hidden_blocked |= SIG_BIT(SIGSYS);
	if (boot.hidden & SIGILL_BLOCKED)
		t->hidden_blocked |= SIG_BIT(SIGILL);
}

void inside_begin(struct thread *t)
{
	struct sighand *s = &process_sig;
	struct action now;

	block_prepare(t, 0);
	t->busy = 1;
	t->sig = s;
	t->pid = (int32_t)OWN0(__NR_getpid);
	t->tid = t->pid;
	t->frame.resume = boot.entry;
	t->frame.rsp = boot.stack;
	t->frame.flags = 0x202;
	/* Only "ignored" outlives an execve. */
	for (int sig = 1; sig <= SIGNALS; sig++)
		if (!OWN4(__NR_rt_sigaction, sig, 0, &now, 8))
			s->action[sig] = now;
	hidden_begin(t);
	roles_fill();
	slot_claim(t);
	signals_start(t);
	seal_arm(t);
}
