/*
 * A twin: copies of a leader's processes by fork, while all threads of all of them stand, which
 * follow from there on.  The leader's processes go on as soon as each has its copy; what they
 * tell from then on is what the twin reads.
 *
 * A copy has all of the memory.  It must not have the leader's descriptors, not even for a
 * moment: while another process has a file open too, the leader's close does not close it, and
 * a connection stays in its epoll set, or without its end.  So the two share one table of
 * descriptors until the copy leaves it for an empty one.  What the leader knows of them, and
 * what else a copy has not, is learnt before.
 *
 * The area, brief and section that it has instead of the leader's the leader's thread maps
 * beside its own, and takes away again; the copy moves them to their place.  Until then it
 * touches nothing that others see; whatever goes wrong, it ends.
 */
#include <asm/unistd.h>
#include <linux/close_range.h>
#include <linux/errno.h>
#include <linux/fcntl.h>
#include <linux/mman.h>
#include <linux/prctl.h>
#include <linux/sched.h>
#include <linux/signal.h>
#include <linux/wait.h>

#include "engine/core/must.h"
#include "engine/core/pairs.h"
#include "engine/core/ring.h"
#include "engine/inside/gate/block.h"
#include "engine/inside/gate/gate.h"
#include "engine/inside/gate/memory.h"
#include "engine/inside/gate/request.h"
#include "engine/inside/lanes/host.h"
#include "engine/inside/lanes/patience.h"
#include "engine/inside/lanes/policy.h"
#include "engine/inside/lanes/sleep.h"
#include "engine/inside/locks/before.h"
#include "engine/inside/realm/sections.h"
#include "engine/inside/record/quiet.h"
#include "engine/inside/rewind/anew.h"
#include "engine/inside/rewind/asleep.h"
#include "engine/inside/rewind/image.h"
#include "engine/inside/rewind/stand.h"
#include "engine/inside/roles/modules.h"
#include "engine/inside/roles/twin.h"
#include "engine/inside/signal/ucontext.h"
#include "engine/inside/state/children.h"
#include "engine/inside/state/twin_shares.h"

static struct part { uint64_t to, len, at; } parts[TWIN_PARTS];
static struct twin_start start;
static int32_t refused_for;	/* a thread, where an enum twin_refusal says why */
LEADS static bool is_new;	/* a twin, none of whose threads has been told to follow yet */

bool twin_is_new(void)
{
	return is_new;
}

void twin_reset(struct thread *t)
{
	(void)t;
	is_new = false;
}

/* --- its parts, in the leader's process ----------------------------------------------------- */

static void parts_place(void)
{
	uint64_t len = section_size(streams.conduct->chunks);

	MUST(start.version < VERSIONS && start.version != streams.self);
	parts[TWIN_AREA] = (struct part){ boot.area, AREA_ROOM, 0 };
	parts[TWIN_BRIEF] = (struct part){ boot.brief, BRIEF_ROOM, 0 };
	parts[TWIN_SECTION] = (struct part){
		(uint64_t)streams_section(&streams, start.version), len, 0 };
	parts[TWIN_LEADERS] = (struct part){
		(uint64_t)streams_section(&streams, streams.self), len, 0 };
}

static void parts_drop(void)
{
	twin_shares_drop();
	for (int i = 0; i < TWIN_PARTS; i++) {
		if (parts[i].at)
			OWN2(__NR_munmap, parts[i].at, parts[i].len);
		parts[i].at = 0;
	}
}

static bool part_map(int i, int32_t fd)
{
	long prot = i == TWIN_AREA || i == TWIN_SECTION ? PROT_READ | PROT_WRITE : PROT_READ;
	long at = OWN6(__NR_mmap, 0, parts[i].len, prot, MAP_SHARED | MAP_NORESERVE, fd, 0);

	if (at < 0)
		return false;
	parts[i].at = (uint64_t)at;
	OWN3(__NR_madvise, at, parts[i].len, MADV_DONTDUMP);
	return true;
}

static bool parts_take(int socket)
{
	int32_t fd[TWIN_PARTS];
	bool all = true;

	if (!descriptors_receive(socket, fd, TWIN_PARTS, &start, sizeof(start)))
		return false;
	parts_place();
	for (int i = 0; i < TWIN_PARTS; i++) {
		all = all && part_map(i, fd[i]);
		OWN1(__NR_close, fd[i]);
	}
	return all;
}

/* Still to be waited for: the monitor has to find out who. */
static int32_t ended_child(void)
{
	uint8_t info[SIGINFO_SIZE] = { 0 };

	OWN6(__NR_waitid, P_ALL, 0, info, WEXITED | WNOHANG | WNOWAIT, 0, 0);
	return info_int(info, INFO_PID);
}

static long parts_ask_once(struct thread *t, uint64_t number)
{
	int32_t pair[2];
	long result = OWN4(__NR_socketpair, AF_UNIX_, SEQPACKET | O_CLOEXEC, 0, pair);

	if (result < 0)
		return result;
	result = request_ask(t, REQ_TWIN, TWIN_BEGIN, number | (uint64_t)boot.realm << 32,
			     (uint64_t)pair[1] | (uint64_t)(uint32_t)ended_child() << 32);
	if (!result && (!parts_take(pair[0]) || !twin_shares_take(pair[0], start.shares)))
		result = -ENOMEM;
	OWN1(__NR_close, pair[0]);
	OWN1(__NR_close, pair[1]);
	return result;
}

/* 0, or why there are none. */
static long parts_ask(struct thread *t, uint64_t number)
{
	struct files_limit was = files_allow();
	long result = parts_ask_once(t, number);

	files_forbid(&was);
	return result;
}

/* --- in the copy -------------------------------------------------------------------------- */

/* Where they were is nobody's from then on: the program may have it, and parts_drop() must not. */
static bool parts_move(void)
{
	for (int i = 0; i < TWIN_PARTS; i++) {
		if (OWN6(__NR_mremap, parts[i].at, parts[i].len, parts[i].len,
			 MREMAP_MAYMOVE | MREMAP_FIXED, parts[i].to, 0) != (long)parts[i].to)
			return false;
		parts[i].at = 0;
	}
	boot.version = streams.self = start.version;
	boot.key = start.key;
	return true;
}

/*
 * The slot is another area's: what it said of the thread is to be said again.  One that sleeps
 * since it has followed does not know that it leads: its place in that stream is no twin's.
 */
static void slot_begin(struct thread *o)
{
	o->following = 0;
	if (!request_may(o))
		return;
	o->slot->image = boot.image;
	stream_describe(o);
	o->slot->parked = 1;
}

static void slots_begin(void)
{
	struct thread *o;

	for (uint32_t i = 0; (o = block_next(&i)); i++)
		slot_begin(o);
}

/* By its leader's thread, which may not have asked yet; which may have ended. */
static bool is_wanted(struct thread *t)
{
	struct patience p = PATIENCE(WAIT_twin);
	long reply;

	do
		reply = request_ask(t, REQ_TWIN, TWIN_IS, 0, 0);
	while (reply == -EAGAIN && patience_step(&p));
	patience_end(&p);
	return !reply;
}

/*
 * What is sent to the leader's groups is not for it.  Of several processes those of one group
 * are to be of one again: which they can be only in the session of their leader's.
 */
static void group_leave(void)
{
	if (start.session)
		OWN0(__NR_setsid);
	else
		OWN2(__NR_setpgid, 0, 0);
}

static void group_come(const struct thread *t)
{
	const struct images *i = images();

	for (uint32_t n = 0; n < i->moves && n < MOVES_MAX; n++)
		if (i->move[n].is == t->pid && i->move[n].group > 0 &&
		    i->move[n].group != t->pid)
			OWN2(__NR_setpgid, 0, i->move[n].group);
}

/* It has the time, and where processors are few its leader's threads want this one. */
static void leader_goes_first(uint32_t number)
{
	const struct word stand = { &images()->stand, number };

	for (;;) {
		uint32_t change = change_now();

		if (__atomic_load_n(stand.at, __ATOMIC_RELAXED) != number || !monitor_alive())
			return;
		words_sleep(&stand, 1, change, 0);
	}
}

/* It is another process, with all that stands in memory. */
static void twin_begin(struct thread *t, uint32_t number, int32_t parent)
{
	if (OWN3(__NR_close_range, 0, ~0u, CLOSE_RANGE_UNSHARE) < 0)
		OWN1(__NR_exit_group, 1);
	leader_goes_first(number);
	if (!parts_move() || !twin_shares_move())
		OWN1(__NR_exit_group, 1);
	slots_begin();
	if (start.asleep) {
		process_anew(t);
		asleep(t);
		slots_begin();	/* of another area again */
	}
	group_leave();
	barriers_begin();
	threads_anew(t);
	modules_copied();
	policy_follow(t);
	is_new = true;
	if (!is_wanted(t))
		OWN1(__NR_exit_group, 1);
	/* Now all are there, and each is told who the others are. */
	image_moved(t, parent);
	group_come(t);
	threads_go();
}

/* --- both ---------------------------------------------------------------------------------- */

/* The others' copies would be its children. */
static bool takes_orphans(void)
{
	int32_t is = 0;

	OWN2(__NR_prctl, PR_GET_CHILD_SUBREAPER, &is);
	return is && start.processes > 1;
}

static long process_fork(void)
{
	if (takes_orphans())
		return -EBUSY;
	return start.first ? process_copy(CLONE_FILES) : process_copy_away(CLONE_FILES);
}

/* Those that stand in what was not told come out of it first. */
static long told_begin(struct thread *t)
{
	const struct thread *late;

	if (quiet_is()) {
		quiet_end();
		before_begin(t);
		return -TWIN_WAS_QUIET;
	}
	late = before_any(t);
	refused_for = late ? late->tid : 0;
	return late ? -TWIN_IN_LOCK : 0;
}

static long copy_make(struct thread *t, uint32_t number)
{
	long pid = told_begin(t);

	if (!pid)
		pid = parts_ask(t, number);
	if (!pid) {
		modules_copy(t);
		pid = process_fork();
		if (!pid)
			return 0;
	}
	parts_drop();
	return pid;
}

bool twin_make(struct thread *t, uint32_t number)
{
	int32_t parent = parent_real((int32_t)OWN0(__NR_getppid));
	long pid;

	MUST(!t->following && t == thread_self());
	pid = copy_make(t, number);
	if (!pid)
		twin_begin(t, number, parent);
	/* Without a monitor, or one that wants it no more, it is none. */
	else if (request_ask(t, REQ_TWIN, TWIN_MADE, number | (uint64_t)refused_for << 32,
			     (uint64_t)pid) && pid > 0)
		OWN2(__NR_kill, pid, SIGKILL);
	return true;
}
