/*
 * A program that was begun alone comes to tell others what it does: the first follower of its
 * session is wanted.  Its threads stand (park.c), the monitor says when all do, in all of its
 * processes, and whoever of a process sees that first asks for the streams, maps them, and
 * makes of the process what it would be had it begun in company: each thread has its lane,
 * calls take the ways of a leader, locks are ordered.  All the others go on when that is done.
 *
 * Nothing of a process is changed before the last thing that may fail is done, in all of them;
 * without a monitor, or one that wants it no more, they stay alone.
 */
#include <asm/unistd.h>
#include <linux/errno.h>
#include <linux/fcntl.h>
#include <linux/futex.h>
#include <linux/mman.h>
#include <linux/time_types.h>

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
#include "engine/inside/locks/before.h"
#include "engine/inside/order/baton.h"
#include "engine/inside/order/turns.h"
#include "engine/inside/realm/sections.h"
#include "engine/inside/record/care.h"
#include "engine/inside/record/lead.h"
#include "engine/inside/record/tell.h"
#include "engine/inside/roles/long_way.h"
#include "engine/inside/update/offline.h"
#include "engine/inside/roles/park.h"
#include "engine/inside/runtime/callers.h"
#include "engine/inside/state/space.h"
#include "engine/inside/state/timers.h"
#include "engine/inside/takeover/standing.h"

static uint64_t places[AREA_THREADS];
static struct caller_place callers[AREA_THREADS];
static uint8_t come[AREA_THREADS];	/* who stands for it, and looks what is to be done */
static struct company_start start;
/* Whether somebody takes the streams; NOT again when the others may go on. */
enum { TAKEN_NOT, TAKEN_BUSY, TAKEN_OVER };
static uint32_t taken;

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
	uint64_t len = section_offset(start.chunks, start.sections);

	OWN2(__NR_munmap, (uint64_t)streams.conduct, len);
	streams = (struct streams){ 0 };
	space_grow(-(int64_t)len);
}

/* What its program maps is fetched at once (mlockall), and with followers it is not: special.c. */
static void locks_loosen(void)
{
	long at = OWN6(__NR_mmap, 0, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		       0);
	uint8_t there = 0;

	if (at < 0)
		return;
	OWN3(__NR_mincore, at, 4096, &there);
	OWN2(__NR_munmap, at, 4096);
	if (there & 1)
		OWN1(__NR_mlockall, MCL_FUTURE | MCL_ONFAULT);
}

/* Where the sections are to be there is nothing yet that can be written or read. */
static bool conduct_map(int32_t fd)
{
	uint64_t len = section_offset(start.chunks, start.sections);
	long at;

	locks_loosen();
	space_grow((int64_t)len);
	at = OWN6(__NR_mmap, 0, len, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (at < 0) {
		space_grow(-(int64_t)len);
		return false;
	}
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
	    start.parts > BOOT_PARTS || start.timers > COMPANY_TIMERS || start.realm >= REALMS ||
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
	request_of(t)->call[3] = boot.attached;
	result = request_ask(t, REQ_COMPANY, COMPANY_BEGIN, (uint64_t)pair[1], (uint64_t)places);
	if (!result)
		result = streams_receive(pair[0]);
	OWN1(__NR_close, pair[0]);
	OWN1(__NR_close, pair[1]);
	return result;
}

static long streams_take(struct thread *t)
{
	struct files_limit was = files_allow();
	long result = streams_ask(t);

	files_forbid(&was);
	return result;
}

/* --- what is different in company ------------------------------------------------------- */

static void boot_fill(void)
{
	boot.role = ROLE_LEADER;
	boot.version = start.version;
	boot.lane = 0;
	boot.realm = start.realm;
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
	if (start.first && o->tid == o->pid)
		return 0;
	return o->update == UPDATE_THREAD_OURS ||
	       caller_is_allocators(callers[o->index]) ? -1 : lane_open(&streams, ~0u);
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
	barriers_begin();
	lead_prepare();
	tell_prepare();
	ways_baton();
	standing_ready();
	if (threads_begin(t)) {
		locks_begin();
		baton_begin(t);
	}
	before_begin(t);
	timers_come(t, start.timer, start.timers);
	signals_deaf(t);
}

/* The child of a vfork has its parent's memory, where the parent is nowhere. */
static bool any_in_vfork(void)
{
	const struct thread *o;

	for (uint32_t i = 0; (o = block_next(&i)); i++)
		if (o->in_vfork)
			return true;
	return false;
}

static void company_take(struct thread *t)
{
	long result = any_in_vfork() ? -EAGAIN : streams_take(t);

	result = request_ask(t, REQ_COMPANY, COMPANY_MAPPED, (uint64_t)result, 0);
	if (!result) {
		company_begin(t);
		request_ask(t, REQ_COMPANY, COMPANY_DONE, 0, 0);
	} else if (streams.conduct) {
		streams_unmap();
	}
}

/* The monitor has seen them stand; one may have been about to leave then. */
static bool all_come(const struct thread *t)
{
	const struct thread *o;

	for (uint32_t i = 0; (o = block_next(&i)); i++)
		if (o->pid == t->pid && !LOOK(company, &come[o->index]))
			return false;
	return true;
}

static bool may_take(const struct thread *t)
{
	return any_in_vfork() || all_come(t);
}

/* One takes them for all: the last that comes finds that all have, and who leaves finds BUSY. */
static bool take_begin(const struct thread *t)
{
	while (may_take(t)) {
		uint32_t none = TAKEN_NOT;

		if (!ANNOUNCE_IF(company, &taken, &none, TAKEN_BUSY))
			return false;
		if (may_take(t))
			return true;
		ANNOUNCE(company, &taken, TAKEN_NOT);
	}
	return false;
}

static void take_end(void)
{
	uint32_t over = TAKEN_OVER;

	ANNOUNCE_IF(company, &taken, &over, TAKEN_NOT);
}

/* --- standing for it -------------------------------------------------------------------- */

/* Nobody goes on in the midst of it, whatever the word says. */
static bool is_being_taken(void)
{
	return LOOK(company, &taken) == TAKEN_BUSY;
}

/* The monitor may have said that it is over before who takes them has heard so. */
static void company_sleep(uint32_t word)
{
	struct __kernel_timespec sleep = { 0, PAUSE_WOKEN_NS };

	if (word)
		OWN4(__NR_futex, &brief()->company, FUTEX_WAIT, word, &sleep);
	else
		OWN4(__NR_futex, &taken, FUTEX_WAIT, TAKEN_BUSY, &sleep);
}

static void company_wait(struct thread *t)
{
	uint32_t word;

	while (((word = CONSUME(brief_company, &brief()->company)) && monitor_alive()) ||
	       is_being_taken()) {
		if (word == COMPANY_TAKE && take_begin(t)) {
			company_take(t);
			ANNOUNCE(company, &taken, TAKEN_OVER);
			word_wake(&taken);
			continue;
		}
		company_sleep(word);
	}
}

void company_end(void)
{
	boot.streams = 0;
	if (streams.conduct)
		streams_unmap();
}

void company_come(struct thread *t)
{
	if (streams.conduct || !company_wanted())
		return;
	do {
		ANNOUNCE(company, &come[t->index], 1);
		company_wait(t);
		ANNOUNCE(company, &come[t->index], 0);
	} while (is_being_taken());
	take_end();
	if (streams.conduct)
		rseq_leave(t);
}
