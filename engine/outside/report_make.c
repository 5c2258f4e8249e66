/*
 * Making a report.  Its fields:
 *
 *	format, number, time, session, verdict, summary, why, strict, policy
 *	difference	null, or what differs: call, value, length, bytes, end, extra
 *	leader		name, command, pid, call (the one that was met; or null)
 *	follower	name, command, pid, thread, lane, call, stack
 *	argument	null, or the one that differs: index, name, part, offset, and
 *			for leader and follower: value; or length, byte and text.
 *			`content`, where a length differs: where what it is of does
 *	signal		null, or of a crash: name, number, address
 *	window		the last calls of the thread, oldest first: leader, follower
 *			(each may be null), same, seq
 *	next		what the leader went on with, as far as it is known
 *	rule, suggested_rule	null: there are no rules yet
 *
 * Everything in the slot was written by the program, and is only ever printed.
 */
#include <string.h>
#include <time.h>

#include "engine/core/walk.h"
#include "engine/outside/report.h"
#include "engine/outside/view.h"

#define NEXT_MAX	4
#define CONTEXT		64	/* bytes of content on each side of a difference */
#define CALL_COLUMNS	64	/* of a call in the summary */

/* What the parts of the making share. */
struct making {
	const struct report_want *w;
	json_t *report;
	struct call_print print;
	struct window_row last;		/* the row that the verdict is about, */
	struct report_event met[1 + NEXT_MAX];	/* its event and those behind it */
	unsigned mets;
	bool whole;		/* met[0] is the last row's */
};

/* --- printing calls ------------------------------------------------------------- */

/* The printed call, without the room that strace leaves before the result. */
static json_t *printed(struct making *k)
{
	return json_stringn_nocheck(k->print.text, k->print.len);
}

static json_t *view_print(struct making *k, const struct view *v)
{
	k->print.column = 80;
	print_view(&k->print, v);
	return printed(k);
}

static json_t *signal_print(struct making *k, const struct event *e, const void *payload,
			    size_t have)
{
	uint8_t info[128] = { 0 };

	memcpy(info, payload, have < sizeof(info) ? have : sizeof(info));
	k->print.len = 0;
	print_signal(&k->print, (int)e->result, info);
	return printed(k);
}

static json_t *event_print(struct making *k, const struct event *e, const void *payload,
			   size_t have, const uint64_t *own)
{
	struct view v;

	if (e->kind == EVENT_SIGNAL)
		return signal_print(k, e, payload, have);
	if (e->kind != EVENT_CALL)
		return json_null();
	view_event(&v, e, payload, have, own);
	return view_print(k, &v);
}

static uint8_t memory_bits(long nr, const uint64_t *args)
{
	const struct call_desc *d = call_find_variant(nr, args);
	uint8_t bits = 0;

	for (unsigned i = 0; d && i < d->nargs; i++)
		if (d->args[i].kind >= KIND_VALUES && args[i])
			bits |= (uint8_t)(1u << i);
	return bits;
}

static long nothing_read(void *ctx, uint64_t addr, void *buf, size_t len)
{
	(void)ctx, (void)addr, (void)buf, (void)len;
	return 0;
}

/* A call of the follower that nothing but its arguments is kept of. */
static json_t *own_print(struct making *k, const struct window_row *row)
{
	const struct print_mem none = { nothing_read, NULL };

	k->print.column = 80;
	k->print.unknown = memory_bits((long)row->call, row->args);
	if (row->end == ROW_OPEN) {
		print_attempt(&k->print, &none, (long)row->call, row->args);
	} else {
		print_enter(&k->print, &none, (long)row->call, row->args);
		print_exit(&k->print, &none, row->result);
	}
	k->print.unknown = 0;
	return printed(k);
}

static json_t *attempt_print(struct making *k, const struct window_row *row)
{
	if (!k->w->mem)
		return own_print(k, row);
	print_attempt(&k->print, k->w->mem, (long)row->call, row->args);
	return printed(k);
}

/* --- the window -------------------------------------------------------------------- */

static bool same_call(const struct window_row *row)
{
	return row->event.kind == EVENT_CALL && row->event.call == row->call;
}

static json_t *leader_print(struct making *k, const struct window_row *row)
{
	size_t have = row->event.size < sizeof(row->payload) ? row->event.size
							      : sizeof(row->payload);

	if (row->end == ROW_OWN)
		return json_null();
	return event_print(k, &row->event, row->payload, have, same_call(row) ? row->args : NULL);
}

static json_t *follower_print(struct making *k, const struct window_row *row)
{
	struct window_row own = *row;

	if (row->end != ROW_ANSWERED || (row->event.kind == EVENT_CALL && !same_call(row)))
		return own_print(k, row);
	/* What it sent was the leader's, and what it received is. */
	own.event.result = row->event.kind == EVENT_CALL ? row->result : row->event.result;
	return leader_print(k, &own);
}

static void row_add(struct making *k, json_t *rows, const struct window_row *row, bool last)
{
	json_t *leader, *follower;
	bool same;

	if (last && k->whole)
		leader = event_print(k, &k->met[0].event, k->met[0].payload, k->met[0].len,
				     same_call(row) ? row->args : NULL);
	else
		leader = leader_print(k, row);
	follower = last && row->end == ROW_OPEN ? attempt_print(k, row) : follower_print(k, row);
	same = row->end == ROW_ANSWERED && json_equal(leader, follower);
	json_array_append_new(rows, json_pack("{s:o, s:o, s:b, s:I}", "leader", leader, "follower",
					      follower, "same", same, "seq",
					      (json_int_t)(row->event.seq & ORDER_MASK)));
}

static json_t *window_make(struct making *k)
{
	uint64_t calls = k->w->slot->calls, n = calls < WINDOW ? calls : WINDOW;
	json_t *rows = json_array();

	for (uint64_t i = calls - n; i < calls; i++)
		row_add(k, rows, &k->w->slot->window[i % WINDOW], i + 1 == calls);
	return rows;
}

static json_t *next_make(struct making *k)
{
	json_t *next = json_array();

	for (unsigned i = k->whole; i < k->mets; i++)
		json_array_append_new(next, event_print(k, &k->met[i].event, k->met[i].payload,
							k->met[i].len, NULL));
	return next;
}

/* --- what differs -------------------------------------------------------------------- */

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
	c.len -= from < c.len ? from : c.len;
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
			 (json_int_t)c.start, "text", printed(k), "cut_before", c.start > 0,
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
		size_t n = part_read(a, m, at, x, sizeof(x)), have = part_read(b, m, at, y, sizeof(y));

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
	bool wide = d->kind == KIND_LONG || d->kind == KIND_SIZE || d->kind == KIND_OFF;
	uint64_t a = leader->args[arg], b = k->last.args[arg];

	return json_pack("{s:{s:I}, s:{s:I}, s:o}", "leader", "value",
			 wide ? (json_int_t)a : (json_int_t)(int32_t)a, "follower", "value",
			 wide ? (json_int_t)b : (json_int_t)(int32_t)b, "content",
			 counted_make(k, leader, arg));
}

/* Its own view of the leader's call, with all that is known of the payload. */
static void leader_view(struct making *k, struct view *v)
{
	const struct window_row *row = &k->last;

	if (k->whole)
		view_event(v, &k->met[0].event, k->met[0].payload, k->met[0].len, row->args);
	else
		view_event(v, &row->event, row->payload,
			   row->event.size < sizeof(row->payload) ? row->event.size
								  : sizeof(row->payload), row->args);
}

static bool about_argument(const struct report_want *w)
{
	return w->verdict == VERDICT_DIVERGED &&
	       (w->what == DIFFERS_VALUE || w->what == DIFFERS_LENGTH || w->what == DIFFERS_BYTES);
}

static json_t *argument_make(struct making *k)
{
	uint64_t arg = k->w->where >> 56, offset = k->w->where & ((1ull << 56) - 1);
	struct view leader;
	json_t *j;

	if (!about_argument(k->w) || !same_call(&k->last))
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

/* --- the summary ------------------------------------------------------------------------ */

static const char *text_of(const json_t *j, const char *key)
{
	const char *text = json_string_value(json_object_get(j, key));

	return text ? text : "";
}

static json_int_t number_of(const json_t *j, const char *key)
{
	return json_integer_value(json_object_get(j, key));
}

/* A call, cut so that the line stays one. */
static json_t *call_short(const char *call)
{
	size_t len = strlen(call);

	return len <= CALL_COLUMNS ? json_string(call)
				   : json_sprintf("%.*s...", CALL_COLUMNS - 3, call);
}

static json_t *argument_words(const json_t *report, const char *call)
{
	const json_t *a = json_object_get(report, "argument");
	const json_t *leader = json_object_get(a, "leader"), *own = json_object_get(a, "follower");
	const json_t *content = json_object_get(a, "content");
	const char *name = text_of(a, "name"), *what = text_of(report, "difference");

	if (!strcmp(what, "value") && json_is_object(content))
		return json_sprintf("%s argument %s is %lld, the leader's %lld; %s differs at byte "
				    "%lld", call, name, number_of(own, "value"),
				    number_of(leader, "value"), text_of(content, "name"),
				    number_of(content, "offset"));
	if (!strcmp(what, "value"))
		return json_sprintf("%s argument %s is %lld, the leader's %lld", call, name,
				    number_of(own, "value"), number_of(leader, "value"));
	if (!strcmp(what, "length") && leader)
		return json_sprintf("%s argument %s has %lld bytes, the leader's %lld", call, name,
				    number_of(own, "length"), number_of(leader, "length"));
	return json_sprintf("%s argument %s differs at byte %lld", call, name,
			    number_of(a, "offset"));
}

static json_t *diverged_words(const struct making *k, const char *call, const char *leaders)
{
	switch (k->w->what) {
	case DIFFERS_CALL:
		return *leaders ? json_sprintf("%s where the leader made %s", call, leaders)
				: json_sprintf("%s where the leader made no call", call);
	case DIFFERS_END:
		return json_sprintf("%s where the leader's thread has ended", call);
	case DIFFERS_EXTRA:
		return json_sprintf("its thread has ended, the leader's went on");
	default:
		return json_is_object(json_object_get(k->report, "argument")) ?
		       argument_words(k->report, call) : json_string(call);
	}
}

static json_t *verdict_words(const struct making *k, const char *call, const char *leaders)
{
	const struct report_want *w = k->w;

	switch (w->verdict) {
	case VERDICT_DIVERGED:
		return diverged_words(k, call, leaders);
	case VERDICT_CRASHED:
		if (w->what)
			return json_sprintf("%s at address 0x%lx", signal_word(w->what), w->where);
		return json_string(w->why ? w->why : "it ended");
	case VERDICT_UNSUPPORTED:
		return json_string(call);
	case VERDICT_BROKEN:
		return json_string("the stream makes no sense");
	default:
		return json_string(w->why ? w->why : "");
	}
}

/* ": kv_reply at v1.c:88" */
static json_t *place_words(const json_t *stack)
{
	const json_t *f = stack_frame_own(stack);
	const char *file = text_of(f, "file"), *base = strrchr(file, '/');
	const char *module = text_of(f, "module"), *name = strrchr(module, '/');
	const char *function = text_of(f, "function");

	if (!f)
		return json_string("");
	function = *function ? function : text_of(f, "address");
	if (!*file)
		return json_sprintf(": %s of %s", function, name ? name + 1 : module);
	return json_sprintf(": %s at %s:%lld", function, base ? base + 1 : file,
			    number_of(f, "line"));
}

static void summary_add(struct making *k)
{
	const json_t *follower = json_object_get(k->report, "follower");
	json_t *call = call_short(text_of(follower, "call"));
	json_t *leaders = call_short(text_of(json_object_get(k->report, "leader"), "call"));
	json_t *words = verdict_words(k, json_string_value(call), json_string_value(leaders));
	json_t *place = place_words(json_object_get(follower, "stack"));

	json_object_set_new(k->report, "summary",
			    json_sprintf("%s%s", json_string_value(words),
					 json_string_value(place)));
	json_decref(call);
	json_decref(leaders);
	json_decref(words);
	json_decref(place);
}

/* --- all of it ----------------------------------------------------------------------------- */

static const char *difference_name(const struct report_want *w)
{
	static const char *const names[] = {
		[DIFFERS_CALL] = "call", [DIFFERS_VALUE] = "value", [DIFFERS_LENGTH] = "length",
		[DIFFERS_BYTES] = "bytes", [DIFFERS_END] = "end", [DIFFERS_EXTRA] = "extra",
	};

	if (w->verdict != VERDICT_DIVERGED || w->what >= sizeof(names) / sizeof(names[0]))
		return NULL;
	return names[w->what];
}

static json_t *time_make(void)
{
	time_t now = time(NULL);
	char text[40];
	struct tm tm;

	localtime_r(&now, &tm);
	strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S%z", &tm);
	return json_string(text);
}

static json_t *signal_make(const struct report_want *w)
{
	char address[24];

	if (w->verdict != VERDICT_CRASHED || !w->what)
		return json_null();
	snprintf(address, sizeof(address), "0x%lx", w->where);
	return json_pack("{s:s, s:I, s:s}", "name", signal_word(w->what), "number",
			 (json_int_t)w->what, "address", address);
}

/* A command may hold any bytes; JSON may not. */
static json_t *command_make(struct making *k, const char *command)
{
	json_t *j = json_string(command);

	if (j)
		return j;
	print_bytes(&k->print, command, strlen(command));
	return printed(k);
}

static json_t *side(struct making *k, const struct report_side *s)
{
	return json_pack("{s:s, s:o, s:i, s:n}", "name", s->name, "command",
			 command_make(k, s->command), "pid", s->pid, "call");
}

/* The events that the follower has not taken; the first may be its last row's. */
static void ahead_read(struct making *k)
{
	const struct report_want *w = k->w;
	const struct window_row *last = &k->last;

	if (!w->slot->lane)
		return;
	k->mets = report_ahead(w->streams, w->version, w->slot->lane - 1, k->met, 1 + NEXT_MAX);
	k->whole = k->mets && last->end == ROW_OPEN && last->event.kind == EVENT_CALL &&
		   k->met[0].event.kind == EVENT_CALL && k->met[0].event.call == last->event.call &&
		   k->met[0].event.seq == last->event.seq;
	if (!k->whole && k->mets > NEXT_MAX)
		k->mets--;
}

/* What both are at: the last row, if its call has not been made. */
static void calls_add(struct making *k, json_t *leader, json_t *follower)
{
	const json_t *window = json_object_get(k->report, "window");
	const json_t *row = json_array_get(window, json_array_size(window) - 1);

	if (!k->w->slot->calls || k->last.end != ROW_OPEN)
		return;
	json_object_set(leader, "call", json_object_get(row, "leader"));
	json_object_set(follower, "call", json_object_get(row, "follower"));
}

static void sides_add(struct making *k)
{
	const struct report_want *w = k->w;
	json_t *leader = side(k, &w->leader), *follower = side(k, &w->follower);

	json_object_set_new(follower, "thread", json_integer(w->tid));
	json_object_set_new(follower, "lane", json_integer((json_int_t)w->slot->lane - 1));
	json_object_set_new(follower, "stack",
			    w->stack ? stack_read(w->follower.pid, w->stack) : json_array());
	calls_add(k, leader, follower);
	json_object_set_new(k->report, "leader", leader);
	json_object_set_new(k->report, "follower", follower);
}

json_t *report_make(const struct report_want *w)
{
	struct making k = { .w = w };

	if (w->slot->calls)
		k.last = w->slot->window[(w->slot->calls - 1) % WINDOW];
	ahead_read(&k);
	k.report = json_pack("{s:i, s:o, s:s, s:s, s:s?, s:s?, s:b, s:s?}", "format", REPORT_FORMAT,
			     "time", time_make(), "session", w->session, "verdict",
			     verdict_name(w->verdict), "difference", difference_name(w), "why",
			     w->why, "strict", w->strict, "policy", w->policy);
	json_object_set_new(k.report, "window", window_make(&k));
	json_object_set_new(k.report, "next", next_make(&k));
	sides_add(&k);
	json_object_set_new(k.report, "argument", argument_make(&k));
	json_object_set_new(k.report, "signal", signal_make(w));
	json_object_set_new(k.report, "rule", json_null());
	json_object_set_new(k.report, "suggested_rule", json_null());
	summary_add(&k);
	for (unsigned i = 0; i < k.mets; i++)
		free(k.met[i].payload);
	print_free(&k.print);
	return k.report;
}

const char *report_summary(const json_t *report)
{
	return text_of(report, "summary");
}
