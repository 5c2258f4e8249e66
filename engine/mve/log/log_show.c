/*
 * mve log DIR show: the calls of a recording, as strace would have printed them.
 */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/abi/table.h"
#include "engine/core/must.h"
#include "engine/mve/log/conns.h"
#include "engine/mve/log/log.h"
#include "engine/mve/log/ordered.h"
#include "engine/outside/monitor/say.h"
#include "engine/outside/print/text_json.h"
#include "engine/outside/report/view.h"

#define INFO	128	/* bytes of a siginfo */

struct show {
	const struct log_want *want;
	struct conns *conns;
	struct call_print print;
	uint64_t events, last_conn;
};

static bool wanted(const struct log_want *w, const struct told *t, const struct conn *c)
{
	if ((w->event && t->number != w->event) || t->number <= w->after ||
	    (w->before && t->number >= w->before))
		return false;
	if (w->pid && w->pid != t->pid && w->pid != t->tid)
		return false;
	if ((w->conn && (!c || c->number != w->conn)) || !log_in_time(w, t->time_ns))
		return false;
	if (t->event->kind == EVENT_SIGNAL)
		return !w->call;
	return t->event->kind == EVENT_CALL &&
	       (!w->call || call_number(w->call) == t->event->call);
}

static void call_show(struct show *s, const struct told *t)
{
	uint8_t info[INFO] = { 0 };
	struct view v;

	if (t->event->kind == EVENT_SIGNAL) {
		if (t->len)
			memcpy(info, t->payload, t->len < INFO ? t->len : INFO);
		s->print.len = 0;
		print_signal(&s->print, (int)t->event->result, info);
		return;
	}
	view_event(&v, t->event, t->payload, t->len, NULL);
	print_view(&s->print, &v);
}

/* The call, or signal, as an object in a line of its own. */
static void line_json(const struct show *s, const struct told *t, const struct conn *c)
{
	const struct call_desc *row = call_find(t->event->call);
	json_t *j = json_pack("{s:I, s:i, s:i, s:f}", "event", (json_int_t)t->number, "pid",
			      t->pid, "tid", t->tid, "time", (double)t->time_ns / 1e9);
	char *text = strndup(s->print.text, s->print.len);

	MUST(j && text);
	if (t->event->kind == EVENT_CALL && row)
		json_object_set_new(j, "call", text_json(row->name));
	if (c)
		json_object_set_new(j, "connection", json_integer((json_int_t)c->number));
	json_object_set_new(j, "text", text_json(text));
	json_dumpf(j, stdout, JSON_COMPACT);
	free(text);
	json_decref(j);
}

static void event_show(void *ctx, const struct told *t, bool over)
{
	struct show *s = ctx;
	const struct conn *c = conns_take(s->conns, t, over);
	char when[LOG_CLOCK];

	s->events = t->number > s->events ? t->number : s->events;
	s->last_conn = c && c->number > s->last_conn ? c->number : s->last_conn;
	if (over || !wanted(s->want, t, c))
		return;
	log_clock(t->time_ns, when);
	s->print.column = s->want->json ? 0 : (unsigned)printf("%lu %d %s ",
							       (unsigned long)t->number, t->tid,
							       when);
	call_show(s, t);
	if (s->want->json)
		line_json(s, t, c);
	else
		fwrite(s->print.text, 1, s->print.len, stdout);
	putchar('\n');
}

int log_show(const struct log_want *w, struct frames *f)
{
	struct show s = { .want = w, .conns = conns_new(&(struct conns_user){ 0 }) };
	bool whole = events_ordered(f, event_show, NULL, &s);

	conns_free(s.conns, 0);
	print_free(&s.print);
	if (!whole)
		say_error("all before it is shown", "%s: not whole: %s", w->path, f->why);
	return log_has(w, s.events, s.last_conn) && whole ? EXIT_OK : EXIT_NO;
}
