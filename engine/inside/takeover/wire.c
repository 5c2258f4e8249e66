/*
 * The wire: a pair of sockets that a follower's program makes when it begins, and of which the
 * monitor has the other end from then on.  When this process is to take over, and nobody need
 * be waited for, all that it takes is sent there before it has come so far to ask: the word
 * `sends` of its brief says so before its stream ends.  The monitor knows whose end it is since
 * the kernel has named who asked, and its process alone has ours: a child closes its copy
 * before its program goes on, and an execve does.
 */
#include <asm/unistd.h>
#include <linux/fcntl.h>

#include "engine/core/must.h"
#include "engine/inside/gate/gate.h"
#include "engine/inside/gate/memory.h"
#include "engine/inside/gate/request.h"
#include "engine/inside/gate/thread.h"
#include "engine/inside/lanes/host.h"
#include "engine/inside/takeover/takers.h"
#include "engine/inside/takeover/wire.h"

LEADS static struct {
	int32_t pid;		/* whose it is; 0: there is none */
	int32_t fd;
} wire;

void wire_begin(struct thread *t, const int32_t *pair)
{
	long result;

	MUST(t->following && !wire.pid);
	result = request_ask(t, REQ_WIRE, (uint64_t)pair[1], 0, 0);
	OWN1(__NR_close, pair[1]);
	if (result < 0) {
		OWN1(__NR_close, pair[0]);
		return;
	}
	OWN3(__NR_fcntl, pair[0], F_SETFD, FD_CLOEXEC);
	wire.fd = pair[0];
	wire.pid = t->pid;
}

void wire_fork(struct thread *t)
{
	(void)t;
	if (!wire.pid)
		return;		/* a child's memory is its parent's till it is written */
	OWN1(__NR_close, wire.fd);
	wire.pid = 0;
}

bool wire_sends(void)
{
	return __atomic_load_n(&brief()->sends, __ATOMIC_RELAXED) && monitor_alive();
}

bool wire_soon(void)
{
	return __atomic_load_n(&brief()->sends, __ATOMIC_RELAXED) == SENDS_SOON;
}

int32_t wire_take(const struct thread *t)
{
	bool ours = wire.pid == t->pid && wire_sends();

	/* A guest has the memory of another's, and is about to begin a program. */
	if (!wire.pid || is_guest(t))
		return -1;
	wire.pid = 0;
	if (ours)
		return wire.fd;
	/* An image is not the process whose memory it has. */
	OWN1(__NR_close, wire.fd);
	return -1;
}
