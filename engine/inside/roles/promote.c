/*
 * From follower to leader: what a process does in which order when its stream has ended and
 * names this version; or where it reads on.  What it takes is in state/take.c, what each
 * module does with it in modules.def.
 */
#include "engine/core/must.h"
#include "engine/core/pairs.h"
#include "engine/core/ring.h"
#include "engine/inside/gate/thread.h"
#include "engine/inside/lanes/host.h"
#include "engine/inside/order/apart.h"
#include "engine/inside/order/order.h"
#include "engine/inside/record/lead.h"
#include "engine/inside/roles/modules.h"
#include "engine/inside/roles/promote.h"
#include "engine/inside/sample/scope.h"
#include "engine/inside/sample/seam.h"
#include "engine/inside/state/early.h"
#include "engine/inside/takeover/takers.h"

/* The stream names this version: the thread leads from here on. */
static void promoted(struct thread *t)
{
	struct taker *taker = take_begin(t);
	uint64_t mask;

	if (taker) {
		order_wait_ended(t);
		(is_guest(t) ? modules_lead_guest : modules_lead)(t);
		take_end(taker);
	}
	mask = early_come(t);
	lead_resume(t);
	MUST(!t->following);
	early_over(t, mask);
}

static bool lane_begun(const struct thread *t, uint32_t version)
{
	/* The twin has begun its lane. */
	return CONSUME(lane_owner, &streams_section(&streams, version)->lane[t->lane].owner) != 0;
}

/* Whose stream goes on here: one that failed before it told anything is passed over. */
static uint32_t next_of(const struct thread *t, uint32_t source)
{
	const struct conduct *c = streams.conduct;
	uint32_t next = c->next[source];

	for (int hops = 0; hops < VERSIONS && next != streams.self; hops++) {
		if (!(c->ended >> next & 1) || lane_begun(t, next))
			break;
		next = c->next[next];
	}
	return next < VERSIONS ? next : source;
}

/* True: it reads on in another's. */
static bool goes_over(struct thread *t, uint32_t source, uint32_t next)
{
	if (is_stateless() && source == ROW_START)
		return seam_join(t);
	if (!lane_begun(t, next))
		return false;
	order_wait_ended(t);
	reader_switch(&t->reader, next);
	return true;
}

void stream_ended(struct thread *t)
{
	uint32_t source = t->reader.cursor->source, next = next_of(t, source);

	MUST(t->following && source < VERSIONS);
	if (next == streams.self && !(is_stateless() && source == ROW_START))
		promoted(t);
	else if (goes_over(t, source, next))
		apart_forget(t);
}
