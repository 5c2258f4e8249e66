/*
 * The last calls of a thread, for reports.
 */
#include <asm/unistd.h>
#include <linux/errno.h>
#include <linux/fcntl.h>
#include <linux/signal.h>
#include <linux/stat.h>
#include <linux/wait.h>
#include <linux/time.h>

#include "engine/inside/gate/thread.h"
#include "engine/inside/lanes/window.h"

/* Where the program is, for its stack to be read from. */
void place_note(struct thread *t, uint64_t place, uint64_t stack, const uint64_t saved[SAVED])
{
	t->slot->place = place;
	t->slot->stack = stack;
	for (int i = 0; i < SAVED; i++)
		t->slot->saved[i] = saved[i];
}

void place_note_call(struct thread *t)
{
	const struct frame *f = &t->frame;

	place_note(t, f->site_end, f->rsp,
		   (uint64_t[SAVED]){ f->rbx, f->rbp, f->r12, f->r13, f->r14, f->r15 });
}

struct window_row *window_note(struct thread *t, const uint64_t *args, long nr)
{
	struct window_row *w = &t->slot->window[t->slot->calls % WINDOW];

	w->call = (uint32_t)nr;
	w->result = 0;
	w->end = ROW_OPEN;
	w->event.kind = EVENT_NONE;
	for (int i = 0; i < CALL_ARGS; i++)
		w->args[i] = args[i];
	t->slot->calls++;
	place_note_call(t);
	return w;
}

void window_event(struct thread *t, struct window_row *w, const struct event *e)
{
	uint32_t n = t->reader.left < sizeof(w->payload) ? t->reader.left : sizeof(w->payload);

	w->event = *e;
	w->version = (uint16_t)t->reader.cursor->source;
	for (uint32_t i = 0; i < n; i++)
		w->payload[i] = t->reader.piece[i];
}

void window_end(struct window_row *w, int64_t result, enum row_end end)
{
	w->result = result;
	w->end = (uint16_t)end;
}
