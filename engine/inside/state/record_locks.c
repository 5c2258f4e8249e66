/*
 * The record locks of a process (fcntl F_SETLK).  A follower has none; it notes the leader's,
 * and takes them when it leads.
 *
 * A lock is given to its new owner when the old leader is gone or has closed what it
 * had.  Between the two another process may get it: then the user is told.
 */
#include <asm/unistd.h>
#include <linux/errno.h>
#include <linux/fcntl.h>
#include <linux/time.h>

#include "engine/core/must.h"
#include "engine/core/walk.h"
#include "engine/inside/fd/files.h"
#include "engine/inside/fd/table.h"
#include "engine/inside/gate/gate.h"
#include "engine/inside/gate/latch.h"
#include "engine/inside/gate/request.h"
#include "engine/inside/gate/thread.h"
#include "engine/inside/lanes/host.h"
#include "engine/inside/state/record_locks.h"

/*
 * Limit (takeovers): ranges of bytes that a process has locked (fcntl). Beyond: further
 * ones are not taken anew when another version takes over, which is said.
 */
#define LOCKS		65536
#define END		INT64_MAX
#define LOCK_TRY_NS	200000
#define LOCK_WAIT_NS	1000000000ull

_Static_assert(!(LOCKS & (LOCKS - 1)) && LOCKS >= ROWS_PAGES, "ROWS_OF");

/* Threads take and give them at the same time: the rows are changed with the latch. */
/* The kernel's struct flock. */
struct record {
	int16_t type, whence;
	int32_t pad;
	int64_t start, len;
	int32_t pid, pad1;
};

_Static_assert(sizeof(struct record) == 32, "the kernel's struct flock");

struct lock {
	int64_t from, to;	/* the last byte; END: the file's */
	int32_t fd;
	int16_t type;
	bool used;
};

static struct rows locks = ROWS_OF(struct lock, LOCKS);

static struct lock *lock_at(uint32_t i)
{
	return rows_at(&locks, i);
}

uint32_t record_locks;		/* rows that are used */

/* False: there is no room. */
static bool lock_add(int32_t fd, int16_t type, int64_t from, int64_t to)
{
	struct lock *row = NULL;

	if (from > to)
		return true;
	for (uint32_t i = 0; i < locks.used && !row && record_locks < locks.used; i++)
		row = lock_at(i)->used ? NULL : lock_at(i);
	row = row ? row : rows_more(&locks);
	if (!row)
		return false;
	*row = (struct lock){ from, to, fd, type, true };
	record_locks++;
	MUST(record_locks <= locks.used && latch_is_held(LATCH_record_locks));
	return true;
}

static void lock_remove(struct lock *l)
{
	MUST(l->used && record_locks);
	l->used = false;
	record_locks--;
}

/* What the call says of these bytes replaces what was said before; false: no room for a rest. */
static bool lock_cut(int32_t fd, int64_t from, int64_t to)
{
	bool room = true;

	for (uint32_t i = 0; i < locks.used; i++) {
		struct lock was = *lock_at(i);

		if (!was.used || was.to < from || was.from > to ||
		    (was.fd != fd && !files_same(was.fd, fd)))
			continue;
		lock_remove(lock_at(i));
		if (was.from < from)
			room &= lock_add(was.fd, was.type, was.from, from - 1);
		if (was.to > to)
			room &= lock_add(was.fd, was.type, to + 1, was.to);
	}
	return room;
}

static void lock_note(struct thread *t, const uint64_t *args)
{
	int32_t fd = (int32_t)args[0];
	struct record r;
	int64_t from, to;
	bool room;

	if (target_in(&r, args[2], sizeof(r)))
		return;
	if (r.whence) {		/* from a place that only the leader's descriptor has */
		request_ask(t, REQ_NOTE, NOTE_LOCK, (uint64_t)fd, 0);
		return;
	}
	from = r.len < 0 ? r.start + r.len : r.start;
	to = r.len < 0 ? r.start - 1 : r.len ? r.start + r.len - 1 : END;
	latch_take(LATCH_record_locks);
	room = lock_cut(fd, from, to) && (r.type == F_UNLCK || lock_add(fd, r.type, from, to));
	latch_give(LATCH_record_locks);
	if (!room)
		request_room(t, ROOM_LOCKS, LOCKS);
}

/* Whatever closes a file of a lock gives the lock up. */
static void lock_closed(int32_t fd)
{
	if (!record_locks)
		return;
	latch_take(LATCH_record_locks);
	lock_cut(fd, 0, END);
	latch_give(LATCH_record_locks);
}

static bool lock_made(const struct lock *l, uint64_t *until)
{
	struct record r = { .type = l->type, .start = l->from,
			    .len = l->to == END ? 0 : l->to - l->from + 1 };
	long result;

	MUST(l->used && l->from <= l->to);

	while ((result = OWN3(__NR_fcntl, l->fd, F_SETLK, &r)) == -EAGAIN || result == -EACCES) {
		if (clock_ns(CLOCK_MONOTONIC) > *until)
			return false;
		change_wait(change_now(), LOCK_TRY_NS);
	}
	return result >= 0;
}

/* Behind took_note: the old leader may have to hear that it is to go. */
void record_locks_make(struct thread *t)
{
	uint64_t until = clock_ns(CLOCK_MONOTONIC) + LOCK_WAIT_NS;

	for (uint32_t i = 0; i < locks.used && record_locks; i++)
		if (lock_at(i)->used && !lock_made(lock_at(i), &until))
			request_ask(t, REQ_NOTE, NOTE_LOCK, (uint64_t)lock_at(i)->fd, 1);
}

void record_locks_note(struct thread *t, long nr, const uint64_t *args)
{
	switch (nr) {
	case __NR_fcntl:
		lock_note(t, args);
		break;
	case __NR_close:
		lock_closed((int32_t)args[0]);
		break;
	}
}

/* A child of fork has none. */
void record_locks_fork(struct thread *t)
{
	(void)t;
	if (locks.used)
		locks.used = record_locks = 0;
}
