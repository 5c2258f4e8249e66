/*
 * mve log DIR show: the calls of a recording, as strace would have printed them.
 */
#include <stdio.h>
#include <string.h>

#include "engine/abi/table.h"
#include "engine/mve/log/conns.h"
#include "engine/mve/log/log.h"
#include "engine/mve/log/ordered.h"
#include "engine/outside/monitor/say.h"
#include "engine/outside/report/view.h"

#define INFO	128	/* bytes of a siginfo */

struct show {
	const struct log_want *want;
	struct conns *conns;
	struct call_print print;
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

static void event_show(void *ctx, const struct told *t, bool over)
{
	struct show *s = ctx;
	const struct conn *c = conns_take(s->conns, t, over);
	char when[LOG_CLOCK];

	if (over || !wanted(s->want, t, c))
		return;
	log_clock(t->time_ns, when);
	s->print.column = (unsigned)printf("%lu %d %s ", (unsigned long)t->number, t->tid, when);
	call_show(s, t);
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
	return whole ? EXIT_OK : EXIT_NO;
}
