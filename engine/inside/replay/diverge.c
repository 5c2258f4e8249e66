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
#include "engine/inside/actions/actions.h"
#include "engine/inside/crash/crash.h"
#include "engine/inside/crash/faulting.h"
#include "engine/inside/fd/files.h"
#include "engine/inside/gate/request.h"
#include "engine/inside/gate/thread.h"
#include "engine/inside/order/passable.h"
#include "engine/inside/order/wait.h"
#include "engine/inside/replay/diverge.h"
#include "engine/inside/rules/follow_rules.h"
#include "engine/inside/rules/rules_near.h"

#define WORDS_MAX	20000

#define OPENED_FDS	1024

/* What is left of a lane, as far as it was looked at; numbers of files that it opens. */
struct words {
	uint64_t opened[OPENED_FDS / 64];
};

static bool is_file(const struct words *s, int64_t fd)
{
	return (fd >= 0 && fd <= 2) || file_known(fd) ||
	       (fd >= 0 && fd < OPENED_FDS && s->opened[fd / 64] >> fd % 64 & 1);
}

/* About a file that has a name. */
static bool is_of_file(struct words *s, const struct call_desc *d, const struct event *e)
{
	int path = call_path_arg(d);

	if (d->class != CLASS_EFFECT || path < 0 || path > 1 ||
	    (path && d->args[0].kind != KIND_DIRFD))
		return d->nargs && d->args[0].kind == KIND_FD && is_file(s, (int32_t)e->arg[0]);
	if (call_has(d, TRAIT_OPENS) && e->result >= 0 && e->result < OPENED_FDS)
		s->opened[e->result / 64] |= 1ull << e->result % 64;
	return true;
}

/*
 * Words for people, in files, signals, and what changes the caller alone, who is gone;
 * nothing that a client has seen or sent.
 */
static bool is_words(struct words *s, const struct event *e)
{
	const struct call_desc *d;

	if (e->kind != EVENT_CALL)
		return event_aside(e) ||
		       (e->kind == EVENT_SIGNAL && crash_signal((int)e->result));
	if (event_is_elastic(e))
		return true;
	d = call_find(e->call);
	return d && (d->class == CLASS_BOTH || call_has(d, TRAIT_SIGNALS) || is_of_file(s, d, e));
}

static bool only_words_left(struct thread *t)
{
	struct reader ahead = t->reader;
	const struct event *e = reader_peek(&ahead);
	struct words s = { { 0 } };

	ahead.ahead = true;
	for (int n = 0; e; n++, e = reader_next(&ahead)) {
		if (n == WORDS_MAX ||
		    !(fault_behind(ahead.from, t->lane, ahead.pos) || is_words(&s, e)))
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
	if (last_words(t))
		return ANSWER_RETRY;
	if (rules_given())
		rules_note_nearest(t, w, nr);
	return request_ask(t, REQ_VERDICT, VERDICT_DIVERGED, what,
			   m ? (uint64_t)m->arg << 56 | m->offset : 0);
}
