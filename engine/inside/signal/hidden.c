/*
 * Hidden signals: those that mve stands on are never really blocked.  One that comes while the
 * program believes it blocked waits here.
 */
#include <asm/unistd.h>
#include <linux/signal.h>

#include "engine/core/must.h"
#include "engine/inside/gate/block.h"
#include "engine/inside/gate/gate.h"
#include "engine/inside/gate/memory.h"
#include "engine/inside/gate/thread.h"
#include "engine/inside/signal/hidden.h"
#include "engine/inside/signal/ucontext.h"

_Static_assert(__builtin_popcountll(HIDDEN_SIGNALS) * SIGINFO_SIZE ==
	       sizeof(((struct thread *)0)->hidden_info), "a row for each");

uint8_t *hidden_info(struct thread *t, int sig)
{
	MUST(SIG_BIT(sig) & HIDDEN_SIGNALS);
	return t->hidden_info[sig == SIGILL ? 1 : sig == SIGSEGV ? 2 : sig == SIGBUS ? 3 : 0];
}

bool hidden_kept(struct thread *t, int sig, const uint8_t *info)
{
	uint64_t blocked = t->has_temp_mask ? t->temp_mask : t->hidden_blocked;

	if (!(blocked & SIG_BIT(sig)) || info_int(info, INFO_CODE) > 0)
		return false;
	bytes_copy(hidden_info(t, sig), info, SIGINFO_SIZE);
	t->hidden_waits |= SIG_BIT(sig);
	return true;
}

bool hidden_ignored(const struct thread *t, int sig, const uint8_t *info)
{
	return t->sig->action[sig].handler == (uint64_t)SIG_IGN && info_int(info, INFO_CODE) <= 0;
}

/* The program ignores it now: what waited is gone, in each thread. */
void hidden_forget(const struct thread *t, int sig)
{
	struct thread *o;

	if (!(SIG_BIT(sig) & HIDDEN_SIGNALS))
		return;
	for (uint32_t i = 0; (o = block_next(&i)); i++)
		if (o->sig == t->sig)
			__atomic_fetch_and(&o->hidden_waits, ~SIG_BIT(sig), __ATOMIC_RELAXED);
}

/* Of those that wait, these come now; true: there are some. */
bool hidden_come(struct thread *t, uint64_t unblocked)
{
	uint64_t come = t->hidden_waits & unblocked;

	t->hidden_waits &= ~come;
	MUST(!(come & ~HIDDEN_SIGNALS) && t == thread_self());
	for (int sig = SIGILL; sig <= SIGSYS; sig++)
		if (come & SIG_BIT(sig))
			OWN4(__NR_rt_tgsigqueueinfo, t->pid, t->tid, sig,
			     hidden_info(t, sig));
	return come;
}

/* The program's belief changes; what waited comes now. */
void hidden_block(struct thread *t, uint64_t blocked)
{
	t->hidden_blocked = blocked & HIDDEN_SIGNALS;
	hidden_come(t, ~blocked);
}
