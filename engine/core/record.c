/*
 * The leader's walk: a call's values go into the header of its event, what it
 * sent and received into the payload.  Memory that cannot be read (a racing
 * munmap) becomes zeros and a flag, never a crash: the call itself was made.
 */
#include "engine/core/must.h"
#include "engine/core/walk.h"

/* The event is full: its payload goes on in the next. */
static void go_on(struct writer *w)
{
	uint16_t call = w->open->call;
	uint64_t seq = w->open->seq;

	MUST(w->at >= (uint8_t *)(w->open + 1));

	writer_commit(w);
	host_begin(w, EVENT_MORE, call)->seq = seq;
}

static size_t piece(struct writer *w, size_t want)
{
	size_t room = writer_room(w);

	if (!room) {
		go_on(w);
		room = writer_room(w);
	}
	return want < room ? want : room;
}

static void put_target(struct writer *w, uint64_t from, uint64_t len)
{
	while (len) {
		size_t n = piece(w, len);

		if (!step_fetch(w->at, from, n))
			w->open->flags |= EVENT_CUT;
		w->at += n;
		from += n;
		len -= n;
	}
}

static void put_u32(struct writer *w, uint32_t value)
{
	const uint8_t *b = (const uint8_t *)&value;

	if (writer_room(w) >= sizeof(value)) {
		((struct packed_u32 *)w->at)->value = value;
		w->at += sizeof(value);
		return;
	}
	for (size_t i = 0; i < sizeof(value); i++) {
		piece(w, 1);
		*w->at++ = b[i];
	}
}

void record_section(struct writer *w, uint64_t from, uint64_t len)
{
	uint8_t *at = w->at;

	if (writer_room(w) < sizeof(uint32_t) + len) {
		put_u32(w, (uint32_t)len);
		put_target(w, from, len);
		return;
	}
	((struct packed_u32 *)at)->value = (uint32_t)len;
	at += sizeof(uint32_t);
	w->at = at + len;
	if (!step_fetch(at, from, len))
		w->open->flags |= EVENT_CUT;
}

/* Bytes up to the zero, as far as they can be read. */
static uint32_t text_length(uint64_t at)
{
	uint32_t n = 0;

	while (n < STRING_MAX) {
		char part[64];
		/* Never over the end of a page: the next may not be there. */
		size_t len = 64 - (at + n) % 64;

		if (target_in(part, at + n, len))
			return n;
		for (size_t i = 0; i < len; i++, n++)
			if (!part[i])
				return n;
	}
	return STRING_MAX;
}

static void put_strings(struct writer *w, uint64_t at)
{
	uint64_t string;

	for (int i = 0; i < STRINGS_MAX; i++, at += 8) {
		if (target_in(&string, at, 8) || !string)
			break;
		record_section(w, string, text_length(string));
	}
	put_u32(w, STRINGS_END);
}

/* The first `len` bytes behind an array of spans. */
static void put_spans(struct writer *w, uint64_t spans, uint64_t n, uint64_t len)
{
	put_u32(w, (uint32_t)len);
	for (; n && len; n--, spans += sizeof(struct span)) {
		struct span s;
		uint64_t part;

		if (target_in(&s, spans, sizeof(s)))
			break;
		part = s.len < len ? s.len : len;
		put_target(w, s.at, part);
		len -= part;
	}
	for (; len; len--) {	/* the array changed meanwhile: keep the promise */
		piece(w, 1);
		*w->at++ = 0;
	}
}

static void put_message(struct writer *w, uint64_t at, uint64_t bytes)
{
	struct message m = { 0 };

	if (!step_fetch(&m, at, sizeof(m)))
		w->open->flags |= EVENT_CUT;
	put_u32(w, m.flags);
	record_section(w, m.name, m.name ? m.name_len & MESSAGE_NAME : 0);
	record_section(w, m.control, m.control ? m.control_len & MESSAGE_CONTROL : 0);
	put_spans(w, m.iov, m.iov_n, bytes);
}

static void put_messages(struct writer *w, uint64_t at, int64_t n)
{
	for (int64_t i = 0; i < n; i++, at += MESSAGES_STRIDE) {
		uint32_t sent = 0;

		target_in(&sent, at + MESSAGE_MOVED, sizeof(sent));
		put_message(w, at, sent);
	}
}

/* With no buffer the kernel says how long one must be. */
static void put_conf(struct writer *w, uint64_t at)
{
	struct conf c = { 0 };

	if (!step_fetch(&c, at, sizeof(c)))
		w->open->flags |= EVENT_CUT;
	record_section(w, at, sizeof(c));
	record_section(w, c.at, c.at && (int32_t)c.len > 0 ? c.len : 0);
}

/* An AT section: as much as the kernel says that it wrote, and had room for. */
static uint64_t bytes_length(const struct walk *c, unsigned i)
{
	const struct arg_desc *a = &c->desc->args[i];
	uint64_t len = a->len_rule == LEN_RULE_SELF ? step_self(c, i) : step_length(c, i);
	uint32_t now = 0;

	if (a->len_rule == LEN_RULE_AT && !target_in(&now, c->args[a->len_arg], sizeof(now))) {
		uint64_t has = (uint64_t)now * step_room_unit(c, a);

		return has < len ? has : len;
	}
	return len;
}

void record_argument(struct writer *w, const struct walk *c, unsigned i)
{
	uint64_t at = c->args[i], moved = c->result < 0 ? 0 : (uint64_t)c->result;

	switch (step_kind(c, i)) {
	case STEP_NONE:
	case STEP_VALUE:
		break;
	case STEP_TEXT:
		record_section(w, at, at ? text_length(at) : 0);
		break;
	case STEP_BYTES:
		record_section(w, at, bytes_length(c, i));
		break;
	case STEP_VECTOR:
		put_spans(w, at, c->args[c->desc->args[i].len_arg], moved);
		break;
	case STEP_MESSAGE:
		put_message(w, at, moved);
		break;
	case STEP_MESSAGES:
		put_messages(w, at, c->result);
		break;
	case STEP_STRINGS:
		put_strings(w, at);
		break;
	case STEP_CONF:
		put_conf(w, at);
		break;
	}
}

void record_memory(struct writer *w, const struct walk *call)
{
	for (unsigned bits = call->recipe->memory; bits; bits &= bits - 1) {
		unsigned i = (unsigned)__builtin_ctz(bits);
		uint64_t len;

		if (!((call->recipe->moved | call->recipe->fixed) >> i & 1))
			record_argument(w, call, i);
		else if (step_simple(call, i, &len))
			record_section(w, call->args[i], len);
	}
}

/* The row depends on the arguments: step by step. */
void record_unknown(struct writer *w, const struct walk *call)
{
	unsigned values = 0, modes = 0;

	MUST(call->desc->nargs <= CALL_ARGS);
	for (unsigned i = 0; i < call->desc->nargs && values < EVENT_ARGS; i++)
		if (step_kind(call, i) == STEP_VALUE)
			w->open->arg[values++] = call->args[i];
		else
			modes += call->desc->args[i].kind == KIND_MODE;
	MUST(values + modes <= EVENT_ARGS);
	writer_values(w, values + modes);
	for (unsigned i = 0; i < call->desc->nargs; i++)
		record_argument(w, call, i);
}
