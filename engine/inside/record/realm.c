/*
 * A process that has other rights than before leaves the sections of those that it
 * was like: outside/monitor/realms.c says why.  While it does so only this code runs in it: it
 * has one thread, which is at the end of the call that changed them.
 */
#include <asm/unistd.h>
#include <linux/capability.h>
#include <linux/errno.h>
#include <linux/fcntl.h>
#include <linux/mman.h>
#include <linux/resource.h>

#include "engine/core/must.h"
#include "engine/core/ring.h"
#include "engine/core/walk.h"
#include "engine/inside/gate/block.h"
#include "engine/inside/gate/gate.h"
#include "engine/inside/gate/request.h"
#include "engine/inside/gate/thread.h"
#include "engine/inside/record/event.h"
#include "engine/inside/record/host.h"
#include "engine/inside/record/lead.h"
#include "engine/inside/record/realm.h"
#include "engine/inside/replay/wait.h"

#define AF_UNIX_	1
#define SEQPACKET	5
#define MSG_DONTWAIT_	0x40
#define MSG_CLOEXEC	0x40000000
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

/* --- the sections of another realm ---------------------------------------------------- */

static bool sections_receive(int socket, int32_t fd[VERSIONS])
{
	struct { uint64_t len; int32_t level, type, fd[VERSIONS]; } control;
	uint32_t n = streams.conduct->sections;
	uint8_t byte;
	struct span iov = { (uint64_t)&byte, 1 };
	struct message m = { .iov = (uint64_t)&iov, .iov_n = 1, .control = (uint64_t)&control,
			     .control_len = sizeof(control) };

	MUST(n <= VERSIONS);
	if (OWN3(__NR_recvmsg, socket, &m, MSG_DONTWAIT_ | MSG_CLOEXEC) != 1 ||
	    m.control_len < 16 || control.len != 16 + n * sizeof(int32_t))
		return false;
	for (uint32_t i = 0; i < n; i++)
		fd[i] = control.fd[i];
	return true;
}

static bool section_map(uint32_t version, int32_t fd)
{
	uint32_t chunks = streams.conduct->chunks;
	uint64_t at = (uint64_t)streams.conduct + section_offset(chunks, version);
	uint64_t len = section_size(chunks);
	long prot = version == streams.self ? PROT_READ | PROT_WRITE : PROT_READ;
	long flags = MAP_FIXED | MAP_NORESERVE | (fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED);

	MUST(version < streams.conduct->sections && version < VERSIONS);

	if (OWN6(__NR_mmap, at, len, prot, flags, fd, 0) != (long)at)
		return false;
	OWN3(__NR_madvise, at, len, MADV_DONTDUMP);
	return true;
}

/* What was mapped there is gone in any case: zeros stand in its place, or nothing. */
static bool sections_map(const int32_t fd[VERSIONS])
{
	uint32_t chunks = streams.conduct->chunks;
	bool mapped = true;

	for (uint32_t v = 0; v < streams.conduct->sections; v++) {
		if (fd && section_map(v, fd[v]))
			continue;
		mapped = false;
		if (!section_map(v, -1))
			OWN2(__NR_munmap, (uint64_t)streams.conduct + section_offset(chunks, v),
			     section_size(chunks));
	}
	return mapped;
}

static long sections_ask_once(struct thread *t, uint64_t wants, int32_t fd[VERSIONS])
{
	int32_t pair[2] = { -1, -1 };
	long reply;

	OWN4(__NR_socketpair, AF_UNIX_, SEQPACKET | O_CLOEXEC, 0, pair);
	reply = request_ask(t, REQ_REALM, (uint64_t)pair[1], boot.realm, wants);
	if (reply >= 0 && reply < LANES_ALL && !sections_receive(pair[0], fd))
		reply = -EMFILE;
	for (int i = 0; i < 2; i++)
		if (pair[i] >= 0)
			OWN1(__NR_close, pair[i]);
	return reply;
}

/*
 * The answer of the monitor; what is in *fd is to be mapped if it is a lane.  A process that
 * has forbidden itself descriptors is let have some until it has been answered.
 */
static long sections_ask(struct thread *t, uint64_t wants, int32_t fd[VERSIONS])
{
	struct { uint64_t now, max; } limit, most;
	long reply;

	OWN4(__NR_prlimit64, 0, RLIMIT_NOFILE, 0, &limit);
	most.now = most.max = limit.max;
	OWN4(__NR_prlimit64, 0, RLIMIT_NOFILE, &most, 0);
	reply = sections_ask_once(t, wants, fd);
	if (reply == REALM_AGAIN)
		reply = sections_ask_once(t, wants, fd);
	OWN4(__NR_prlimit64, 0, RLIMIT_NOFILE, &limit, 0);
	return reply == REALM_AGAIN ? -EMFILE : reply;
}

static bool sections_take(const int32_t fd[VERSIONS])
{
	bool mapped = sections_map(fd);

	for (uint32_t v = 0; v < streams.conduct->sections; v++)
		OWN1(__NR_close, fd[v]);
	return mapped;
}

/* --- a leader's ----------------------------------------------------------------------- */

/* The monitor has given the followers up; nobody is told of this process any more. */
static void streams_leave(struct thread *t)
{
	__atomic_fetch_or(&t->writer.section->dropped,
			  streams_followers(&streams, t->writer.section), __ATOMIC_SEQ_CST);
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
	sleepers_wake(t);
	lead_settle(t);
	lane_close(&streams, t->lane);
	if (!sections_take(fd)) {
		streams_leave(t);
		return;
	}
	boot.realm = realm;
	t->lane = lane;
	writer_attach(&t->writer, &streams, lane);
	t->writer.lane->pid = t->pid;
	t->writer.lane->owner = t->tid;
	for (uint32_t v = 0; v < VERSIONS; v++)
		t->roused[v] = 0;
	stream_describe(t);
}

/* Where it belongs by the rights that it has now. */
static void leader_move(struct thread *t)
{
	int32_t fd[VERSIONS];
	long reply;

	stale = !is_alone(t);
	if (stale)
		return;
	reply = sections_ask(t, REALM_ANY, fd);
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

/* --- a follower's --------------------------------------------------------------------- */

/* Its twin has gone there, and its own rights are as new. */
void realm_follow(struct thread *t, const struct event *e)
{
	uint32_t realm = (uint32_t)e->arg[0], lane = (uint32_t)e->arg[1] % LANES;
	uint32_t source = t->reader.cursor->source;
	int32_t fd[VERSIONS];
	long reply = sections_ask(t, realm, fd);
	struct cursor *cursor;
	uint32_t life;

	MUST(t->following && source < VERSIONS);

	if (reply) {
		request_ask(t, REQ_VERDICT, VERDICT_UNSUPPORTED, DIFFERS_CALL, EPERM);
		for (;;)
			OWN1(__NR_exit_group, 1);
	}
	follow_take(t);
	cursor_done(&streams, t->lane);
	if (!sections_take(fd))
		OWN1(__NR_exit_group, 1);
	boot.realm = realm;
	t->lane = lane;
	/* The lane is as the monitor has opened it, for this thread's twin. */
	life = streams_section(&streams, source)->lane[lane].life;
	/* First: of a dead thread's cursor the monitor would say that all is read. */
	cursor = &streams_section(&streams, streams.self)->cursor[lane];
	cursor->pid = t->pid;
	cursor->owner = t->tid;
	cursor_begin(&streams, lane, life, source);
	reader_attach(&t->reader, &streams, lane);
	stream_describe(t);
}
