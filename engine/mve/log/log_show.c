/*
 * mve log DIR show: the calls of a recording, as strace would have printed them.
 */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "engine/abi/table.h"
#include "engine/mve/log/log.h"
#include "engine/outside/monitor/say.h"
#include "engine/outside/report/view.h"

#define INFO	128	/* bytes of a siginfo */

struct show {
	const struct log_want *want;
	struct call_print print;
};

static bool wanted(const struct log_want *w, const struct told *t)
{
	if (w->pid && w->pid != t->pid && w->pid != t->tid)
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

static void event_show(void *ctx, const struct told *t)
{
	time_t seconds = (time_t)(t->time_ns / 1000000000);
	struct show *s = ctx;
	char when[32] = "?";
	struct tm tm;

	if (!wanted(s->want, t))
		return;
	if (localtime_r(&seconds, &tm))
		strftime(when, sizeof(when), "%H:%M:%S", &tm);
	s->print.column = (unsigned)printf("%d %s.%06lu ", t->tid, when,
					   (unsigned long)(t->time_ns % 1000000000 / 1000));
	call_show(s, t);
	fwrite(s->print.text, 1, s->print.len, stdout);
	putchar('\n');
}

static void frame_pass(void *ctx, const struct log_frame *frame)
{
	(void)ctx;
	(void)frame;
}

int log_show(const struct log_want *w, struct frames *f)
{
	struct show s = { .want = w };
	bool whole = events_each(f, event_show, frame_pass, &s);

	print_free(&s.print);
	if (!whole)
		say_error("all before it is shown", "%s: not whole: %s", w->path, f->why);
	return whole ? EXIT_OK : EXIT_NO;
}
