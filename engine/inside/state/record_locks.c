/*
 * The record locks of a process (fcntl F_SETLK).  A follower has none.  When it takes over the
 * monitor tells which the old leader holds, as the kernel has them (outside/takeover/locks.c);
 * it takes them when it leads.
 *
 * A lock is given to its new owner when the old leader is gone or has closed what it
 * had.  Between the two another process may get it: then the user is told.
 */
#include <asm/unistd.h>
#include <linux/errno.h>
#include <linux/fcntl.h>
#include <linux/time.h>

#include "engine/core/must.h"
#include "engine/inside/fd/table.h"
#include "engine/inside/gate/gate.h"
#include "engine/inside/gate/request.h"
#include "engine/inside/gate/thread.h"
#include "engine/inside/lanes/host.h"
#include "engine/inside/lanes/patience.h"
#include "engine/inside/state/record_locks.h"

/*
 * Limit (takeovers): ranges of bytes that a process has locked (fcntl). Beyond: further
 * ones are not taken anew when another version takes over, which is said.
 */
#define LOCKS		65536

_Static_assert(!(LOCKS & (LOCKS - 1)) && LOCKS >= ROWS_PAGES, "ROWS_OF");

/* The kernel's struct flock. */
struct record {
	int16_t type, whence;
	int32_t pad;
	int64_t start, len;
	int32_t pid, pad1;
};

_Static_assert(sizeof(struct record) == 32, "the kernel's struct flock");

/* Of who is about to lead, from what it is told until it has them; its threads stand. */
static struct rows locks = ROWS_OF(struct taken_lock, LOCKS);

void record_lock_held(struct thread *t, const struct taken_lock *l)
{
	struct taken_lock *row = rows_more(&locks);

	MUST(t->following && l->from <= l->to);
	if (row)
		*row = *l;
	else
		request_room(t, ROOM_LOCKS, LOCKS);
}

bool record_locks_wait(void)
{
	return locks.used;
}

static bool lock_made(const struct taken_lock *l, struct patience *p)
{
	struct record r = { .type = (int16_t)l->type, .start = l->from,
			    .len = l->to == TAKEN_LOCK_END ? 0 : l->to - l->from + 1 };
	long result;

	MUST(l->fd >= 0 && l->from >= 0);
	while ((result = OWN3(__NR_fcntl, l->fd, F_SETLK, &r)) == -EAGAIN || result == -EACCES) {
		if (!patience_step(p))
			return false;
	}
	return result >= 0;
}

/* Behind took_note: the old leader may have to hear that it is to go. */
void record_locks_make(struct thread *t)
{
	struct patience p = PATIENCE(WAIT_record_lock);	/* one for all of them */

	MUST(locks.used <= LOCKS);
	for (uint32_t i = 0; i < locks.used; i++) {
		const struct taken_lock *l = rows_at(&locks, i);

		if (!lock_made(l, &p))
			request_ask(t, REQ_NOTE, NOTE_LOCK, (uint64_t)l->fd, 1);
	}
	patience_end(&p);
	rows_clear(&locks);
}

/* A child of fork has none. */
void record_locks_fork(struct thread *t)
{
	(void)t;
	rows_clear(&locks);
}
