/*
 * Who serves, when the monitor has gone in the middle of a takeover: after the leader's stream
 * has ended, and before the successor has all descriptors.
 *
 * A process of the successor either has got all of them, and leads, or has not, and ends: it
 * says so first, in its cursors.  Its twin, which stands, looks there: it ends where the other
 * has begun a lane, leads on where the other has given up or is gone, and stands until one of
 * the two is so.  A process that ends never leads, and one that leads does not give up, so
 * there are never two, and never none.
 *
 * What is read here is written by processes of the other version that have the same rights.
 */
#include <asm/unistd.h>
#include <linux/errno.h>

#include "engine/core/must.h"
#include "engine/core/pairs.h"
#include "engine/core/ring.h"
#include "engine/inside/gate/block.h"
#include "engine/inside/gate/gate.h"
#include "engine/inside/gate/request.h"
#include "engine/inside/lanes/host.h"
#include "engine/inside/takeover/heir.h"

#define GIVEN_UP	(-1)	/* in the place of a reader's process */

static bool has_ended(uint32_t version)
{
	/* Who leads next is known. */
	return CONSUME(conduct_bits, &streams.conduct->ended) >> version & 1;
}

/* Others of the realm can write there too; while there is a monitor nobody has reason to. */
bool heir_failed(uint32_t version)
{
	return !monitor_alive() &&
	       CONSUME(section_leads_on, &streams_section(&streams, version)->leads_on);
}

bool heir_is(void)
{
	return has_ended(streams.self) && !heir_failed(streams.self);
}

/* A thread of the process' twin has made a call of its own, or is about to. */
static bool twin_leads(const struct section *ours, const struct section *its, int32_t pid)
{
	for (uint32_t i = 0; i < ours->lanes_high && i < LANES; i++)
		if (ours->lane[i].pid == pid &&
		    CONSUME(lane_owner, &its->lane[i].owner))
			return true;
	return false;
}

static bool twin_gone(const struct section *ours, const struct section *its, int32_t pid)
{
	for (uint32_t i = 0; i < ours->lanes_high && i < LANES; i++) {
		int32_t twin = CONSUME(cursor_pid, &its->cursor[i].pid);

		if (ours->lane[i].pid == pid && twin > 0 && OWN2(__NR_kill, twin, 0) != -ESRCH)
			return false;
	}
	return true;
}

bool heir_fails(const struct thread *t)
{
	struct section *ours = streams_section(&streams, streams.self);

	MUST(streams.self < VERSIONS && !monitor_alive());
	if (!has_ended(streams.self))
		return true;
	for (uint32_t i = 0, v = streams.self; i < VERSIONS && has_ended(v); i++) {
		const struct section *its;

		v = streams.conduct->next[v];
		if (v >= VERSIONS || v == streams.self)
			break;
		its = streams_section(&streams, v);
		/* It leads only while its process lives: in this order. */
		if (!twin_gone(ours, its, t->pid) && !twin_leads(ours, its, t->pid))
			return false;
		if (twin_leads(ours, its, t->pid))
			OWN1(__NR_exit_group, 1);
	}
	PUBLISH(section_leads_on, &ours->leads_on, 1);
	return true;
}

void heir_gives_up(struct thread *t)
{
	struct thread *o;

	MUST(t->following && !monitor_alive());
	/* What the twin closes leaves its epoll sets only when nobody else has it open. */
	OWN3(__NR_close_range, 3, ~0u, 0);
	for (uint32_t i = 0; (o = block_next(&i)); i++)
		if (o->pid == t->pid && o->following)
			/* Nothing of it acts behind this. */
			PUBLISH(cursor_pid, &o->reader.cursor->pid, GIVEN_UP);
	for (;;)
		OWN1(__NR_exit_group, 1);
}
