/*
 * A call that is not its event's: last words that a version may leave out, and the
 * verdict.
 */
#include <linux/errno.h>
#include <linux/fcntl.h>
#include <linux/signal.h>
#include <linux/stat.h>
#include <linux/wait.h>
#include <linux/time.h>

#include "engine/core/must.h"
#include "engine/core/ring.h"
#include "engine/core/walk.h"
#include "engine/inside/crash/crash.h"
#include "engine/inside/crash/faulting.h"
#include "engine/inside/gate/request.h"
#include "engine/inside/gate/thread.h"
#include "engine/inside/order/passable.h"
#include "engine/inside/order/wait.h"
#include "engine/inside/record/back.h"
#include "engine/inside/record/words.h"
#include "engine/inside/replay/diverge.h"
#include "engine/inside/rules/follow_rules.h"
#include "engine/inside/rules/rules_near.h"

static bool only_words_left(struct thread *t)
{
	struct reader ahead = t->reader;
	const struct event *e = reader_peek(&ahead);
	struct words s = WORDS_NONE;

	ahead.ahead = true;
	for (int n = 0; e; n++, e = reader_next(&ahead)) {
		if (n == WORDS_MAX ||
		    !(fault_behind(ahead.from, t->lane, ahead.pos) || words_hold(&s, e)))
			return false;
	}
	return true;
}

/* What a version that crashed did last need not be done again. */
static bool last_words(struct thread *t)
{
	const struct event *e;

	if (!fault_crashed(t->reader.cursor->source % VERSIONS))
		return false;
	if (only_words_left(t)) {
		follow_skip_lane(t);
		return true;
	}
	/* Another thread has died of it, and this one has gone on. */
	e = reader_peek(&t->reader);
	if (!e || !crash_was_sent(e))
		return false;
	follow_take(t);
	return true;
}

long follow_diverged(struct thread *t, struct walk *w, long nr, uint32_t what,
		     const struct mismatch *m)
{
	MUST(t->following && (!m || m->arg < CALL_ARGS));
	if (last_words(t) || back_comes(t))
		return ANSWER_RETRY;
	if (rules_given())
		rules_note_nearest(t, w, nr);
	return request_ask(t, REQ_VERDICT, VERDICT_DIVERGED, what,
			   m ? (uint64_t)m->arg << 56 | m->offset : 0);
}
