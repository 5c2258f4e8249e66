/*
 * A copy of the leader that sleeps, for its memory to be written into a file (outside/foam/); and
 * what comes first in a process that is made of that.
 *
 * Its threads are not made before: their stances lie in its memory, so that the one thread that
 * there is has all registers that anybody needs.  What the kernel keeps for a process, and a fork
 * inherits, is noted: nobody else could make it true again.
 */
#include <asm/unistd.h>
#include <linux/errno.h>
#include <linux/signal.h>

#include "engine/abi/request.h"
#include "engine/abi/waits.h"
#include "engine/core/must.h"
#include "engine/inside/gate/gate.h"
#include "engine/inside/gate/memory.h"
#include "engine/inside/gate/request.h"
#include "engine/inside/lanes/host.h"
#include "engine/inside/lanes/patience.h"
#include "engine/inside/rewind/asleep.h"
#include "engine/inside/rewind/stand.h"

static struct foam_point point;

_Static_assert(sizeof(struct context) == sizeof(point.context), "words of a context");
_Static_assert(offsetof(struct context, rip) == 0, "the instruction comes first");

static void kernel_note(struct thread *t)
{
	for (int sig = 1; sig <= FOAM_SIGNALS; sig++)
		OWN4(__NR_rt_sigaction, sig, 0, &point.action[sig - 1], 8);
	OWN4(__NR_rt_sigprocmask, SIG_SETMASK, 0, &point.mask, 8);
	__asm__ volatile("rdfsbase %0" : "=r"(point.fs));
	point.block = (uint64_t)t;
	point.boot = (uint64_t)&boot;
	point.brk = (uint64_t)OWN1(__NR_brk, 0);
}

/* Signals come once their actions stand. */
static void kernel_make(void)
{
	MUST(point.version < VERSIONS);
	OWN2(__NR_munmap, point.bridge, point.bridge_len);
	for (int sig = 1; sig <= FOAM_SIGNALS; sig++)
		OWN4(__NR_rt_sigaction, sig, &point.action[sig - 1], 0, 8);
	OWN4(__NR_rt_sigprocmask, SIG_SETMASK, &point.mask, 0, 8);
	boot.version = streams.self = point.version;
	boot.key = point.key;
	request_of(thread_self())->state = RS_IDLE;
}

void asleep(struct thread *t)
{
	struct patience p = PATIENCE(WAIT_twin);
	struct context c;
	long reply;

	MUST(t == thread_self() && !t->following);
	kernel_note(t);
	if (context_save(&c)) {
		kernel_make();
		return;
	}
	bytes_copy(point.context, &c, sizeof(c));
	/* An answer is none: the file is written while it waits, and then it ends. */
	do
		reply = request_ask(t, REQ_TWIN, TWIN_ASLEEP, (uint64_t)&point, 0);
	while (reply == -EAGAIN && patience_step(&p));
	OWN1(__NR_exit_group, 1);
}
