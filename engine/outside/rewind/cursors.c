/*
 * Where a follower's image stands in the streams: a cursor for each lane beside the
 * follower's own, which the leader's threads look at before they use a chunk again
 * (core/holds.c).  They are written while all threads of the follower stand, and put in
 * the place of its own when it has ended.
 */
#include <string.h>

#include "engine/core/must.h"
#include "engine/core/pairs.h"
#include "engine/core/ring.h"
#include "engine/outside/monitor/monitor.h"
#include "engine/outside/monitor/realms.h"
#include "engine/outside/monitor/streams.h"
#include "engine/outside/rewind/rewind.h"

/* None reads what was told before this leader's stream, or a start. */
bool cursors_are_leaders(const struct version *v)
{
	const struct monitor *m = v->monitor;

	MUST(v->index != m->leader);
	LANES_EACH(m, m->leader, i) {
		const struct cursor *c = cursor_at(m, v->index, i);

		if (c->life && c->source != m->leader && c->done != c->life)
			return false;
	}
	return true;
}

/* A leader's thread that looks meanwhile finds a place that is not behind the image's. */
static void cursor_keep(struct cursor *to, const struct cursor *from)
{
	MUST(to != from);
	to->place = from->place;
	PUBLISH(cursor_at, &to->at, from->at);
	PUBLISH(cursor_done, &to->done, from->done);
	PUBLISH(cursor_source, &to->source, from->source);
	PUBLISH(cursor_life, &to->life, from->life);
}

void cursors_keep(struct version *v, uint32_t image)
{
	const struct monitor *m = v->monitor;

	MUST(image);
	for (uint32_t r = 0; r < m->realms; r++) {
		struct section *s = realm_part(m, r, v->index);

		for (uint32_t i = 0; i < section_lanes(realm_part(m, r, m->leader)); i++)
			cursor_keep(&s->kept[i], &s->cursor[i]);
		ANNOUNCE(image, &s->image, image);
	}
}

bool cursors_are_kept(const struct version *v, uint32_t image)
{
	const struct monitor *m = v->monitor;

	MUST(image);
	for (uint32_t r = 0; r < m->realms; r++)
		if (LOOK(image, &realm_part(m, r, m->leader)->unkept[v->index]) == image)
			return false;
	return true;
}

void cursors_need(struct version *v, bool needed)
{
	const struct monitor *m = v->monitor;

	for (uint32_t r = 0; r < m->realms; r++)
		__atomic_store_n(&realm_part(m, r, v->index)->needed, needed, __ATOMIC_RELAXED);
}

/* Its threads say who they are when they are there: nobody is taken for one that has died. */
static void cursor_restore(struct cursor *to, const struct cursor *from)
{
	to->owner = to->pid = 0;
	cursor_keep(to, from);
}

bool cursors_restore(struct version *v, uint32_t image, uint32_t copy)
{
	const struct monitor *m = v->monitor;

	MUST(image && copy && image != copy);
	for (uint32_t r = 0; r < m->realms; r++) {
		struct section *s = realm_part(m, r, v->index);
		const struct section *leaders = realm_part(m, r, m->leader);

		for (uint32_t i = 0; i < section_lanes(leaders); i++) {
			cursor_restore(&s->cursor[i], &s->kept[i]);
			/* Who slept there is gone. */
			__atomic_store_n(&s->asleep[i], 0, __ATOMIC_RELAXED);
		}
		ANNOUNCE(image, &s->image, copy);
	}
	return cursors_are_kept(v, image);
}

void cursors_forget(struct version *v)
{
	const struct monitor *m = v->monitor;

	for (uint32_t r = 0; r < m->realms; r++)
		ANNOUNCE(image, &realm_part(m, r, v->index)->image, 0);
}
