/*
 * Actions of signals: what the program wants of each, and what the kernel is told instead.
 */
#include <asm/unistd.h>
#include <linux/signal.h>

#include "engine/core/must.h"
#include "engine/inside/actions/actions.h"
#include "engine/inside/gate/gate.h"
#include "engine/inside/gate/latch.h"
#include "engine/inside/gate/memory.h"
#include "engine/inside/gate/thread.h"
#include "engine/inside/lanes/host.h"

extern char signal_entry[], signal_restorer[];

struct sighand process_sig;
LEADS bool signals_are_deaf;
LEADS static int32_t heard_by;	/* the process, which is about to lead; 0: none */

bool on_stack(const struct altstack *a, uint64_t sp)
{
	return sp > a->sp && sp - a->sp <= a->size;
}

bool is_handler(uint64_t handler)
{
	return handler != (uint64_t)SIG_DFL && handler != (uint64_t)SIG_IGN;
}

long kernel_action(int sig, const struct action *a)
{
	MUST(sig >= 1 && sig <= SIGNALS);
	return OWN4(__NR_rt_sigaction, sig, a, 0, 8);
}

static bool learnt;

void actions_learn(struct sighand *s)
{
	struct action now;

	MUST(s == &process_sig && !learnt);
	for (int sig = 1; sig <= SIGNALS; sig++)
		if (!OWN4(__NR_rt_sigaction, sig, 0, &now, 8))
			s->action[sig] = now;
	learnt = true;
}

/* Who was stopped on its way in, before it had learnt them, would give none. */
void actions_give_back(const struct sighand *s)
{
	MUST(!learnt || s == &process_sig);
	for (int sig = 1; learnt && sig <= SIGNALS; sig++)
		if (sig != SIGKILL && sig != SIGSTOP)
			kernel_action(sig, &s->action[sig]);
}

/* The action that the kernel gets for one of the program's. */
struct action action_for_kernel(int sig, const struct action *a)
{
	struct action k = *a;

	if (!(HIDDEN_SIGNALS & SIG_BIT(sig)) && !is_handler(a->handler) &&
	    !(a->handler == (uint64_t)SIG_DFL && (signals_are_deaf || crash_signal(sig))))
		return k;
	k.handler = (uint64_t)signal_entry;
	k.restorer = (uint64_t)signal_restorer;
	k.mask = ALL_SIGNALS;
	k.flags &= SA_RESTART | SA_NOCLDSTOP | SA_NOCLDWAIT;
	/* Ignored: natively it cuts no call short. */
	if (!is_handler(a->handler) && !signals_are_deaf)
		k.flags |= SA_RESTART;
	k.flags |= SA_SIGINFO | SA_ONSTACK | 0x04000000 /* SA_RESTORER */;
	return k;
}

/*
 * A follower is deaf to the world: every signal that would end or stop it comes
 * to us, and is dropped.  A leader only hears of its crash before it dies.
 */
void signals_deaf(struct thread *t)
{
	signals_are_deaf = t->following;
	for (int sig = 1; sig <= SIGNALS; sig++) {
		struct action k = action_for_kernel(sig, &t->sig->action[sig]);

		if (sig != SIGKILL && sig != SIGSTOP && (signals_are_deaf || crash_signal(sig)))
			kernel_action(sig, &k);
	}
}

/* It leads now: what the program wants of each signal is the kernel's again. */
void signals_hear(struct thread *t)
{
	bool heard = heard_by == t->pid;

	heard_by = 0;
	if (heard)
		return;
	signals_are_deaf = false;
	for (int sig = 1; sig <= SIGNALS; sig++) {
		struct action k = action_for_kernel(sig, &t->sig->action[sig]);

		if (sig != SIGKILL && sig != SIGSTOP)
			kernel_action(sig, &k);
	}
}

void signals_hear_soon(struct thread *t)
{
	MUST(t->following);
	signals_hear(t);
	heard_by = t->pid;
}

/* What SA_RESETHAND does: flags and mask stay. */
void action_reset(struct thread *t, int sig)
{
	struct action kernel;

	MUST(t->latches >> LATCH_SIGHAND & 1 && sig >= 1 && sig <= SIGNALS);

	t->sig->action[sig].handler = (uint64_t)SIG_DFL;
	kernel = action_for_kernel(sig, &t->sig->action[sig]);
	kernel_action(sig, &kernel);
}

/* The signal's default action is to act, even for SIGSYS. */
void default_restore(int sig)
{
	struct action dfl = { 0 };

	kernel_action(sig, &dfl);
}

/* clone with CLONE_CLEAR_SIGHAND: handlers become defaults, ignored stay. */
void sighand_clear(struct sighand *s)
{
	struct action dfl = { 0 };

	for (int sig = 1; sig <= SIGNALS; sig++)
		if (is_handler(s->action[sig].handler))
			s->action[sig] = dfl;
}

void hidden_unblock(void)
{
	uint64_t hidden = HIDDEN_SIGNALS;

	OWN4(__NR_rt_sigprocmask, SIG_UNBLOCK, &hidden, 0, 8);
}

/* Readies this thread for signals: our alternate stack, the hidden signals. */
void signals_start(struct thread *t)
{
	struct altstack ours = { (uint64_t)t + BLOCK_SIGSTACK, 0, 0,
				 BLOCK_SIGSTACK_SIZE };

	OWN2(__NR_sigaltstack, &ours, 0);
	/* Of a thread's siblings, too: what the program wants of each stays as it is. */
	sighand_take(t->sig);
	for (uint64_t left = HIDDEN_SIGNALS; left; left &= left - 1) {
		int sig = __builtin_ctzll(left) + 1;
		struct action k = action_for_kernel(sig, &t->sig->action[sig]);

		kernel_action(sig, &k);
	}
	sighand_give(t->sig);
	hidden_unblock();
}

bool signal_leads(const struct thread *t)
{
	return t->has_lane && !t->following && stream_followed(t);
}

bool crash_signal(int sig)
{
	return (streams.conduct || boot.rollback) &&
	       (sig == SIGABRT || sig == SIGFPE || sig == SIGTRAP ||
		SIG_BIT(sig) & HIDDEN_SIGNALS);
}
