/*
 * A leader that nobody follows any more.  What it would tell nobody hears, so its calls take the
 * short way again, its locks are left alone, and its clocks are read without a call: it is as
 * cheap as if it had been begun alone.  Only births, and what the inside keeps for the process
 * itself (descriptors that go, registrations, ids), come the long way as before.
 *
 * It begins where a thread finds that nobody is there, with the others at work: what is left
 * out is left out in any order.  It ends where all stand, for a twin is wanted (brief.loud).
 * Who stands then in a call that would not be told, or in a lock that was not led, leaves it as
 * one does that was alone (roles/company.c, locks/before.c), and only then there is a twin.
 */
#include "engine/abi/table.h"
#include "engine/core/must.h"
#include "engine/inside/calls/private.h"
#include "engine/inside/calls/special.h"
#include "engine/inside/fd/follow_epoll.h"
#include "engine/inside/gate/request.h"
#include "engine/inside/gate/ways.h"
#include "engine/inside/locks/conditions.h"
#include "engine/inside/record/care.h"
#include "engine/inside/record/quiet.h"
#include "engine/inside/rollback/rollback.h"
#include "engine/inside/state/ids.h"

/* Untold it is the call, and nothing else: see lead_part() and lead_untold(). */
static bool is_hushable(const struct plan *p)
{
	const unsigned kept = CARE_KEPT | TRAIT_REGISTERS | TRAIT_KEPT | TRAIT_INNER | TRAIT_RIGHTS;

	return p->bare && !p->seam && !p->opens && !(p->care & kept);
}

/* With what another has led before: ids and data of registrations are put right. */
static bool is_translated(const struct plan *p)
{
	return (!ids_are_ours() && call_has_ids(p->desc)) ||
	       (epoll_inherited() && p->care & CARE_POLLS);
}

/* A leader's own affair, which one that has followed looks at all the same: ways_follow. */
static bool is_local(unsigned slot)
{
	return call_is_local(slot - 1) && !call_is_special(slot - 1);
}

static void rows_choose(void)
{
	for (unsigned slot = 1; slot < SLOT_CALLS; slot++) {
		const struct plan *p = &row_plans[slot];

		way_hushable(slot, is_local(slot) || (is_hushable(p) && !is_translated(p)));
	}
}

static bool may_be(void)
{
	return !stateless && !in_turns() && !boot.runtimes && !rollback_of() &&
	       !private_count && !conditions_open && !brief()->loud && !brief()->company;
}

void quiet_begin(struct thread *t)
{
	MUST(t->has_lane && !t->following);
	if ((quiet_on && ways_are_hushed()) || !may_be())
		return;
	rows_choose();
	ways_hush(true);
	/* Only then: who sleeps in a lock that is not led sleeps where a knock finds it so. */
	__atomic_store_n(&quiet_on, 1, __ATOMIC_RELAXED);
	locks_led_set();
}

void quiet_end(void)
{
	ways_hush(false);
	__atomic_store_n(&quiet_on, 0, __ATOMIC_RELAXED);
	locks_led_set();
}
