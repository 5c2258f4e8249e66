/*
 * Making a report.  Its fields:
 *
 *	format, number, time, session, verdict, summary, why, itself (why the program
 *			differs from itself; or null), strict, policy
 *	led		the one in question, `follower`, led when it crashed: `leader` is who
 *			leads since, and nothing was compared
 *	becoming	null, or of one that was to become another build, its command's, in a
 *			live update: what it was at; nothing was compared
 *	tried		how often the follower has met the event at which it differs
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
 *	rule		null, or the rule that has to do with it: name, file, line, how
 *			(nearest, followed, failed), why; and what the rule wanted and
 *			what it had instead (each may be null)
 *	suggested_rule	a rule that would make this divergence none; or null, and
 *	suggested_why	why there is none
 *	finding		null, or what a sanitizer said (finding_read.c), with count, how
 *			often it did, and request: null, or connection, bytes, whole (from
 *			its first byte on), other_thread (has read it), cut (the text is),
 *			text, file (the bytes)
 *
 * Everything in the slot was written by the program, and is only ever printed.
 */
#include <string.h>
#include <time.h>

#include "engine/core/must.h"
#include "engine/outside/monitor/monitor.h"
#include "engine/outside/report/report_parts.h"
#include "engine/outside/rules/rules_at_work.h"

/* --- printing calls ------------------------------------------------------------- */

/* The printed call, without the room that strace leaves before the result. */
json_t *report_printed(struct making *k)
{
	return json_stringn_nocheck(k->print.text, k->print.len);
}

static json_t *view_print(struct making *k, const struct view *v)
{
	k->print.column = 80;
	print_view(&k->print, v);
	return report_printed(k);
}

static json_t *signal_print(struct making *k, const struct event *e, const void *payload,
			    size_t have)
{
	uint8_t info[128] = { 0 };

	memcpy(info, payload, have < sizeof(info) ? have : sizeof(info));
	k->print.len = 0;
	print_signal(&k->print, (int)e->result, info);
	return report_printed(k);
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
	return report_printed(k);
}

static json_t *attempt_print(struct making *k, const struct window_row *row)
{
	if (!k->w->mem)
		return own_print(k, row);
	print_attempt(&k->print, k->w->mem, (long)row->call, row->args);
	return report_printed(k);
}

/* --- the window -------------------------------------------------------------------- */

static json_t *leader_print(struct making *k, const struct window_row *row)
{
	if (row->end == ROW_OWN)
		return json_null();
	return event_print(k, &row->event, row->payload, row_have(row),
			   row_met_own(row) ? row->args : NULL);
}

static json_t *follower_print(struct making *k, const struct window_row *row)
{
	struct window_row own = *row;

	if (row->end != ROW_ANSWERED || (row->event.kind == EVENT_CALL && !row_met_own(row)))
		return own_print(k, row);
	/* What it sent was the leader's, and what it received is. */
	own.event.result = row->event.kind == EVENT_CALL ? row->result : row->event.result;
	return leader_print(k, &own);
}

static void row_add(struct making *k, json_t *rows, const struct window_row *row, bool last)
{
	json_t *leader, *follower;
	bool same;

	MUST(!k->whole || k->mets);
	if (last && k->whole)
		leader = event_print(k, &k->met[0].event, k->met[0].payload, k->met[0].len,
				     row_met_own(row) ? row->args : NULL);
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

	MUST(n <= calls && n <= WINDOW);
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

/* --- all of it ------------------------------------------------------------------------ */

static const char *difference_name(const struct report_want *w)
{
	static const char *const names[] = {
		[DIFFERS_CALL] = "call", [DIFFERS_VALUE] = "value", [DIFFERS_LENGTH] = "length",
		[DIFFERS_BYTES] = "bytes", [DIFFERS_END] = "end", [DIFFERS_EXTRA] = "extra",
	};

	_Static_assert(sizeof(names) / sizeof(names[0]) == DIFFERS_EXTRA + 1, "each difference");
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
	return report_printed(k);
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
	k->mets = report_ahead(w->streams, w->version, (w->slot->lane - 1) % LANES, k->met,
			       1 + NEXT_MAX);
	MUST(k->mets <= 1 + NEXT_MAX);
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
	json_object_set_new(follower, "stack", w->frames ? json_incref(w->frames) :
			    w->stack ? stack_read(w->follower.pid, w->stack) : json_array());
	calls_add(k, leader, follower);
	json_object_set_new(k->report, "leader", leader);
	json_object_set_new(k->report, "follower", follower);
}

json_t *report_make(const struct report_want *w)
{
	struct making k = { .w = w };
	const char *why;

	if (w->slot->calls)
		k.last = w->slot->window[(w->slot->calls - 1) % WINDOW];
	ahead_read(&k);
	k.report = json_pack("{s:i, s:o, s:s, s:s, s:s?, s:s?, s:s?, s:b, s:s?}",
			     "format", REPORT_FORMAT,
			     "time", time_make(), "session", w->session, "verdict",
			     verdict_name(w->verdict), "difference", difference_name(w), "why",
			     w->why, "itself", w->itself, "strict", w->strict, "policy", w->policy);
	json_object_set_new(k.report, "led", json_boolean(w->led));
	json_object_set_new(k.report, "becoming",
			    w->becoming ? json_string(w->becoming) : json_null());
	json_object_set_new(k.report, "tried", json_integer((json_int_t)(w->tried ? w->tried : 1)));
	json_object_set_new(k.report, "window", window_make(&k));
	json_object_set_new(k.report, "next", next_make(&k));
	sides_add(&k);
	json_object_set_new(k.report, "argument", report_argument(&k));
	json_object_set_new(k.report, "signal", signal_make(w));
	json_object_set_new(k.report, "rule", rules_json(&w->slot->rule));
	json_object_set_new(k.report, "suggested_rule", report_suggest(&k, &why));
	json_object_set_new(k.report, "suggested_why", why ? json_string(why) : json_null());
	json_object_set_new(k.report, "finding",
			    w->finding ? json_incref(w->finding) : json_null());
	json_object_set_new(k.report, "summary", report_words(&k));
	for (unsigned i = 0; i < k.mets; i++)
		free(k.met[i].payload);
	print_free(&k.print);
	return k.report;
}
