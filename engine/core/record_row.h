/*
 * A recorder for one row that is known when we are compiled: record_call(), where whatever
 * hangs on the row alone is decided beforehand (recipe.h).  What it writes is the same, byte
 * by byte (tests/unit/record_row.c).
 */
#ifndef MVE_CORE_RECORD_ROW_H
#define MVE_CORE_RECORD_ROW_H

#include "engine/core/must.h"
#include "engine/core/recipe.h"

static INLINE void record_row_value(unsigned i, struct event *e, unsigned *n,
				    const struct walk *call, const struct recipe r)
{
	if (!(r.values >> i & 1) || *n >= EVENT_ARGS)
		return;
	if (r.mode >> i & 1 && !(call->args[r.flags_arg] & OPEN_CREATES))
		return;
	e->arg[(*n)++] = call->args[i];
}

/* record_section(), quicker where there is room for it all and the memory can be read. */
static INLINE void record_row_section(struct writer *w, uint64_t from, uint64_t len)
{
	uint8_t *at = w->at;

	if (__builtin_expect(writer_room(w) < sizeof(uint32_t) + len, 0)) {
		record_section(w, from, len);
		return;
	}
	((struct packed_u32 *)at)->value = (uint32_t)len;
	w->at = at + sizeof(uint32_t) + len;
	if (__builtin_expect(target_in(at + sizeof(uint32_t), from, len), 0)) {
		w->at = at;
		record_section(w, from, len);
	}
}

static INLINE void record_row_memory(unsigned i, struct writer *w, const struct walk *call,
				     const struct recipe r)
{
	uint64_t len;

	if (!(r.memory >> i & 1))
		return;
	if (!((r.moved | r.fixed) >> i & 1))
		record_argument(w, call, i);
	else if (step_simple_by(call, i, r.fixed >> i & 1, &len))
		record_row_section(w, call->args[i], len);
}

/* `d` is call->desc, and the compiler knows it. */
static INLINE void record_row(struct writer *w, const struct walk *call, const struct call_desc *d)
{
	const struct recipe r = recipe_of(d);
	unsigned n = 0;

	MUST(call->desc == d && d->nargs <= CALL_ARGS);
	if (d->class == CLASS_QUERY || d->class == CLASS_SOFT)
		w->open->flags |= EVENT_LOOK;
	EACH_ARG(record_row_value, w->open, &n, call, r);
	EACH_ARG(record_row_memory, w, call, r);
}

#endif
