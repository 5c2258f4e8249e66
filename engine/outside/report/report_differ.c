/*
 * What differs: the two sides of an argument.  The follower's part that its own
 * comparing stopped at is looked for in the leader's event, and the bytes around
 * the place are taken from both.
 */
#include <string.h>

#include "engine/core/must.h"
#include "engine/outside/report/report_parts.h"

#define CONTEXT	64	/* bytes of content on each side of a difference */

struct context {
	uint64_t start, offset;
	uint8_t bytes[2 * CONTEXT];
	size_t len;
};

/* Columns that a byte takes in quotes, at most. */
static unsigned width(uint8_t c)
{
	return c >= ' ' && c < 0x7f && c != '"' && c != '\\' ? 1 : c >= '\t' && c <= '\r' ? 2 : 4;
}

/* The bytes around a difference, as many as fit into a line. */
static struct context context_read(const struct part *p, const struct print_mem *m,
				   uint64_t offset)
{
	struct context c = { .start = offset > CONTEXT ? offset - CONTEXT : 0, .offset = offset };
	unsigned columns = 0, from;
	size_t at = (size_t)(offset - c.start), end;

	c.len = part_read(p, m, c.start, c.bytes, sizeof(c.bytes));
	from = (unsigned)(at < c.len ? at : c.len);
	while (from && columns + width(c.bytes[from - 1]) <= 28)
		columns += width(c.bytes[--from]);
	for (end = at, columns = 0; end < c.len && columns < 28; end++)
		columns += width(c.bytes[end]);
	c.len = end > c.len ? c.len : end;
	MUST(from <= c.len && c.len <= sizeof(c.bytes));
	c.len -= from;
	memmove(c.bytes, c.bytes + from, c.len);
	c.start += from;
	return c;
}

static json_t *side_make(struct making *k, const struct part *p, const struct print_mem *m,
			 uint64_t offset)
{
	struct context c = context_read(p, m, offset);
	uint8_t byte;
	json_t *side;

	print_bytes(&k->print, c.bytes, c.len);
	side = json_pack("{s:I, s:I, s:o, s:b, s:b}", "length", (json_int_t)p->len, "start",
			 (json_int_t)c.start, "text", report_printed(k), "cut_before", c.start > 0,
			 "cut_after", c.start + c.len < p->len);
	json_object_set_new(side, "byte", part_read(p, m, offset, &byte, 1) ?
			    json_integer(byte) : json_null());
	return side;
}

static const struct part *part_of(const struct view *v, unsigned arg, unsigned n)
{
	for (unsigned i = 0; i < v->parts; i++)
		if (v->part[i].arg == arg && !n--)
			return &v->part[i];
	return NULL;
}

static bool parts_differ(const struct part *a, const struct part *b, const struct print_mem *m,
			 uint32_t what, uint64_t offset)
{
	uint8_t x = 0, y = 0;

	if (what == DIFFERS_LENGTH)
		return a->len != b->len;
	if (!part_read(a, m, offset, &x, 1) || !part_read(b, m, offset, &y, 1))
		return (a->len > offset) != (b->len > offset);
	return x != y;
}

/* The part of the argument that the follower found to differ. */
static unsigned part_find(const struct view *leader, const struct view *follower, unsigned arg,
			  const struct report_want *w, uint64_t offset)
{
	const struct part *a, *b;

	for (unsigned i = 0; (a = part_of(leader, arg, i)) && (b = part_of(follower, arg, i)); i++)
		if (parts_differ(a, b, w->mem, (uint32_t)w->what, offset))
			return i;
	return 0;
}

static json_t *sides_make(struct making *k, const struct part *a, const struct part *b,
			  uint64_t offset)
{
	const struct report_want *w = k->w;

	return json_pack("{s:s, s:I, s:o, s:o}", "part", part_name(a), "offset",
			 (json_int_t)offset, "leader", side_make(k, a, w->mem, offset), "follower",
			 side_make(k, b, w->mem, offset));
}

static void own_view(const struct making *k, struct view *v)
{
	view_memory(v, k->w->mem, (long)k->last.call, k->last.args, k->last.event.result);
}

static json_t *content_make(struct making *k, const struct view *leader, unsigned arg,
			    uint64_t offset)
{
	const struct report_want *w = k->w;
	struct view follower;
	const struct part *a, *b;
	unsigned n;

	if (!w->mem)
		return json_null();
	own_view(k, &follower);
	n = part_find(leader, &follower, arg, w, offset);
	a = part_of(leader, arg, n);
	b = part_of(&follower, arg, n);
	if (!a || !b)
		return json_null();
	if (w->what == DIFFERS_LENGTH)
		offset = a->len < b->len ? a->len : b->len;
	return sides_make(k, a, b, offset);
}

/* The first byte that differs; the end of the shorter, if that is all. */
static uint64_t first_difference(const struct part *a, const struct part *b,
				 const struct print_mem *m)
{
	uint64_t at = 0;

	for (;;) {
		uint8_t x[256], y[256];
		size_t n = part_read(a, m, at, x, sizeof(x));
		size_t have = part_read(b, m, at, y, sizeof(y));

		n = have < n ? have : n;
		for (size_t i = 0; i < n; i++)
			if (x[i] != y[i])
				return at + i;
		at += n;
		if (n < sizeof(x))
			return at;
	}
}

/* The sent bytes that an argument is the length of; null if there are none. */
static json_t *counted_make(struct making *k, const struct view *leader, unsigned arg)
{
	struct view follower;

	if (!k->w->mem)
		return json_null();
	own_view(k, &follower);
	for (unsigned i = 0; i < leader->row->nargs; i++) {
		const struct arg_desc *d = &leader->row->args[i];
		const struct part *a = part_of(leader, i, 0), *b = part_of(&follower, i, 0);
		json_t *j;

		if (d->kind != KIND_MEM || d->dir != DIR_IN || d->len_rule != LEN_RULE_COUNT ||
		    d->len_arg != arg || !a || !b)
			continue;
		j = sides_make(k, a, b, first_difference(a, b, k->w->mem));
		json_object_set_new(j, "name", json_string(d->name));
		return j;
	}
	return json_null();
}

static json_t *values_make(struct making *k, const struct view *leader, unsigned arg)
{
	const struct arg_desc *d = &leader->row->args[arg];
	uint64_t a = leader->args[arg], b = k->last.args[arg];

	MUST(arg < leader->row->nargs);
	return json_pack("{s:{s:I}, s:{s:I}, s:o}", "leader", "value",
			 (json_int_t)arg_number(d, a), "follower", "value",
			 (json_int_t)arg_number(d, b), "content",
			 counted_make(k, leader, arg));
}

/* The leader's call, with all that is known of the payload. */
static void leader_view(struct making *k, struct view *v)
{
	const struct window_row *row = &k->last;

	MUST(row_met_own(row));		/* its arguments say which pointers were NULL */
	if (k->whole)
		view_event(v, &k->met[0].event, k->met[0].payload, k->met[0].len, row->args);
	else
		view_event(v, &row->event, row->payload, row_have(row), row->args);
}

static bool about_argument(const struct report_want *w)
{
	return w->verdict == VERDICT_DIVERGED &&
	       (w->what == DIFFERS_VALUE || w->what == DIFFERS_LENGTH || w->what == DIFFERS_BYTES);
}

json_t *report_argument(struct making *k)
{
	uint64_t arg = k->w->where >> 56, offset = k->w->where & ((1ull << 56) - 1);
	struct view leader;
	json_t *j;

	if (!about_argument(k->w) || !row_met_own(&k->last))
		return json_null();
	leader_view(k, &leader);
	if (!leader.row || arg >= leader.row->nargs)
		return json_null();
	j = k->w->what == DIFFERS_VALUE ? values_make(k, &leader, (unsigned)arg)
					: content_make(k, &leader, (unsigned)arg, offset);
	if (json_is_null(j))
		j = json_pack("{s:I}", "offset", (json_int_t)offset);
	json_object_set_new(j, "index", json_integer((json_int_t)arg));
	json_object_set_new(j, "name", json_string(leader.row->args[arg].name));
	return j;
}
