/*
 * Taking calls apart: see view.h.
 *
 * An event does not say which of the leader's pointers were NULL, and such a
 * pointer has no section in the payload.  The call that met the event had NULL in
 * the same places, if it was the same call.  For any other event all choices are
 * tried, and the first that explains the payload to its last byte is taken: NULL is
 * likelier the later an argument stands.
 */
#include <string.h>

#include "engine/core/must.h"
#include "engine/core/walk.h"
#include "engine/outside/report/view.h"

#define SPANS_MAX	1024	/* IOV_MAX */

/* --- the payload --------------------------------------------------------------- */

struct payload {
	const uint8_t *at;
	uint64_t have, total;	/* bytes here, bytes that there were */
	uint64_t used;
	bool cut;		/* what comes next is not here */
	bool wrong;		/* it cannot be so */
};

static bool u32_take(struct payload *p, uint32_t *value)
{
	p->wrong |= p->used + sizeof(*value) > p->total;
	p->cut |= p->used + sizeof(*value) > p->have;
	if (p->wrong || p->cut)
		return false;
	memcpy(value, p->at + p->used, sizeof(*value));
	p->used += sizeof(*value);
	return true;
}

static struct part *part_add(struct view *v, unsigned arg, enum part_kind kind, uint32_t item)
{
	static struct part none;
	struct part *p = v->parts < VIEW_PARTS ? &v->part[v->parts++] : &none;

	MUST(arg < CALL_ARGS && kind <= PART_STRING);
	*p = (struct part){ .arg = (uint8_t)arg, .kind = (uint8_t)kind, .item = item };
	return p;
}

static void bytes_take(struct view *v, struct payload *p, unsigned arg, enum part_kind kind,
		       uint32_t item, uint64_t len)
{
	struct part *part = part_add(v, arg, kind, item);
	uint64_t here = p->have > p->used ? p->have - p->used : 0;

	part->len = len;
	part->bytes = p->at + p->used;
	part->have = len < here ? len : here;
	/* Behind the first event's end it goes on in another. */
	p->cut |= p->used + len > p->total;
	p->used += len;
}

static bool section_take(struct view *v, struct payload *p, unsigned arg, enum part_kind kind,
			 uint32_t item)
{
	uint32_t len;

	if (!u32_take(p, &len))
		return false;
	bytes_take(v, p, arg, kind, item, len);
	return true;
}

static void strings_take(struct view *v, struct payload *p, unsigned arg)
{
	uint32_t len;

	for (uint32_t i = 0; i <= STRINGS_MAX && u32_take(p, &len); i++) {
		if (len == STRINGS_END)
			return;
		bytes_take(v, p, arg, PART_STRING, i, len);
	}
}

static void message_take(struct view *v, struct payload *p, unsigned arg, uint32_t item)
{
	if (p->used + 4 > p->have) {
		p->cut = true;
		return;
	}
	bytes_take(v, p, arg, PART_FLAGS, item, 4);
	if (section_take(v, p, arg, PART_NAME, item) &&
	    section_take(v, p, arg, PART_CONTROL, item))
		section_take(v, p, arg, PART_BYTES, item);
}

/* A section whose length is known to be wrong means a wrong guess. */
static void length_check(const struct walk *w, struct payload *p, const struct part *part)
{
	const struct arg_desc *a = &w->desc->args[part->arg];

	switch (a->len_rule) {
	case LEN_RULE_ONE:
	case LEN_RULE_COUNT:
	case LEN_RULE_RESULT:
	case LEN_RULE_BITS:
		p->wrong |= part->len != step_length(w, part->arg);
	}
}

static void memory_take(struct view *v, const struct walk *w, struct payload *p, unsigned arg)
{
	enum step step = step_kind(w, arg);
	unsigned before = v->parts;

	switch (step) {
	case STEP_TEXT:
	case STEP_BYTES:
	case STEP_VECTOR:
		section_take(v, p, arg, PART_WHOLE, 0);
		break;
	case STEP_MESSAGE:
		message_take(v, p, arg, 0);
		break;
	case STEP_MESSAGES:
		for (int64_t i = 0; i < w->result && !p->cut && !p->wrong; i++)
			message_take(v, p, arg, (uint32_t)i);
		break;
	case STEP_STRINGS:
		strings_take(v, p, arg);
		break;
	case STEP_CONF:
		if (section_take(v, p, arg, PART_WHOLE, 0))
			section_take(v, p, arg, PART_BYTES, 0);
		break;
	default:
		return;
	}
	if (step == STEP_BYTES && v->parts > before)
		length_check(w, p, &v->part[before]);
}

/* --- an event -------------------------------------------------------------------- */

/* Values have their places in the header; false for what only the call itself knows. */
static void values_take(struct view *v, const struct event *e)
{
	struct walk w = { .desc = v->row, .args = v->args, .result = e->result };
	unsigned values = 0;

	for (unsigned i = 0; i < v->row->nargs; i++)
		if (step_kind(&w, i) == STEP_VALUE && values < EVENT_ARGS)
			v->args[i] = e->arg[values++];
		else if (v->row->args[i].kind < KIND_VALUES)
			v->unknown |= 1u << i;
}

static uint8_t memory_args(const struct call_desc *row)
{
	uint8_t bits = 0;

	for (unsigned i = 0; i < row->nargs; i++)
		if (row->args[i].kind >= KIND_VALUES)
			bits |= 1u << i;
	return bits;
}

static bool has_part(const struct view *v, unsigned arg)
{
	for (unsigned i = 0; i < v->parts; i++)
		if (v->part[i].arg == arg)
			return true;
	return false;
}

/* Takes the payload apart; whether that explains all of it. */
static bool payload_take(struct view *v, const struct event *e, const void *payload, size_t have)
{
	struct walk w = { .desc = v->row, .args = v->args, .result = e->result };
	struct payload p = { .at = payload, .have = have, .total = e->size };

	_Static_assert(CALL_ARGS <= 8, "a bit for each in `unknown`");
	w.room = UINT64_MAX;	/* as much as it says */
	if (have > e->size)
		p.total = have;		/* EVENT_MORE is here, too */
	v->parts = 0;
	for (unsigned i = 0; i < v->row->nargs && !p.cut && !p.wrong; i++)
		memory_take(v, &w, &p, i);
	v->cut = p.cut;
	return !p.wrong && (p.cut || p.used == p.total);
}

/* Which pointers were NULL: the first choice that explains the payload. */
static void nulls_guess(struct view *v, const struct event *e, const void *payload, size_t have)
{
	uint8_t memory = memory_args(v->row);

	for (unsigned choice = 0; choice < 1u << CALL_ARGS; choice++) {
		unsigned nulls = 0;

		for (unsigned i = 0; i < CALL_ARGS; i++)
			nulls |= (choice >> i & 1) << (CALL_ARGS - 1 - i);
		if (nulls & ~memory)
			continue;
		for (unsigned i = 0; i < CALL_ARGS; i++)
			if (memory >> i & 1)
				v->args[i] = !(nulls >> i & 1);
		if (payload_take(v, e, payload, have))
			return;
	}
	v->parts = 0;
	v->unknown |= memory;
}

/* Memory that the event tells nothing of: failed reads, what is never recorded. */
static void unknown_note(struct view *v)
{
	for (unsigned i = 0; i < v->row->nargs; i++)
		if (v->row->args[i].kind >= KIND_VALUES && !has_part(v, i) && v->args[i])
			v->unknown |= 1u << i;
}

void view_event(struct view *v, const struct event *e, const void *payload, size_t have,
		const uint64_t *own)
{
	*v = (struct view){ .nr = e->call, .result = e->result };
	v->row = own ? call_find_variant(e->call, own) : call_find(e->call);
	if (own)
		memcpy(v->args, own, sizeof(v->args));
	if (!v->row)
		return;
	if (call_bears(call_find(e->call))) {	/* its event has lanes in the place of arguments */
		v->unknown = own ? 0 : 0xff;
		return;
	}
	values_take(v, e);
	if (!own && call_find_variant(e->call, v->args) != v->row) {
		v->row = call_find_variant(e->call, v->args);
		MUST(v->row);		/* a call that has a row has a variant for each value */
		v->unknown = 0;
		values_take(v, e);
	}
	if (own) {
		v->unknown = 0;
		payload_take(v, e, payload, have);
	} else {
		nulls_guess(v, e, payload, have);
		unknown_note(v);
	}
}

/* --- a process --------------------------------------------------------------------- */

static bool get(const struct print_mem *m, uint64_t at, void *to, size_t len)
{
	return at && m->read(m->ctx, at, to, len) == (long)len;
}

static uint64_t text_length(const struct print_mem *m, uint64_t at)
{
	char page[STRING_MAX];
	long n = at ? m->read(m->ctx, at, page, sizeof(page)) : 0;
	const char *end = n > 0 ? memchr(page, 0, (size_t)n) : NULL;

	return end ? (uint64_t)(end - page) : n > 0 ? (uint64_t)n : 0;
}

/* A program may say any number; the kernel takes no more. */
static uint64_t spans_bound(uint64_t n)
{
	return n < SPANS_MAX ? n : SPANS_MAX;
}

static uint64_t spans_length(const struct print_mem *m, uint64_t at, uint64_t n)
{
	uint64_t len = 0;

	for (; n; n--, at += sizeof(struct span)) {
		struct span s;

		if (!get(m, at, &s, sizeof(s)))
			break;
		len += s.len;
	}
	return len;
}

static struct part *place_add(struct view *v, unsigned arg, enum part_kind kind, uint32_t item,
			      uint64_t at, uint64_t len)
{
	struct part *p = part_add(v, arg, kind, item);

	p->at = at;
	p->len = at ? len : 0;
	return p;
}

static void spans_add(struct view *v, const struct print_mem *m, unsigned arg,
		      enum part_kind kind, uint32_t item, uint64_t at, uint64_t n)
{
	struct part *p = place_add(v, arg, kind, item, at, spans_length(m, at, spans_bound(n)));

	p->spans = spans_bound(n);
}

static void message_add(struct view *v, const struct print_mem *m, unsigned arg, uint32_t item,
			uint64_t at)
{
	struct message msg = { 0 };

	get(m, at, &msg, sizeof(msg));
	place_add(v, arg, PART_FLAGS, item, at + offsetof(struct message, flags), 4);
	place_add(v, arg, PART_NAME, item, msg.name, msg.name_len & MESSAGE_NAME);
	place_add(v, arg, PART_CONTROL, item, msg.control, msg.control_len & MESSAGE_CONTROL);
	spans_add(v, m, arg, PART_BYTES, item, msg.iov, msg.iov_n);
}

static void strings_add(struct view *v, const struct print_mem *m, unsigned arg, uint64_t at)
{
	uint64_t string;

	for (uint32_t i = 0; i < STRINGS_MAX && get(m, at + i * 8, &string, 8) && string; i++)
		place_add(v, arg, PART_STRING, i, string, text_length(m, string));
}

static void memory_add(struct view *v, const struct print_mem *m, const struct walk *w,
		       unsigned arg)
{
	uint64_t at = v->args[arg];

	switch (step_kind(w, arg)) {
	case STEP_TEXT:
		place_add(v, arg, PART_WHOLE, 0, at, text_length(m, at));
		break;
	case STEP_BYTES:
		place_add(v, arg, PART_WHOLE, 0, at, step_length(w, arg));
		break;
	case STEP_VECTOR:
		MUST(v->row->args[arg].len_arg < CALL_ARGS);
		spans_add(v, m, arg, PART_WHOLE, 0, at, v->args[v->row->args[arg].len_arg]);
		break;
	case STEP_MESSAGE:
		message_add(v, m, arg, 0, at);
		break;
	case STEP_MESSAGES:
		for (int64_t i = 0; i < w->result && v->parts < VIEW_PARTS; i++)
			message_add(v, m, arg, (uint32_t)i, at + (uint64_t)i * MESSAGES_STRIDE);
		break;
	case STEP_STRINGS:
		strings_add(v, m, arg, at);
		break;
	default:
		break;
	}
}

void view_memory(struct view *v, const struct print_mem *m, long nr,
		 const uint64_t args[CALL_ARGS], int64_t result)
{
	struct walk w = { .args = v->args, .result = result };

	*v = (struct view){ .nr = nr, .result = result, .row = call_find_variant(nr, args) };
	memcpy(v->args, args, sizeof(v->args));
	w.desc = v->row;
	for (unsigned i = 0; v->row && i < v->row->nargs; i++)
		memory_add(v, m, &w, i);
}

/* --- parts ---------------------------------------------------------------------------- */

static size_t spans_read(const struct part *p, const struct print_mem *m, uint64_t offset,
			 uint8_t *to, size_t len)
{
	size_t got = 0;

	for (uint64_t i = 0; i < p->spans && got < len; i++) {
		struct span s;
		size_t n;
		long read;

		if (!get(m, p->at + i * sizeof(s), &s, sizeof(s)))
			break;
		if (offset >= s.len) {
			offset -= s.len;
			continue;
		}
		n = s.len - offset < len - got ? s.len - offset : len - got;
		read = m->read(m->ctx, s.at + offset, to + got, n);
		MUST(read <= (long)n);	/* memory_peek and its like give no more */
		got += read > 0 ? (size_t)read : 0;
		if (read < (long)n)
			break;
		offset = 0;
	}
	return got;
}

size_t part_read(const struct part *p, const struct print_mem *m, uint64_t offset, void *to,
		 size_t len)
{
	uint64_t end = p->bytes ? p->have : p->len;
	long n;

	if (offset >= end)
		return 0;
	if (len > end - offset)
		len = end - offset;
	if (p->bytes) {
		memcpy(to, p->bytes + offset, len);
		return len;
	}
	if (p->spans)
		return spans_read(p, m, offset, to, len);
	n = m->read(m->ctx, p->at + offset, to, len);
	return n > 0 ? (size_t)n : 0;
}

const char *part_name(const struct part *p)
{
	static const char *const names[] = {
		[PART_WHOLE] = "", [PART_FLAGS] = "msg_flags", [PART_NAME] = "msg_name",
		[PART_CONTROL] = "msg_control", [PART_BYTES] = "msg_iov", [PART_STRING] = "string",
	};

	MUST(p->kind < sizeof(names) / sizeof(names[0]));
	return names[p->kind];
}
