/*
 * A program that was begun alone comes to tell others what it does: the first follower of its
 * session is wanted.  Its threads stand (park.c), the monitor says when all do, and whoever
 * sees that first asks for the streams, maps them, and makes of the process what it would be
 * had it begun in company: each thread has its lane, calls take the ways of a leader, locks
 * are ordered.  All the others go on when that is done.
 *
 * Nothing of the process is changed before the last thing that may fail is done; without a
 * monitor, or one that wants it no more, it stays alone.
 */
#include <asm/unistd.h>
#include <linux/errno.h>
#include <linux/fcntl.h>
#include <linux/futex.h>
#include <linux/mman.h>
#include <linux/resource.h>

#include "engine/core/must.h"
#include "engine/core/pairs.h"
#include "engine/core/ring.h"
#include "engine/inside/actions/actions.h"
#include "engine/inside/calls/special.h"
#include "engine/inside/gate/block.h"
#include "engine/inside/gate/gate.h"
#include "engine/inside/gate/request.h"
#include "engine/inside/lanes/host.h"
#include "engine/inside/lanes/sleep.h"
#include "engine/inside/lanes/tick.h"
#include "engine/inside/order/turns.h"
#include "engine/inside/realm/sections.h"
#include "engine/inside/record/care.h"
#include "engine/inside/record/lead.h"
#include "engine/inside/record/tell.h"
#include "engine/inside/roles/long_way.h"
#include "engine/inside/roles/park.h"
#include "engine/inside/runtime/callers.h"
#include "engine/inside/takeover/standing.h"

static uint64_t places[AREA_THREADS];
static struct caller_place callers[AREA_THREADS];
static struct company_start start;
static uint32_t asked;		/* somebody takes the streams; 0 when it is over */

void company_note(const struct thread *t, uint64_t at, struct caller_place caller)
{
	MUST(t->index < AREA_THREADS);
	if (streams.conduct)
		return;
	places[t->index] = at;
	callers[t->index] = caller;
}

/* --- the streams ------------------------------------------------------------------------ */

static void streams_unmap(void)
{
	OWN2(__NR_munmap, (uint64_t)streams.conduct, section_offset(start.chunks, start.sections));
	streams = (struct streams){ 0 };
}

/* Where the sections are to be there is nothing yet that can be written or read. */
static bool conduct_map(int32_t fd)
{
	uint64_t len = section_offset(start.chunks, start.sections);
	long at = OWN6(__NR_mmap, 0, len, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
		       -1, 0);

	if (at < 0)
		return false;
	streams.conduct = (const struct conduct *)at;
	streams.self = start.version;
	if (OWN6(__NR_mmap, at, CONDUCT_SIZE, PROT_READ, MAP_SHARED | MAP_FIXED, fd, 0) == at)
		return true;
	streams_unmap();
	return false;
}

static bool streams_map(int socket, int32_t conduct)
{
	int32_t fd[VERSIONS];
	uint8_t byte;

	if (!start.sections || start.sections > VERSIONS || start.version >= start.sections ||
	    !start.chunks || start.chunks > CHUNKS_MAX || start.locals > BOOT_LOCALS ||
	    start.parts > BOOT_PARTS ||
	    !descriptors_receive(socket, fd, start.sections, &byte, 1))
		return false;
	if (!conduct_map(conduct)) {
		for (uint32_t v = 0; v < start.sections; v++)
			OWN1(__NR_close, fd[v]);
		return false;
	}
	if (sections_take(fd))
		return true;
	streams_unmap();
	return false;
}

static long streams_receive(int socket)
{
	int32_t conduct;
	bool mapped;

	if (!descriptors_receive(socket, &conduct, 1, &start, sizeof(start)))
		return -EMFILE;
	mapped = streams_map(socket, conduct);
	OWN1(__NR_close, conduct);
	return mapped ? 0 : -ENOMEM;
}

static long streams_ask(struct thread *t)
{
	int32_t pair[2];
	long result = OWN4(__NR_socketpair, AF_UNIX_, SEQPACKET | O_CLOEXEC, 0, pair);

	if (result < 0)
		return result;
	request_of(t)->call[0] = boot.boards_used;
	request_of(t)->call[1] = (uint64_t)&boot.boards_used;
	request_of(t)->call[2] = (uint64_t)&boot;
	result = request_ask(t, REQ_COMPANY, COMPANY_BEGIN, (uint64_t)pair[1], (uint64_t)places);
	if (!result)
		result = streams_receive(pair[0]);
	OWN1(__NR_close, pair[0]);
	OWN1(__NR_close, pair[1]);
	return result;
}

/* A process that has forbidden itself descriptors is let have some meanwhile. */
static long streams_take(struct thread *t)
{
	struct { uint64_t now, max; } limit, most;
	long result;

	OWN4(__NR_prlimit64, 0, RLIMIT_NOFILE, 0, &limit);
	most.now = most.max = limit.max;
	OWN4(__NR_prlimit64, 0, RLIMIT_NOFILE, &most, 0);
	result = streams_ask(t);
	OWN4(__NR_prlimit64, 0, RLIMIT_NOFILE, &limit, 0);
	return result;
}

/* --- what is different in company ------------------------------------------------------- */

static void boot_fill(void)
{
	boot.role = ROLE_LEADER;
	boot.version = start.version;
	boot.lane = boot.realm = 0;
	for (uint32_t i = 0; i < start.locals; i++)
		boot.local[i] = start.local[i];
	boot.locals = start.locals;
	for (uint32_t i = 0; i < start.parts; i++)
		boot.part[i] = start.part[i];
	boot.parts = start.parts;
	/* Last: from here on clocks of the vDSO are read by the gate. */
	boot.streams = (uint64_t)streams.conduct;
}

static int thread_lane(const struct thread *o)
{
	/* The monitor has opened the first one's. */
	if (o->tid == o->pid)
		return 0;
	return caller_is_allocators(callers[o->index]) ? -1 : lane_open(&streams, ~0u);
}

static bool thread_begin(struct thread *o)
{
	int lane = thread_lane(o);

	o->vpid = o->pid;
	o->vtid = o->tid;
	if (lane < 0)
		return false;
	o->lane = (uint32_t)lane;
	o->has_lane = 1;
	lead_begin(o);
	stream_describe(o);
	return true;
}

/* True: it has several. */
static bool threads_begin(const struct thread *t)
{
	struct thread *o;
	uint32_t n = 0;

	for (uint32_t i = 0; (o = block_next(&i)); i++)
		if (o->pid == t->pid && o->slot && thread_begin(o))
			n++;
	return n > 1;
}

static void company_begin(struct thread *t)
{
	boot_fill();
	locals_begin();
	ways_fill();
	sleepers_begin();
	lead_prepare();
	tell_prepare();
	if (threads_begin(t)) {
		ticks_prepare();
		locks_begin();
	}
	signals_deaf(t);
}

static void company_take(struct thread *t)
{
	long result = streams_take(t);

	if (!result)
		company_begin(t);
	request_ask(t, REQ_COMPANY, COMPANY_DONE, (uint64_t)result, 0);
}

/* --- standing for it -------------------------------------------------------------------- */

void company_come(struct thread *t)
{
	uint32_t word, none = 0;

	if (streams.conduct || !company_wanted())
		return;
	while ((word = CONSUME(brief_company, &brief()->company)) && monitor_alive()) {
		struct __kernel_timespec sleep = { 0, PAUSE_WOKEN_NS };

		if (word == COMPANY_TAKE &&
		    __atomic_compare_exchange_n(&asked, &none, 1, false, __ATOMIC_RELAXED,
						__ATOMIC_RELAXED)) {
			company_take(t);
			continue;
		}
		none = 0;
		OWN4(__NR_futex, &brief()->company, FUTEX_WAIT, word, &sleep);
	}
	__atomic_store_n(&asked, 0, __ATOMIC_RELAXED);
	if (streams.conduct)
		rseq_leave(t);
}
