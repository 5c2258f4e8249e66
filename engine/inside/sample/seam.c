/*
 * Seams: the places in a leader's stream where a request begins.  The user says
 * where (--mark): before certain calls, or where the program opens a path that
 * is there for this alone; such an open is answered here and never made.
 *
 * A seam is an event of its own, in nobody's way: followers pass over it and
 * count it.
 *
 * In a stateless session it is also where a follower may be added to a lane, since
 * it knows all that matters there: the state of the start.  The lane's thread adds
 * it (`readers`), so there is no event that it is told half of.
 */
#include <asm/unistd.h>

#include "engine/core/must.h"
#include "engine/core/pairs.h"
#include "engine/core/ring.h"
#include "engine/core/walk.h"
#include "engine/inside/fd/files.h"
#include "engine/inside/gate/gate.h"
#include "engine/inside/gate/thread.h"
#include "engine/inside/lanes/event.h"
#include "engine/inside/lanes/host.h"
#include "engine/inside/locks/locks.h"
#include "engine/inside/sample/scope.h"
#include "engine/inside/sample/seam.h"

static const struct seams *seams(void)
{
	return &streams.conduct->seams;
}

bool seam_is_call(long nr)
{
	for (uint32_t i = 0; i < seams()->calls && i < SEAM_CALLS; i++)
		if (seams()->call[i] == nr)
			return true;
	return false;
}

bool seam_may_open(const struct call_desc *d)
{
	return seams()->path[0] && call_has(d, TRAIT_OPENS);
}

bool seam_opened(struct thread *t, const struct walk *w)
{
	const char *path = seams()->path;
	uint64_t at;

	if (!path[0] || !w->desc || !seam_may_open(w->desc))
		return false;
	at = w->args[call_path_arg(w->desc)];
	for (uint32_t i = 0; i < sizeof(seams()->path); i++) {
		char c;

		if (target_in(&c, at + i, 1) || c != path[i])
			return false;
		if (!c)
			break;
	}
	t->answered = 1;
	return true;
}

#define START	(1u << ROW_START)

/* A lane of the start that was cut at a seam; whoever comes late has no twin for another. */
static bool lane_of_start(const struct thread *t)
{
	const struct lane *start = &streams_section(&streams, ROW_START)->lane[t->lane];

	return start->life && start->life == t->writer.lane->life &&
	       start->seam_chunk != CHUNK_NONE;
}

static void seam_place(struct thread *t)
{
	struct lane *l = t->writer.lane;

	MUST(t->writer.index == t->lane && !t->following);

	PUBLISH(lane_seam, &l->seam, t->writer.head);
	PUBLISH(lane_seam_chunk, &l->seam_chunk, l->now);
}

bool seam_in_start(const struct thread *t)
{
	return streams_followers(&streams, t->writer.section) & t->writer.lane->readers & START;
}

/* Those who follow now, and who comes late, as soon as it may read this lane. */
static uint32_t readers_now(const struct thread *t, uint32_t readers)
{
	uint32_t now = streams_followers(&streams, t->writer.section) & (readers | ~START);
	bool late = now & ~readers && lane_of_start(t);
	bool empty = scope_between(late && now & readers & ~START);

	return late && (empty || !(now & readers & ~START)) ? now : now & readers;
}

static void lane_renew(struct thread *t)
{
	struct lane *l = t->writer.lane;
	uint32_t readers = l->readers, now = readers_now(t, readers);
	bool added, start = now & START;

	if (seam_in_start(t) && scope_start_over())
		now &= ~START;
	added = now & ~readers;
	if (added || start)
		seam_place(t);
	if (added || start != (bool)(now & START))
		scope_renew(!added && now & ~START, added && !(now & readers & ~START));
	if (now == readers)
		return;
	PUBLISH(lane_readers, &l->readers, now);
	word_wake(&l->readers);
}

/*
 * What the start told has been taken by all; nothing that comes behind it has, until its
 * first thread to join is done with this.
 */
static void process_joins(void)
{
	enum { NOT_YET, BEGUN, DONE };
	static uint32_t state;
	uint32_t was = NOT_YET;

	if (CONSUME_IF(joins, &state, &was, BEGUN)) {
		locks_renew();
		files_join();
		/* The others see what was done. */
		PUBLISH(joins, &state, DONE);
	}
	while (CONSUME(joins, &state) != DONE)
		OWN0(__NR_sched_yield);
}

bool seam_join(struct thread *t)
{
	const struct conduct *c = streams.conduct;
	uint32_t leader = c->next[ROW_START] % VERSIONS, us = 1u << streams.self;
	const struct lane *l = &streams_section(&streams, leader)->lane[t->lane];

	MUST(t->following && leader < VERSIONS);

	/* The monitor adds us first, then the lane's thread. */
	if (!(CONSUME(conduct_bits, &c->following) & us) ||
	    !(CONSUME(lane_readers, &l->readers) & us) ||
	    l->life != t->reader.cursor->life)
		return false;
	process_joins();
	cursor_join(&streams, t->lane, leader);
	reader_attach(&t->reader, &streams, t->lane);
	return true;
}

void seam_pass(struct thread *t)
{
	t->slot->seams++;
	if (is_stateless()) {
		lane_renew(t);
		t->kept = t->wait_due = 0;
		t->seam_due = 1;
		return;
	}
	if (stream_followed(t))
		lead_note(t, EVENT_SEAM, t->slot->seams);
}
