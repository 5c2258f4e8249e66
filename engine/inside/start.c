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
	s->action[SIGSYS] = (struct action){ 0 };
	if (boot.sigsys & SIGSYS_IGNORED)
		s->action[SIGSYS].handler = (uint64_t)SIG_IGN;
	t->sigsys_blocked = !!(boot.sigsys & SIGSYS_BLOCKED);
	roles_fill();
	slot_claim(t);
	thread_arm(t);
}
