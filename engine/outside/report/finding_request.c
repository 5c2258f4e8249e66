/*
 * The request that led to a finding: what the connection in question has sent, from the
 * cells that the follower's threads have filled (engine/inside/sample/inputs.c).  They are
 * written by the program's process: each is copied, then checked.
 */
#include <stdlib.h>
#include <string.h>

#include "engine/core/must.h"
#include "engine/core/pairs.h"
#include "engine/outside/report/finding.h"

#define TEXT_MAX	4096	/* bytes of the request that are shown as text */

/* A copy of the cell at a place; false when it has not been filled, or again. */
static bool cell_take(const struct area *a, uint64_t place, struct input_cell *c)
{
	const struct input_cell *at = &a->input[place % INPUT_CELLS];
	uint64_t before = CONSUME(input_at, &at->at);

	*c = *at;
	return before == place + 1 && CONSUME_AGAIN(input_at, &at->at) == before &&
	       c->len <= INPUT_BYTES;
}

struct span {
	uint64_t from, to;	/* places */
};

static struct span cells_of(const struct area *a)
{
	/* Each cell says itself whether it is whole. */
	uint64_t to = __atomic_load_n(&a->inputs, __ATOMIC_RELAXED);

	return (struct span){ to > INPUT_CELLS ? to - INPUT_CELLS : 0, to };
}

/* The connection that was read last: by the thread, or (tid 0) by any of the process. */
static int32_t last_read(const struct area *a, struct span s, pid_t pid, pid_t tid)
{
	struct input_cell c;

	for (uint64_t place = s.to; place-- > s.from;)
		if (cell_take(a, place, &c) && c.kind == INPUT_TAKEN && c.pid == pid &&
		    (!tid || c.tid == tid))
			return c.fd;
	return -1;
}

/* The same by who made the thread, before, or who made that one. */
static int32_t creator_read(const struct area *a, struct span s, pid_t pid, pid_t tid)
{
	struct input_cell c;

	while (s.to-- > s.from) {
		if (!cell_take(a, s.to, &c) || c.kind != INPUT_BORN || c.pid != pid || c.tid != tid)
			continue;
		tid = c.fd;
		if (last_read(a, s, pid, tid) >= 0)
			return last_read(a, s, pid, tid);
	}
	return -1;
}

static pid_t parent_of(pid_t pid)
{
	char path[40], line[512] = "";
	const char *behind;
	pid_t parent = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	f = fopen(path, "re");
	if (!f)
		return 0;
	if (!fgets(line, sizeof(line), f))
		line[0] = 0;
	fclose(f);
	behind = strrchr(line, ')');	/* of its name */
	return behind && sscanf(behind, ") %*c %d", &parent) == 1 ? parent : 0;
}

static void input_add(struct finding_request *r, const struct input_cell *c)
{
	if (c->kind == INPUT_ACCEPTED) {
		r->len = 0;
		r->whole = true;
		return;
	}
	/* c is a copy that cell_take has looked at, one of so many. */
	MUST(c->len <= INPUT_BYTES && r->len + c->len <= (size_t)INPUT_CELLS * INPUT_BYTES);
	memcpy(r->bytes + r->len, c->bytes, c->len);
	r->len += c->len;
	r->whole &= !c->cut;
}

void finding_request_read(const struct area *a, pid_t pid, pid_t tid, struct finding_request *r)
{
	struct span s = cells_of(a);
	struct input_cell c;

	*r = (struct finding_request){ .fd = last_read(a, s, pid, tid) };
	r->others = r->fd < 0;
	if (r->fd < 0)
		r->fd = creator_read(a, s, pid, tid);
	if (r->fd < 0)
		r->fd = last_read(a, s, pid, 0);
	if (r->fd < 0) {
		pid = parent_of(pid);
		r->fd = last_read(a, s, pid, 0);
	}
	r->bytes = r->fd < 0 ? NULL : malloc((size_t)INPUT_CELLS * INPUT_BYTES);
	for (uint64_t place = s.from; r->bytes && place < s.to; place++)
		if (cell_take(a, place, &c) && c.fd == r->fd && c.pid == pid)
			input_add(r, &c);
}

/* As it would stand in a C string, a line for each line. */
static json_t *bytes_text(const uint8_t *at, size_t len)
{
	char *text = malloc(len * 4 + 1);
	size_t n = 0;
	json_t *j;

	for (size_t i = 0; text && i < len; i++) {
		if (at[i] == '\n')
			n += (size_t)sprintf(text + n, "\\n\n");
		else if (at[i] == '\r')
			n += (size_t)sprintf(text + n, "\\r");
		else if (at[i] == '\\')
			n += (size_t)sprintf(text + n, "\\\\");
		else if (at[i] < ' ' || at[i] > '~')
			n += (size_t)sprintf(text + n, "\\x%02x", at[i]);
		else
			text[n++] = (char)at[i];
	}
	MUST(n <= len * 4);
	j = json_stringn(text ? text : "", n);
	free(text);
	return j;
}

json_t *finding_request_json(const struct finding_request *r)
{
	size_t skip = r->len > TEXT_MAX ? r->len - TEXT_MAX : 0;

	if (r->fd < 0 || !r->len)
		return json_null();
	return json_pack("{s:i, s:I, s:b, s:b, s:b, s:o}", "connection", r->fd, "bytes",
			 (json_int_t)r->len, "whole", r->whole, "other_thread", r->others, "cut",
			 skip != 0, "text", bytes_text(r->bytes + skip, r->len - skip));
}
