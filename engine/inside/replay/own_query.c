/*
 * Queries of a follower that its leader did not make.  What they ask of the world, of the
 * process or of a path the follower asks itself.  But it holds no descriptors: of those that
 * the program knows the monitor asks in its place, on the leader's.  What the monitor does not
 * ask (it would have to wait, perhaps) is asked here where the path is known.
 */
#include <asm/unistd.h>
#include <linux/errno.h>
#include <linux/fcntl.h>

#include "engine/core/ring.h"
#include "engine/core/walk.h"
#include "engine/inside/calls/clock.h"
#include "engine/inside/calls/ids_call.h"
#include "engine/inside/fd/files.h"
#include "engine/inside/gate/gate.h"
#include "engine/inside/gate/request.h"
#include "engine/inside/gate/thread.h"
#include "engine/inside/lanes/host.h"
#include "engine/inside/record/form.h"
#include "engine/inside/replay/follow_clock.h"
#include "engine/inside/replay/own_query.h"
#include "engine/inside/rules/opened.h"
#include "engine/inside/state/ids.h"
#include "engine/inside/state/limits.h"

/* Memory that the call writes: in elements' bytes at most, and what an AT rule left of them. */
static void written(const struct walk *w, const struct query_answer *answer)
{
	for (unsigned i = 0; i < w->desc->nargs; i++) {
		const struct arg_desc *a = &w->desc->args[i];
		uint64_t n, now = answer->room;

		if (a->kind != KIND_MEM || a->dir == DIR_IN || !w->args[i])
			continue;
		if (a->dir == DIR_IO) {		/* how much there is: see query_serve */
			target_out(w->args[i], &answer->room, sizeof(answer->room));
			continue;
		}
		n = step_length(w, i);
		n = a->len_rule == LEN_RULE_AT && now < n ? now : n;
		n = n < sizeof(answer->bytes) ? n : sizeof(answer->bytes);
		target_out(w->args[i], answer->bytes, n);
	}
}

_Static_assert(CALL_ARGS + 2 <= sizeof(((struct request *)0)->call) / sizeof(uint64_t),
	       "the number, the arguments and the room");

#define LOOKED	1024	/* events that the leader may be ahead */

static bool changes(const struct event *e, int32_t fd)
{
	const struct call_desc *d = e->kind == EVENT_CALL ? call_find(e->call) : NULL;

	if (e->kind == EVENT_EXEC || call_has(d, TRAIT_CLOSES_RANGE))
		return true;
	return d && ((d->result == KIND_FD && e->result == fd) ||
		     (call_has(d, TRAIT_CLOSES) && (int32_t)e->arg[0] == fd));
}

/*
 * The monitor has asked the leader as it is now.  Has its thread closed that number, or got
 * it anew, since it was where this one is?  Then what it said is of something else.
 */
static bool is_as_here(struct thread *t, int32_t fd)
{
	struct reader r = t->reader;
	const struct event *e = reader_peek(&r);

	r.ahead = true;
	for (unsigned n = 0; e; n++, e = reader_next(&r))
		if (n == LOOKED || changes(e, fd))
			return false;
	return true;
}

/* Of the leader, by the monitor; false: it cannot say. */
static bool leader_asked(struct thread *t, struct walk *w, long *result)
{
	uint64_t *call = request_of(t)->call;
	struct query_answer answer;

	call[0] = (uint64_t)w->desc->nr;
	for (unsigned i = 0; i < CALL_ARGS; i++)
		call[i + 1] = w->args[i];
	call[7] = w->room;
	w->result = request_ask(t, REQ_QUERY, lane_known(t), (uint64_t)&answer, 0);
	if (w->result == -ENOSYS || !is_as_here(t, (int32_t)w->args[0]))
		return false;
	t->answered = 1;
	if (w->result >= 0)
		written(w, &answer);
	*result = w->result;
	return true;
}

static bool is_empty(uint64_t path)
{
	char first = 1;

	return path && !target_in(&first, path, 1) && !first;
}

/* It asks of a descriptor and of nothing else. */
static bool asks_descriptor(const struct walk *w)
{
	switch (w->desc->args[0].kind) {
	case KIND_FD:
		return true;
	case KIND_DIRFD:
		return (int32_t)w->args[0] >= 0 && is_empty(w->args[1]);
	default:
		return false;
	}
}

/* On a file of our own in the place of the leader's: a folder that a path goes on from, say. */
static bool path_asked(struct thread *t, long nr, const struct walk *w, long *result)
{
	struct file *f = file_row((int32_t)w->args[0]);
	long fd = f && f->known ? file_open_path(f) : -EBADF;

	if (fd < 0)
		return false;
	t->frame.arg[0] = (uint64_t)fd;
	*result = call_serve(t, nr);
	t->frame.arg[0] = w->args[0];
	OWN1(__NR_close, fd);
	return true;
}

static bool descriptor_asked(struct thread *t, long nr, long *result)
{
	uint64_t args[CALL_ARGS];
	struct walk w;

	nr = call_walk(t, &w, args, nr);
	if (!w.desc || w.desc->class != CLASS_QUERY || (int32_t)args[0] < 0 ||
	    (w.desc->args[0].kind != KIND_FD && w.desc->args[0].kind != KIND_DIRFD) ||
	    rules_opened((uint32_t)args[0]))
		return false;
	w.room = room_before(&w);
	if (asks_descriptor(&w) && leader_asked(t, &w, result))
		return true;
	return nr == (int32_t)t->frame.rax && path_asked(t, nr, &w, result);
}

long own_query(struct thread *t, long nr)
{
	long result;

	t->answered = 1;
	if (nr == __NR_getpid)
		return t->vpid;
	if (nr == __NR_gettid)
		return t->vtid;
	if (clock_own(t, nr, &result))
		return result;
	t->answered = 0;
	if (limits_asked(t, (int32_t)t->frame.rax, &result))
		return result;
	if (descriptor_asked(t, (int32_t)t->frame.rax, &result))
		return result;
	return ids_call(t, call_find(nr), nr);
}
