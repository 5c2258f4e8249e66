/*
 * Calls that name processes or threads, in a version that took over: made with the ids that
 * the kernel knows, and answered with those of the leaders before it (ids.c).
 */
#include <asm/unistd.h>
#include <linux/capability.h>
#include <linux/errno.h>
#include <linux/signal.h>
#include <linux/wait.h>

#include "engine/core/walk.h"
#include "engine/inside/calls/clock.h"
#include "engine/inside/calls/ids_call.h"
#include "engine/inside/gate/memory.h"
#include "engine/inside/gate/thread.h"
#include "engine/inside/lanes/host.h"
#include "engine/inside/runtime/callers.h"
#include "engine/inside/signal/ucontext.h"
#include "engine/inside/state/children.h"
#include "engine/inside/state/early.h"
#include "engine/inside/state/ids.h"
#include "engine/inside/state/timers.h"

/*
 * What a sanitizer asks for itself.  Its leak check stops the threads that it finds under
 * its process's id by a task of its own, which looks whether that is its parent's: only the
 * kernel's will do, and the leader's would be other threads.
 */
static bool is_runtimes_own(struct thread *t, long nr)
{
	const struct call_desc *d = call_find(nr);

	return d && d->result == KIND_PID && !d->nargs && d->class == CLASS_QUERY &&
	       caller_is_runtime(t);
}

/* A child that is waited for is who stands in for it, if one does. */
static int32_t id_given(struct thread *t, long nr, int32_t id)
{
	int32_t standin = nr == __NR_wait4 || nr == __NR_waitid ? child_waited(id) : 0;

	return standin ? standin : id_real(t, id);
}

/*
 * capset and capget name theirs in memory, which stays the program's: the kernel is shown
 * another header.  Where it knows no such version it writes there which one it prefers.
 */
static long call_with_head(struct thread *t, long nr)
{
	struct __user_cap_header_struct head;
	uint64_t at = t->frame.rdi;
	uint32_t version;
	long result;

	if (target_in(&head, at, sizeof(head)) || !head.pid)
		return call_serve(t, nr);
	version = head.version;
	head.pid = id_real(t, head.pid);
	t->frame.rdi = (uint64_t)&head;
	result = call_serve(t, nr);
	t->frame.rdi = at;
	if (head.version != version && target_out(at, &head.version, sizeof(head.version)))
		return -EFAULT;
	return result;
}

static long serve_with_real(struct thread *t, long nr)
{
	if (nr == __NR_timer_create)
		return timers_create(t);
	return nr == __NR_capset || nr == __NR_capget ? call_with_head(t, nr) : call_serve(t, nr);
}

static long call_with_real(struct thread *t, const struct call_desc *d, long nr)
{
	uint64_t args[CALL_ARGS];
	long result;

	call_args(&t->frame, args);
	for (unsigned i = 0; i < d->nargs; i++)
		if (d->args[i].kind == KIND_PID)
			t->frame.arg[i] = (uint64_t)(int64_t)id_given(t, nr, (int32_t)args[i]);
	if (call_has(d, TRAIT_SIGNALS) && nr != __NR_tkill)	/* to a process */
		early_wait((int32_t)t->frame.rdi);
	result = serve_with_real(t, nr);
	for (unsigned i = 0; i < d->nargs; i++)
		if (d->args[i].kind == KIND_PID)
			t->frame.arg[i] = args[i];
	return result;
}

/*
 * A follower makes a call that its leader has made, for its own twin of whom it is about.
 * Of others there is none, and what was to be done to them the leader has done.
 */
long ids_both(struct thread *t, const struct call_desc *d, long nr)
{
	for (unsigned i = 0; i < d->nargs; i++) {
		int32_t id = (int32_t)t->frame.arg[i];

		if (d->args[i].kind == KIND_PID && id && !id_own(t, id < -1 ? -id : id))
			return -ESRCH;
	}
	return call_with_real(t, d, nr);
}

/* Of whom waitid tells; who is only looked at, or has stopped, will be waited for again. */
static void info_seen(uint64_t at, uint64_t options)
{
	int32_t pid, code;

	if (!at || target_in(&pid, at + INFO_PID, sizeof(pid)) || pid <= 0 ||
	    target_in(&code, at + INFO_CODE, sizeof(code)))
		return;
	pid = id_seen(pid);
	target_out(at + INFO_PID, &pid, sizeof(pid));
	if (!(options & WNOWAIT) && code <= CLD_DUMPED)
		child_gone(pid);
}

/* wait4 has told of one; who has stopped, or goes on, is known further. */
static int32_t waited_seen(int32_t real, uint64_t at, uint64_t options)
{
	int32_t seen = id_seen(real), status = 0;
	bool told = at && !target_in(&status, at, sizeof(status));

	if (told ? (status & 0xff) != 0x7f && status != 0xffff :
		   !(options & (WUNTRACED | WCONTINUED)))
		child_gone(seen);
	return seen;
}

/* Makes the call with the kernel's ids and gives back the program's. */
long ids_call(struct thread *t, const struct call_desc *d, long nr)
{
	long result;

	if (is_runtimes_own(t, nr))
		return call_serve(t, nr);
	result = call_with_real(t, d, nr);
	if (nr == __NR_waitid && !result)
		info_seen(t->frame.rdx, t->frame.r10);
	if (result <= 0 || d->result != KIND_PID || d->class == CLASS_LIFE)
		return result;
	if (nr == __NR_getpid)
		return t->vpid;
	if (nr == __NR_getppid)
		return id_seen(parent_real((int32_t)result));
	if (nr == __NR_wait4)
		return waited_seen((int32_t)result, t->frame.rsi, t->frame.rdx);
	return id_seen((int32_t)result);
}
