/*
 * mve trace: each call is shown as it is made, by the thread that asks us to
 * before and after it.  A line that another thread breaks into is ended with
 * "<unfinished ...>" and taken up again later, as strace does.
 */
#include <stdlib.h>
#include <string.h>

#include "engine/outside/kernel/remote.h"
#include "engine/outside/monitor/monitor.h"
#include "engine/outside/monitor/say.h"
#include "engine/outside/monitor/trace.h"
#include "engine/outside/print/print.h"

struct trace_row {
	struct call_print print;
	pid_t tid;
	bool entered;
};

struct trace {
	FILE *out;
	bool to_file;		/* every line begins with its thread's id */
	bool several;		/* more than one thread has been seen */
	pid_t first;
	struct trace_row *open;	/* whose line has no end yet */
	struct trace_row row[AREA_THREADS];
};

struct trace *trace_open(FILE *out)
{
	struct trace *t = calloc(1, sizeof(*t));

	MUST(t);
	t->out = out ? out : stderr;
	t->to_file = t->out != stderr;
	return t;
}

static long memory_of(void *ctx, uint64_t addr, void *buf, size_t len)
{
	return memory_peek(*(pid_t *)ctx, addr, buf, len);
}

static void line_begin(struct trace *t, struct trace_row *row)
{
	int n = 0;

	if (t->open)
		fputs(" <unfinished ...>\n", t->out);
	if (t->to_file)
		n = fprintf(t->out, "%d ", row->tid);
	else if (t->several)
		n = fprintf(t->out, "[pid %5d] ", row->tid);
	row->print.column = n > 0 ? (unsigned)n : 0;
	t->open = row;
}

static void enter(struct trace *t, struct trace_row *row, const struct print_mem *mem,
		  const uint64_t *call)
{
	line_begin(t, row);
	print_enter(&row->print, mem, (int32_t)call[0], call + 1);
	fwrite(row->print.text, 1, row->print.len, t->out);
	row->entered = true;
	if (call_ends(call_find((int32_t)call[0]))) {
		size_t pad = row->print.len + row->print.column + 1;

		fprintf(t->out, ")%*s= ?\n", pad < 39 ? (int)(39 - pad) + 1 : 1, "");
		t->open = NULL;
		row->entered = false;
	}
}

static void leave(struct trace *t, struct trace_row *row, const struct print_mem *mem,
		  int64_t result)
{
	const struct call_desc *d = row->print.row;
	size_t before = row->print.len;

	if (!row->entered)
		return;
	if (t->open != row) {
		line_begin(t, row);
		fprintf(t->out, "<... %s resumed>", d ? d->name : "call");
	}
	print_exit(&row->print, mem, result);
	fwrite(row->print.text + before, 1, row->print.len - before, t->out);
	fputc('\n', t->out);
	t->open = NULL;
	row->entered = false;
}

static void signal_show(struct trace *t, struct trace_row *row, const uint64_t *info)
{
	struct call_print line = { 0 };
	uint8_t full[128] = { 0 };

	memcpy(full, info, 64);
	line_begin(t, row);
	print_signal(&line, *(int *)full, full);
	fprintf(t->out, "%s\n", line.text);
	print_free(&line);
	t->open = NULL;
}

void trace_request(struct monitor *m, const struct request *r)
{
	struct trace *t = m->trace;
	struct trace_row *row;
	pid_t tid = r->tid;
	struct print_mem mem = { memory_of, &tid };

	if (!t)			/* nobody asked for one: a program's own doing */
		return;
	row = &t->row[r->slot];
	if (!t->first)
		t->first = r->tid;
	t->several |= t->first != r->tid;
	row->tid = r->tid;
	if (r->kind == REQ_TRACE_ENTER)
		enter(t, row, &mem, r->call);
	else if (r->kind == REQ_TRACE_EXIT)
		leave(t, row, &mem, (int64_t)r->call[7]);
	else
		signal_show(t, row, r->call);
	fflush(t->out);
}

void trace_close(struct trace *t)
{
	bool cut;

	if (!t)
		return;
	if (t->open)
		fputs(" <unfinished ...>\n", t->out);
	for (size_t i = 0; i < AREA_THREADS; i++)
		print_free(&t->row[i].print);
	cut = fflush(t->out) || ferror(t->out);
	if (cut && t->to_file)
		say_error("check the disk", "the trace is cut short: not all could be written");
	free(t);
}
