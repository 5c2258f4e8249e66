/*
 * Printing a call from its event.  The printer reads memory; an event has none,
 * so some is made: each part of the call gets a place in a small address space of
 * its own, with the arrays of pointers that lead to it, and the printer reads
 * there.  The addresses never show: they print as "?".
 */
#include <stdlib.h>
#include <string.h>

#include "engine/core/must.h"
#include "engine/core/walk.h"
#include "engine/outside/print/print_parts.h"
#include "engine/outside/report/view.h"

#define PLACE_GAP	0x1000ull	/* what is cut short ends at a hole */
#define PLACES		(VIEW_PARTS * 2 + CALL_ARGS)
_Static_assert(MESSAGE_MOVED + sizeof(uint32_t) <= MESSAGES_STRIDE &&
	       sizeof(struct message) <= MESSAGES_STRIDE, "a message and how much of it was moved");

struct place {
	uint64_t at, len;
	uint8_t *bytes;
};

struct scene {
	struct place place[PLACES];
	unsigned n;
	uint64_t next;
};

static long scene_read(void *ctx, uint64_t addr, void *to, size_t len)
{
	const struct scene *s = ctx;

	for (unsigned i = 0; i < s->n; i++) {
		const struct place *p = &s->place[i];

		if (addr < p->at || addr >= p->at + p->len)
			continue;
		if (len > p->at + p->len - addr)
			len = p->at + p->len - addr;
		memcpy(to, p->bytes + (addr - p->at), len);
		return (long)len;
	}
	return 0;
}

/* A place of its own for len bytes; `room` more follow them, zero. */
static struct place *place_make(struct scene *s, const void *bytes, uint64_t len, size_t room)
{
	static struct place none;
	struct place *p = s->n < PLACES ? &s->place[s->n] : &none;

	MUST(s->n <= PLACES && s->next >= MADE_UP);
	p->bytes = p == &none ? NULL : calloc(1, len + room + 1);
	if (!p->bytes)
		return &none;
	if (len)
		memcpy(p->bytes, bytes, len);
	p->at = s->next;
	p->len = len + room;
	s->next += (p->len / PLACE_GAP + 2) * PLACE_GAP;
	s->n++;
	return p;
}

static void scene_free(struct scene *s)
{
	for (unsigned i = 0; i < s->n; i++)
		free(s->place[i].bytes);
}

static uint64_t bytes_at(struct scene *s, const struct part *p)
{
	return place_make(s, p->bytes, p->have, 0)->at;
}

/* With its end; a text that is cut says so itself. */
static uint64_t text_at(struct scene *s, const struct part *p)
{
	bool cut = p->have < p->len;
	struct place *at = place_make(s, p->bytes, p->have, cut ? 4 : 1);

	if (cut && at->bytes)
		memcpy(at->bytes + p->have, "...", 3);
	return p->len ? at->at : 0;
}

static uint64_t vector_at(struct scene *s, const struct part *p)
{
	struct span one = { bytes_at(s, p), p->len };

	return place_make(s, &one, sizeof(one), 0)->at;
}

/* The message that parts i and the three behind it are of. */
static void message_make(struct scene *s, const struct view *v, unsigned i, struct message *m)
{
	for (; i < v->parts; i++) {
		const struct part *p = &v->part[i];

		switch (p->kind) {
		case PART_FLAGS:
			if (p->have == sizeof(m->flags))
				memcpy(&m->flags, p->bytes, sizeof(m->flags));
			break;
		case PART_NAME:
			m->name = p->have ? bytes_at(s, p) : 0;
			m->name_len = (uint32_t)p->len;
			break;
		case PART_CONTROL:
			m->control = p->have ? bytes_at(s, p) : 0;
			m->control_len = p->len;
			break;
		case PART_BYTES:
			m->iov = vector_at(s, p);
			m->iov_n = 1;
			return;
		}
	}
}

static uint64_t messages_at(struct scene *s, const struct view *v, unsigned arg, bool several)
{
	struct place *all = place_make(s, NULL, 0, MESSAGES_STRIDE * VIEW_PARTS);

	for (unsigned i = 0; all->bytes && i < v->parts; i++) {
		const struct part *p = &v->part[i];
		uint8_t *at;
		uint32_t sent;

		if (p->arg != arg || p->item >= VIEW_PARTS)
			continue;
		at = all->bytes + p->item * MESSAGES_STRIDE;
		if (p->kind == PART_FLAGS)
			message_make(s, v, i, (struct message *)at);
		sent = (uint32_t)p->len;
		if (several && p->kind == PART_BYTES)
			memcpy(at + MESSAGE_MOVED, &sent, sizeof(sent));
	}
	return all->at;
}

static uint64_t strings_at(struct scene *s, const struct view *v, unsigned arg)
{
	uint64_t list[VIEW_PARTS + 2] = { 0 };
	unsigned n = 0;

	MUST(v->parts && v->parts <= VIEW_PARTS);
	for (unsigned i = 0; i < v->parts; i++)
		if (v->part[i].arg == arg)
			list[n++] = text_at(s, &v->part[i]);
	if (v->cut && v->part[v->parts - 1].arg == arg)
		list[n++] = place_make(s, "...", 3, 1)->at;
	return place_make(s, list, (n + 1) * sizeof(list[0]), 0)->at;
}

/* An object that is there in part only is unknown: half of it would mislead. */
static bool shows_in_part(const struct arg_desc *a)
{
	return a->what == LAYOUT_bytes || a->len_rule == LEN_RULE_COUNT ||
	       a->len_rule == LEN_RULE_RESULT;
}

static uint64_t whole_at(struct scene *s, const struct arg_desc *a, const struct part *p,
			 struct call_print *out)
{
	if (a->kind != KIND_MEM)
		return text_at(s, p);
	if (a->what == LAYOUT_iovec)
		return vector_at(s, p);
	if (p->have < p->len && (!p->have || !shows_in_part(a) ||
				 p->have < layout_size(a->what)))
		out->unknown |= 1u << p->arg;
	return bytes_at(s, p);
}

/* What has its length in memory is not to be shown without it. */
static void lengths_check(const struct view *v, struct call_print *out)
{
	for (unsigned i = 0; i < v->row->nargs; i++) {
		const struct arg_desc *a = &v->row->args[i];

		if ((a->len_rule == LEN_RULE_AT || a->len_rule == LEN_RULE_AT64) &&
		    out->unknown >> a->len_arg & 1)
			out->unknown |= 1u << i;
	}
}

static void scene_make(struct scene *s, const struct view *v, struct call_print *out,
		       uint64_t args[CALL_ARGS])
{
	for (unsigned i = 0; i < v->parts; i++) {
		const struct part *p = &v->part[i];
		const struct arg_desc *a = &v->row->args[p->arg];

		MUST(p->arg < v->row->nargs && p->have <= p->len);
		if (i && v->part[i - 1].arg == p->arg)
			continue;
		if (p->kind == PART_STRING)
			args[p->arg] = strings_at(s, v, p->arg);
		else if (p->kind == PART_WHOLE)
			args[p->arg] = whole_at(s, a, p, out);
		else
			args[p->arg] = messages_at(s, v, p->arg, a->what == LAYOUT_mmsghdr);
	}
	lengths_check(v, out);
}

void print_view(struct call_print *p, const struct view *v)
{
	struct scene s = { .next = MADE_UP };
	struct print_mem mem = { scene_read, &s };
	uint64_t args[CALL_ARGS];

	memcpy(args, v->args, sizeof(args));
	p->unknown = v->unknown;
	p->partial = true;
	if (v->row)
		scene_make(&s, v, p, args);
	print_enter(p, &mem, v->nr, args);
	print_exit(p, &mem, v->result);
	p->unknown = 0;
	p->partial = false;
	p->mem = NULL;
	scene_free(&s);
}
