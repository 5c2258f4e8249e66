/*
 * A process that has other rights than before leaves the sections of those that it
 * was like: outside/monitor/realms.c says why.  While it does so only this code runs in it: it
 * has one thread, which is at the end of the call that changed them.
 */
#include <asm/unistd.h>
#include <linux/capability.h>
#include <linux/errno.h>

#include "engine/core/must.h"
#include "engine/core/pairs.h"
#include "engine/core/ring.h"
#include "engine/core/walk.h"
#include "engine/inside/gate/block.h"
#include "engine/inside/gate/gate.h"
#include "engine/inside/gate/thread.h"
#include "engine/inside/lanes/event.h"
#include "engine/inside/lanes/host.h"
#include "engine/inside/lanes/patience.h"
#include "engine/inside/realm/realm.h"
#include "engine/inside/realm/sections.h"
#include "engine/inside/record/lead.h"

#define CAPS_VERSION	0x20080522

static uint32_t stale;		/* they changed while it had several threads */
static uint64_t caps_known;	/* what it had when it was last looked at */

/* All whose memory this is. */
static bool is_alone(const struct thread *t)
{
	const struct thread *o;

	for (uint32_t i = 0; (o = block_next(&i)); i++)
		if (o != t)
			return false;
	return true;
}

static uint64_t caps_permitted(void)
{
	struct __user_cap_header_struct head = { CAPS_VERSION, 0 };
	struct __user_cap_data_struct data[2] = { { 0, 0, 0 } };

	if (OWN2(__NR_capget, &head, data) < 0)
		return 0;
	return data[0].permitted | (uint64_t)data[1].permitted << 32;
}

/* The monitor has given the followers up; nobody is told of this process any more. */
static void streams_leave(struct thread *t)
{
	BOTH_BY(section_dropped, fetch_or, &t->writer.section->dropped,
		streams_followers(&streams, t->writer.section));
	t->has_lane = 0;
	t->slot->lane = 0;
	sections_map(NULL);
}

static void leader_go(struct thread *t, uint32_t realm, uint32_t lane, const int32_t fd[VERSIONS])
{
	struct event *e = lead_event(t, EVENT_MOVED, 0, 0);

	MUST(realm < REALMS && lane < LANES && is_alone(t));
	e->arg[0] = realm;
	e->arg[1] = lane;
	lead_event_end(t);
	lead_settle(t);
	lane_close(&streams, t->lane);
	if (!sections_take(fd)) {
		streams_leave(t);
		return;
	}
	boot.realm = realm;
	t->lane = lane;
	lane_attach(t, &streams);
	t->writer.lane->pid = t->pid;
	t->writer.lane->owner = t->tid;
	stream_describe(t);
}

/* Where it belongs by the rights that it has now. */
static void leader_move(struct thread *t)
{
	uint64_t waited_ns = 0, pause = PAUSE_FIRST_NS;
	int32_t fd[VERSIONS];
	long reply;

	stale = !is_alone(t);
	if (stale)
		return;
	/* There may be no lane before a follower has read one to its end: as in host_lane(). */
	while ((reply = sections_ask(t, REALM_ANY, waited_ns / 1000000, fd)) == -EAGAIN) {
		change_wait(change_now(), pause);
		waited_ns += pause;
		pause = pause_longer(pause);
	}
	if (reply >= 0 && reply < LANES_ALL)
		leader_go(t, (uint32_t)reply / LANES, (uint32_t)reply % LANES, fd);
	else if (reply < 0 && reply != -ENOSYS)
		streams_leave(t);
}

/* Who may take any id has given up nothing by taking another one. */
void realm_changed(struct thread *t, long nr)
{
	const uint64_t any = 1ull << CAP_SETUID | 1ull << CAP_SETGID;
	uint64_t caps = caps_permitted();

	if (nr != __NR_unshare && nr != __NR_setns && caps == caps_known && (caps & any) == any)
		return;
	caps_known = caps;
	leader_move(t);
}

void realm_catch_up(struct thread *t)
{
	if (stale)
		leader_move(t);
}
