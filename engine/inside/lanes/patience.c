/*
 * How long is waited for what others are to do, and the count of it.
 */
#include <linux/time.h>

#include "engine/abi/area.h"
#include "engine/core/must.h"
#include "engine/inside/gate/thread.h"
#include "engine/inside/lanes/host.h"
#include "engine/inside/lanes/now.h"
#include "engine/inside/lanes/patience.h"

uint64_t wait_limit(enum wait_kind kind)
{
	static const uint64_t limits[] = {
#define WAIT(name, whose, limit, ...) [WAIT_##name] = WAIT_##limit##_NS,
#include "engine/abi/waits.def"
	};

	MUST(kind < WAITS);
	return limits[kind];
}

void wait_note(enum wait_kind kind, uint64_t ns, bool met)
{
	struct wait_count *c = &((struct area *)boot.area)->wait[kind];

	MUST(kind < WAITS);
	if (met)
		__atomic_fetch_add(&c->met, 1, __ATOMIC_RELAXED);
	/* Of two that write at once the shorter may win: it is for people. */
	if (ns > __atomic_load_n(&c->longest_ns, __ATOMIC_RELAXED))
		__atomic_store_n(&c->longest_ns, ns, __ATOMIC_RELAXED);
}

#define VAIN_MOST	10
static int32_t vain_more[WAITS + 1];	/* than were of use */

void wait_vain(enum wait_kind kind, bool vain)
{
	int32_t *more = &vain_more[kind];

	MUST(kind <= WAITS);
	if (vain)
		__atomic_fetch_add(more, 1, __ATOMIC_RELAXED);
	else if (__atomic_load_n(more, __ATOMIC_RELAXED) > 0)
		__atomic_fetch_sub(more, 1, __ATOMIC_RELAXED);
}

bool wait_given_up(enum wait_kind kind)
{
	return __atomic_load_n(&vain_more[kind], __ATOMIC_RELAXED) >= VAIN_MOST;
}

bool wait_met_often(enum wait_kind kind)
{
	MUST(kind < WAITS);
	return __atomic_load_n(&((struct area *)boot.area)->wait[kind].met, __ATOMIC_RELAXED) >=
	       VAIN_MOST;
}

static bool limit_is_met(const struct patience *p)
{
	return p->now - p->since >= wait_limit(p->kind) + p->more;
}

bool patience_step(struct patience *p)
{
	uint32_t seen = change_now();

	if (!p->since) {
		p->since = p->now = clock_ns(CLOCK_MONOTONIC);
		p->sleep = PAUSE_FIRST_NS;
	}
	if (limit_is_met(p))
		return false;
	change_wait(seen, p->sleep);
	p->sleep = pause_longer(p->sleep);
	p->now = clock_ns(CLOCK_MONOTONIC);
	return true;
}

void patience_go_on(struct patience *p)
{
	MUST(limit_is_met(p));
	p->more = p->now - p->since;
}

bool patience_end(const struct patience *p)
{
	bool met = limit_is_met(p);

	if (p->since)
		wait_note(p->kind, p->now - p->since, met);
	return met;
}
