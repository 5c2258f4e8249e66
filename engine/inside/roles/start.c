/*
 * The beginning of a program: the monitor has mapped the image, filled `boot`
 * and set the first thread going in inside_start, at the moment when the kernel
 * was about to enter the program.  When this is done the program begins as if
 * nothing had been.
 */
#include <asm/unistd.h>
#include <linux/signal.h>

#include "engine/core/must.h"
#include "engine/inside/actions/actions.h"
#include "engine/inside/crash/failed.h"
#include "engine/inside/gate/above.h"
#include "engine/inside/calls/shelf.h"
#include "engine/inside/gate/block.h"
#include "engine/inside/gate/gate.h"
#include "engine/inside/gate/seal.h"
#include "engine/inside/gate/thread.h"
#include "engine/inside/lanes/host.h"
#include "engine/inside/lanes/policy.h"
#include "engine/inside/record/back.h"
#include "engine/inside/record/care.h"
#include "engine/inside/record/lead.h"
#include "engine/inside/record/tell.h"
#include "engine/inside/replay/follow.h"
#include "engine/inside/roles/clone.h"
#include "engine/inside/roles/dispatch.h"
#include "engine/inside/roles/exec.h"
#include "engine/inside/roles/long_way.h"
#include "engine/inside/roles/park.h"
#include "engine/inside/roles/promote.h"
#include "engine/inside/roles/start.h"
#include "engine/inside/roles/twin.h"
#include "engine/inside/rollback/rollback.h"
#include "engine/inside/signal/signals.h"
#include "engine/inside/state/children.h"
#include "engine/inside/state/space.h"
#include "engine/inside/state/take.h"
#include "engine/inside/takeover/standing.h"

void inside_begin(struct thread *t);

static const struct { int sig; uint32_t blocked, ignored; } hidden_rows[] = {
	{ SIGSYS, SIGSYS_BLOCKED, SIGSYS_IGNORED },
	{ SIGILL, SIGILL_BLOCKED, SIGILL_IGNORED },
	{ SIGSEGV, SIGSEGV_BLOCKED, SIGSEGV_IGNORED },
	{ SIGBUS, SIGBUS_BLOCKED, SIGBUS_IGNORED },
};
#define HIDDEN_ROWS (sizeof(hidden_rows) / sizeof(hidden_rows[0]))

/* What the last program of this process believed of the hidden signals. */
static void hidden_begin(struct thread *t)
{
	space_begin();
	for (unsigned i = 0; i < HIDDEN_ROWS; i++) {
		struct action *a = &t->sig->action[hidden_rows[i].sig];

		*a = (struct action){ 0 };
		if (boot.hidden & hidden_rows[i].ignored)
			a->handler = (uint64_t)SIG_IGN;
		if (boot.hidden & hidden_rows[i].blocked)
			t->hidden_blocked |= SIG_BIT(hidden_rows[i].sig);
	}
}

/* The same for the program that an execve brings. */
uint32_t hidden_state(const struct thread *t)
{
	uint32_t bits = space_bits(t);

	for (unsigned i = 0; i < HIDDEN_ROWS; i++) {
		int sig = hidden_rows[i].sig;

		if (t->hidden_blocked & SIG_BIT(sig))
			bits |= hidden_rows[i].blocked;
		if (t->sig->action[sig].handler == (uint64_t)SIG_IGN)
			bits |= hidden_rows[i].ignored;
	}
	return bits;
}

/* The first thread of a program, in the lane that its execve left. */
static void stream_begin(struct thread *t)
{
	t->vpid = t->pid;
	t->vtid = t->tid;
	if (!boot.streams)
		return;
	streams.conduct = (const struct conduct *)boot.streams;
	streams.self = boot.version;
	MUST(boot.lane < LANES && boot.version < VERSIONS && boot.realm < REALMS);
	t->lane = boot.lane;
	t->has_lane = 1;
	barriers_begin();
	lead_prepare();
	tell_prepare();
	ways_baton();
	standing_ready();
	t->following = boot.role == ROLE_FOLLOWER;
	if (t->following) {
		room_ready(t);
		take_wire(t);
		follow_begin(t);
		policy_follow(t);
	} else {
		lead_begin(t);
	}
	stream_describe(t);
}

/* Field by field: there is no constant of function addresses to copy. */
void above_fill(void)
{
	above.call = dispatch;
	above.exit = dispatch_exit;
	above.signal = signal_handle;
	above.child = child_begin;
	above.failed = failed_serve;
	above.life = serve_life;
	above.ended = stream_ended;
	above.stand = park_come;
	above.copy = twin_make;
	above.soft = serve_soft;
	above.moved = children_moved;
}

void inside_begin(struct thread *t)
{
	extern char lock_gate[];
	struct sighand *s = &process_sig;

	above_fill();
	block_prepare(t, 0);
	t->lock_gate = (uint64_t)lock_gate;
	t->busy = 1;
	t->sig = s;
	t->pid = (int32_t)OWN0(__NR_getpid);
	t->tid = t->pid;
	t->frame.resume = boot.entry;
	t->frame.rsp = boot.stack;
	t->frame.flags = 0x202;
	actions_learn(s);
	failed_begin();
	hidden_begin(t);
	rollback_begin();
	ways_begin();
	locals_begin();
	shelf_begin();
	slot_claim(t);
	signals_start(t);
	seal_arm(t);
	stream_begin(t);
	back_begin();
	signals_deaf(t);
	failed_begun();
}
