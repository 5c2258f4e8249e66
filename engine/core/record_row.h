/*
 * A recorder for one row that is known when we are compiled: record_call(), where whatever
 * hangs on the row alone is decided beforehand (recipe.h).  What it writes is the same, byte
 * by byte (tests/unit/record_row.c).
 *
 * Of a row that is brief all memory is bytes, as many as the result or the row says, texts, and
 * spans of bytes, by themselves or in a message.  Its recorder keeps the place in a register,
 * and knows one way alone: all there is has room behind the header, and can be read.  Else it is
 * record_call()'s, from the start.
 */
#ifndef MVE_CORE_RECORD_ROW_H
#define MVE_CORE_RECORD_ROW_H

#include "engine/core/must.h"
#include "engine/core/recipe.h"

/* What copies the program's bytes: the host may have a target_in() of less registers. */
#ifndef RECORD_COPY
#define RECORD_COPY record_copy
static INLINE uint8_t *record_copy(uint8_t *to, uint64_t from, size_t len)
{
	return target_in(to, from, len) ? NULL : to + len;
}
#endif

_Static_assert(sizeof(struct packed_u32) == sizeof(uint32_t), "a section's length");
_Static_assert(STRING_MAX + 2 * sizeof(uint64_t) < CHUNK_SIZE, "a text has room in a chunk");

static INLINE bool row_looks(const struct call_desc *d)
{
	return d->class == CLASS_QUERY || d->class == CLASS_SOFT;
}

static INLINE void record_row_value(unsigned i, struct event *e, unsigned *n,
				    const struct walk *call, const struct recipe r)
{
	if (!(r.values >> i & 1) || *n >= EVENT_ARGS)
		return;
	if (r.mode >> i & 1 && !(call->args[r.flags_arg] & OPEN_CREATES))
		return;
	e->arg[(*n)++] = call->args[i];
}

static INLINE bool arg_is_text(const struct call_desc *d, unsigned i)
{
	return d->args[i].kind == KIND_PATH || d->args[i].kind == KIND_STR;
}

static INLINE bool arg_has_spans(const struct call_desc *d, unsigned i)
{
	const enum step step = recipe_step(d, &d->args[i]);

	return d->args[i].kind == KIND_MEM && (step == STEP_VECTOR || step == STEP_MESSAGE);
}

static INLINE void row_brief_at(unsigned i, bool *brief, const struct call_desc *d,
				const struct recipe r)
{
	if (r.memory >> i & 1 && !((r.moved | r.fixed) >> i & 1) && !arg_is_text(d, i) &&
	    !arg_has_spans(d, i))
		*brief = false;
}

static INLINE bool row_is_brief(const struct call_desc *d)
{
	bool brief = true;

	EACH_ARG(row_brief_at, &brief, d, recipe_of(d));
	return brief;
}

/* Where the section's bytes go; NULL: they have no room. */
static INLINE uint8_t *record_brief_head(uint8_t *at, const uint8_t *end, uint64_t len)
{
	if (__builtin_expect((uint64_t)(end - at) < sizeof(uint32_t) + len, 0))
		return NULL;
	((struct packed_u32 *)at)->value = (uint32_t)len;
	return at + sizeof(uint32_t);
}

static INLINE uint8_t *record_brief_text(uint8_t *at, const uint8_t *end, uint64_t from)
{
	size_t room = (size_t)(end - at);
	long len;

	if (!from)
		return record_brief_head(at, end, 0);
	if (__builtin_expect(room < 2 * sizeof(uint64_t), 0))
		return NULL;
	room -= sizeof(uint32_t);
	len = target_text(at + sizeof(uint32_t), from, room < STRING_MAX ? room : STRING_MAX);
	if (__builtin_expect(len < 0, 0))
		return NULL;
	((struct packed_u32 *)at)->value = (uint32_t)len;
	return at + sizeof(uint32_t) + len;
}

static INLINE uint8_t *record_brief_bytes(uint8_t *at, const uint8_t *end, uint64_t from,
					  uint64_t len)
{
	at = record_brief_head(at, end, len);
	return at ? RECORD_COPY(at, from, len) : NULL;
}

/* The first `len` bytes behind `n` spans. */
static INLINE uint8_t *record_brief_spans(uint8_t *at, const uint8_t *end, uint64_t spans,
					  uint64_t n, uint64_t len)
{
	struct span s;
	uint64_t part;

	MUST(at <= end);
	at = record_brief_head(at, end, len);
	for (; at && len; len -= part, n--, spans += sizeof(s)) {
		if (!n || !RECORD_COPY((uint8_t *)&s, spans, sizeof(s)))
			return NULL;
		part = s.len < len ? s.len : len;
		at = RECORD_COPY(at, s.at, part);
	}
	return at;
}

static INLINE uint8_t *record_brief_message(uint8_t *at, const uint8_t *end, uint64_t message,
					    uint64_t len)
{
	struct message m;

	MUST(at <= end);
	if ((uint64_t)(end - at) < sizeof(uint32_t) ||
	    !RECORD_COPY((uint8_t *)&m, message, sizeof(m)))
		return NULL;
	((struct packed_u32 *)at)->value = m.flags;
	at = record_brief_bytes(at + sizeof(uint32_t), end, m.name,
				m.name ? m.name_len & MESSAGE_NAME : 0);
	if (at)
		at = record_brief_bytes(at, end, m.control,
					m.control ? m.control_len & MESSAGE_CONTROL : 0);
	return at ? record_brief_spans(at, end, m.iov, m.iov_n, len) : NULL;
}

/* As step_simple_by() has it, but for lengths that no chunk has room for; false: not told. */
static INLINE bool record_brief_length(const struct walk *call, unsigned i, bool fixed,
				       uint64_t *len)
{
	const struct arg_desc *a = &call->desc->args[i];

	if (layout_bytes(a->what) != 1 || fixed)
		return step_simple_by(call, i, fixed, len);
	if (!call->args[i] || !step_is_told(call, a))
		return false;
	*len = (uint64_t)call->result < call->args[a->len_arg] ? (uint64_t)call->result :
								call->args[a->len_arg];
	if (a->dir == DIR_IN && call->result < 0)
		*len = 0;
	return true;
}

static INLINE void record_brief_memory(unsigned i, uint8_t **at, const uint8_t *end,
				       const struct walk *call, const struct call_desc *d,
				       const struct recipe r)
{
	uint64_t len;

	if (!(r.memory >> i & 1) || !*at)
		return;
	if (arg_is_text(d, i)) {
		*at = record_brief_text(*at, end, call->args[i]);
	} else if (arg_has_spans(d, i)) {
		len = call->result < 0 ? 0 : (uint64_t)call->result;
		if (!call->args[i] || !step_is_told(call, &d->args[i]))
			return;
		*at = recipe_step(d, &d->args[i]) == STEP_MESSAGE ?
		      record_brief_message(*at, end, call->args[i], len) :
		      record_brief_spans(*at, end, call->args[i], call->args[d->args[i].len_arg],
					 len);
	} else if (__builtin_expect(record_brief_length(call, i, r.fixed >> i & 1, &len), 1)) {
		*at = record_brief_bytes(*at, end, call->args[i], len);
	}
}

/*
 * A brief row's values and payload, which goes to `end` at most: where it ends, or NULL: it is
 * not ours; how early it begins.
 */
static INLINE uint8_t *record_brief(struct event *e, uint8_t flags, const uint8_t *end,
				    const struct walk *call, const struct call_desc *d,
				    unsigned *early)
{
	const struct recipe r = recipe_of(d);
	unsigned n = 0;
	uint8_t *at;

	EACH_ARG(record_row_value, e, &n, call, r);
	*early = early_behind(r.places, flags);
	at = payload_from(e, *early);
	EACH_ARG(record_brief_memory, &at, end, call, d, r);
	return at;
}

/* record_section(), quicker where there is room for it all and the memory can be read. */
static INLINE void record_row_section(struct writer *w, uint64_t from, uint64_t len)
{
	uint8_t *at = record_brief_head(w->at, writer_end(w), len);

	if (at && __builtin_expect(!target_in(at, from, len), 1))
		w->at = at + len;
	else
		record_section(w, from, len);
}

static INLINE void record_row_memory(unsigned i, struct writer *w, const struct walk *call,
				     const struct call_desc *d, const struct recipe r)
{
	uint64_t len;

	if (!(r.memory >> i & 1) || (d->args[i].kind == KIND_MEM && !call->args[i]))
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
	uint8_t *at;
	unsigned n = 0, early;

	MUST(call->desc == d && d->nargs <= CALL_ARGS);
	/* In the event's first piece: memory may fill it. */
	if (row_looks(d))
		w->open->flags |= EVENT_LOOK;
	if (row_is_brief(d)) {
		at = record_brief(w->open, w->open->flags, writer_end(w), call, d, &early);
		if (!at) {
			record_call(w, call);
			return;
		}
		w->open->early = (uint8_t)early;
		w->at = at;
	} else {
		EACH_ARG(record_row_value, w->open, &n, call, r);
		writer_values(w, r.places);
		EACH_ARG(record_row_memory, w, call, d, r);
	}
}

#endif
