/*
 * From follower to leader: what a process does in which order when its stream has ended and
 * names this version.  What it takes is in takeover/take.c, what each module does with it in
 * modules.def.
 */
#include "engine/core/must.h"
#include "engine/inside/gate/thread.h"
#include "engine/inside/order/order.h"
#include "engine/inside/record/lead.h"
#include "engine/inside/roles/modules.h"
#include "engine/inside/roles/promote.h"
#include "engine/inside/state/early.h"
#include "engine/inside/takeover/take.h"

/* The stream has ended and names this version: the thread leads from here on. */
void follow_promoted(struct thread *t)
{
	struct taker *taker = take_begin(t);
	uint64_t mask;

	if (taker) {
		order_wait_ended(t);
		(take_is_guest(t) ? modules_lead_guest : modules_lead)(t);
		take_end(taker);
	}
	mask = early_come(t);
	lead_resume(t);
	MUST(!t->following);
	early_over(t, mask);
}
