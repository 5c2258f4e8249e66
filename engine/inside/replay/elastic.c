/*
 * What may be missing in one version, or made once more: queries, clocks, waits that
 * brought nothing.
 */
#include <asm/unistd.h>
#include <linux/errno.h>
#include <linux/fcntl.h>
#include <linux/signal.h>
#include <linux/stat.h>
#include <linux/wait.h>
#include <linux/time.h>

#include "engine/core/must.h"
#include "engine/core/pairs.h"
#include "engine/core/ring.h"
#include "engine/core/walk.h"
#include "engine/inside/fd/files.h"
#include "engine/inside/fd/follow_epoll.h"
#include "engine/inside/gate/memory.h"
#include "engine/inside/gate/request.h"
#include "engine/inside/gate/thread.h"
#include "engine/inside/order/order.h"
#include "engine/inside/order/passable.h"
#include "engine/inside/order/wait.h"
#include "engine/inside/record/form.h"
#include "engine/inside/replay/answer.h"
#include "engine/inside/replay/elastic.h"
#include "engine/inside/replay/follow.h"
#include "engine/inside/rules/apart_meet.h"
#include "engine/inside/sample/scope.h"

/*
 * What the leader's wait brought is about other connections alone.  So is the end of
 * a time that this version would not have waited for.
 */
bool wait_is_others(struct walk *w, const struct event *e)
{
	bool none = !e->result;

	if (e->result > 0)
		w->result = epoll_known(w);
	return !w->result && !(e->flags & EVENT_SIGNAL_NEXT) &&
	       (!none || (w->desc->nr != __NR_epoll_pwait2 && (int32_t)w->args[3] < 0));
}

/*
 * How a server watches a listening socket may go by how many it has accepted: nginx
 * registers it anew after every sixteenth.
 */
bool wait_is_rearming(long nr, uint64_t fd)
{
	return is_stateless() && nr == __NR_epoll_ctl && file_listens((int32_t)fd);
}

long wait_passed(struct thread *t)
{
	follow_take(t);
	return PASSED;
}

/* The event behind this one that a call answers; NULL: there will be none. */
static const struct event *call_behind(struct thread *t)
{
	for (unsigned n = 1; n < AHEAD_EVENTS && follow_behind(t, n, NULL, NULL); n++) {
		struct reader ahead = t->reader;
		const struct event *e = reader_peek(&ahead);

		for (unsigned i = 0; e && i < n; i++)
			e = reader_next(&ahead);
		if (e && !event_aside(e))
			return e;
	}
	return NULL;
}

/*
 * The leader has accepted a connection that we do not hear of.  If it goes on to
 * accept, so do we; else there was none.
 */
bool accept_is_over(struct thread *t, const struct event *e)
{
	const struct event *next;

	if (e->flags & EVENT_SIGNAL_NEXT)
		return true;
	next = call_behind(t);
	return !next || next->kind != EVENT_CALL || next->call != e->call ||
	       next->arg[0] != e->arg[0];
}

/* Does the event tell of this very call, as far as its values say? */
bool event_is_call(const struct event *e, struct walk *w, long nr, struct mismatch *m)
{
	uint64_t args[CALL_ARGS];
	struct walk as = *w;

	w->result = as.result = e->result;
	if (e->kind == EVENT_CALL && w->desc && answer_has_room(e, w, nr)) {
		bytes_copy(args, w->args, sizeof(args));
		args[2] = e->arg[1];
		as.args = args;
	}
	return e->kind == EVENT_CALL && e->call == nr && w->desc && match_values(&as, e, m);
}

/*
 * How often an allocator reads a clock hangs on who else came to its locks just then, and it may
 * hold one meanwhile.  Whoever sleeps for that does not come to what lets the leader's thread
 * tell more: what comes behind its last event need not come before we go on.  What was awaited
 * in vain is not awaited again before the lane goes on: such a loop reads a clock often.
 */
enum over look_over(void *what)
{
	static uint64_t vain[LANES];	/* the lane's head then, + 1 */
	struct look *l = what;
	struct thread *t = l->t;
	uint64_t head = CONSUME(lane_head, &t->reader.from->lane[t->lane].head);

	MUST(t->lane < LANES);
	if (!order_sleeper_behind(t)) {
		l->idling.since = 0;
		return OVER_NOT;
	}
	if (vain[t->lane] != head + 1 && !idling_over(t, &l->idling))
		return OVER_PERHAPS;
	vain[t->lane] = head + 1;
	return OVER_YES;
}

/*
 * Answers a query or a clock from the events up to the next one that is neither:
 * in what order such calls are made means nothing, and either version may make
 * some that the other does not.  The answered event stays in its place with a bit
 * in t->ahead.  False: the leader made no such call here.  *signal: its handler ran
 * behind it.
 */
bool answer_elastic(struct thread *t, struct walk *w, long nr, long *result, bool *signal)
{
	struct reader ahead = t->reader;
	const struct event *e = reader_peek(&ahead);
	struct look look = { t, { .kind = WAIT_look } };
	struct mismatch m;
	bool passed = false;	/* something of a connection: what is missing need not come */

	for (unsigned i = 0; i < AHEAD_EVENTS; i++) {
		struct reader copy;

		while (!e) {
			ahead = t->reader;
			if (passed || !follow_behind(t, i, look_over, &look))
				return false;
			e = reader_peek(&ahead);
			for (unsigned n = 0; e && n < i; n++)
				e = reader_next(&ahead);
		}
		copy = ahead;
		copy.ahead = true;	/* others before it are still to be taken */
		if (!(t->ahead >> i & 1) && event_is_call(e, w, nr, &m) &&
		    match_memory(&copy, w, true, &m)) {
			t->ahead |= 1ull << i;
			*signal = reader_flags(&copy) & EVENT_SIGNAL_NEXT;
			*result = answer_done(t, w, nr);
			return true;
		}
		passed |= apart_passes(t, e);
		if (!event_passable(e) && !apart_passes(t, e))
			return false;
		e = reader_next(&ahead);
	}
	return false;
}

bool follow_told_value(struct thread *t, long nr, int64_t *value)
{
	uint64_t args[CALL_ARGS];
	struct walk w;
	bool told, signal = false;
	long result = 0;

	call_walk(t, &w, args, nr);
	told = answer_elastic(t, &w, nr, &result, &signal);
	if (t->ahead & 1 && reader_peek(&t->reader))
		follow_take(t);
	*value = result;
	return told;
}
