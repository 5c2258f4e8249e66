/*
 * Pid namespaces.  The ids that a process in one has, and writes down in its slots and lanes,
 * are none that the monitor could use; so no follower is to lead while there is such a process
 * (takeover_successor.c), nor is a copy made of one.  The monitor is told before there is one:
 * later it might be in a takeover already.  Whether there is one still it asks the kernel.
 */
#include <asm/unistd.h>
#include <linux/sched.h>

#include "engine/core/must.h"
#include "engine/inside/calls/pids.h"
#include "engine/inside/gate/gate.h"
#include "engine/inside/gate/request.h"

void pids_clone(struct thread *t, uint64_t flags)
{
	if (flags & CLONE_NEWPID)
		request_ask(t, REQ_NOTE, NOTE_PIDS, 0, 0);
}

/* Without a type any namespace may be meant, and its descriptor may be a process'. */
static bool may_be_pids(const struct thread *t, long nr)
{
	if (nr == __NR_unshare)
		return t->frame.rdi & CLONE_NEWPID;
	return !(uint32_t)t->frame.rsi || t->frame.rsi & CLONE_NEWPID;
}

long serve_namespace(struct thread *t, long nr)
{
	long result = call_kernel(t);

	MUST(nr == __NR_unshare || nr == __NR_setns);
	if (!result && may_be_pids(t, nr))
		request_ask(t, REQ_NOTE, NOTE_PIDS, 0, 0);
	return result;
}
