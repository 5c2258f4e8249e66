/*
 * A call that is not its event's: last words that a version may leave out, and the
 * verdict.
 */
#include <asm/unistd.h>
#include <linux/errno.h>
#include <linux/fcntl.h>
#include <linux/signal.h>
#include <linux/stat.h>
#include <linux/wait.h>
#include <linux/time.h>

#include "engine/core/ring.h"
#include "engine/core/walk.h"
#include "engine/inside/fd/files.h"
#include "engine/inside/gate/request.h"
#include "engine/inside/gate/thread.h"
#include "engine/inside/replay/diverge.h"
#include "engine/inside/replay/elastic.h"
#include "engine/inside/replay/wait.h"
#include "engine/inside/rules/follow_rules.h"
#include "engine/inside/rules/rules_near.h"
#include "engine/inside/signal/crash.h"

#define WORDS_MAX	20000

/* Words for people, in files; nothing that a client has seen or sent. */
static bool is_words(const struct event *e)
{
	int64_t fd = (int64_t)e->arg[0];

	if (e->kind != EVENT_CALL)
		return event_aside(e) ||
		       (e->kind == EVENT_SIGNAL && crash_signal((int)e->result));
	if (event_is_elastic(e))
		return true;
	switch (e->call) {
	case __NR_write:
	case __NR_writev:
	case __NR_read:
	case __NR_close:
		return (fd >= 0 && fd <= 2) || file_known(fd);
	case __NR_open:
	case __NR_openat:
	case __NR_lseek:
	case __NR_fsync:
	case __NR_unlink:
	case __NR_rt_sigaction:
	case __NR_rt_sigprocmask:
	case __NR_kill:
	case __NR_tkill:
	case __NR_tgkill:
	case __NR_rt_sigqueueinfo:
	case __NR_rt_tgsigqueueinfo:
		return true;
	default:
		return false;
	}
}

static bool only_words_left(struct thread *t)
{
	struct reader ahead = t->reader;
	const struct event *e = reader_peek(&ahead);

	ahead.ahead = true;
	for (int n = 0; e; n++, e = reader_next(&ahead)) {
		if (n == WORDS_MAX ||
		    !(fault_behind(ahead.from, t->lane, ahead.pos) || is_words(e)))
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
	if (last_words(t))
		return ANSWER_RETRY;
	if (rules_given())
		rules_note_nearest(t, w, nr);
	return request_ask(t, REQ_VERDICT, VERDICT_DIVERGED, what,
			   m ? (uint64_t)m->arg << 56 | m->offset : 0);
}
