/*
 * Where a write goes, in a file that is mapped and has mirrors (mirror.c).  A follower cannot
 * know that of a descriptor that was copied, inherited, or came by an execve: the place belongs
 * to what the kernel shares between them.  So the leader, once it has told the content of a
 * file that it writes, knows which of its descriptors lead to that file (`led`), says so
 * (FILE_SAME), and says before each of their writes where it went (FILE_AT).
 *
 * A process that has told no such file looks at nothing here: lead.c asks for it only then.
 */
#include <asm/unistd.h>
#include <linux/fcntl.h>
#include <linux/stat.h>

#include "engine/core/walk.h"
#include "engine/inside/fd/files.h"
#include "engine/inside/fd/mirror.h"
#include "engine/inside/fd/places.h"
#include "engine/inside/fd/table.h"
#include "engine/inside/gate/gate.h"
#include "engine/inside/gate/thread.h"
#include "engine/inside/lanes/event.h"
#include "engine/inside/order/order.h"
#include "engine/inside/record/care.h"

#define WRITTEN		16	/* files, the latest */
#define LOOKED		1024	/* descriptors from 0 that may lead to one already */
#define SEEK_CUR_	1

static struct { uint64_t dev, ino; } written[WRITTEN];
static uint32_t written_n;

static bool same_file(const struct statx *st, uint64_t dev, uint64_t ino)
{
	return dev == file_device(st) && ino == file_number(st);
}

static bool is_told(const struct statx *st)
{
	for (uint32_t i = 0; i < WRITTEN && i < written_n; i++)
		if (same_file(st, written[i].dev, written[i].ino))
			return true;
	return false;
}

static bool looked(int64_t fd, struct statx *st)
{
	return !OWN6(__NR_statx, fd, "", AT_EMPTY_PATH, STATX_BASIC_STATS | STATX_BTIME, st, 0);
}

static void place_tell(struct thread *t, int64_t fd, enum file_kind kind, int64_t at, uint64_t seq,
		       const struct statx *st)
{
	struct event *e = lead_event(t, EVENT_FILE, __NR_lseek, at);

	if (seq)
		e->seq = order_now(seq);
	e->arg[0] = (uint64_t)fd;
	e->arg[1] = st ? file_device(st) : 0;
	e->arg[2] = st ? file_number(st) : 0;
	e->arg[4] = kind;
	lead_event_end(t);
}

/* The content of a file that this process writes was told, with a mapping of the descriptor. */
void places_begin(struct thread *t, int64_t fd, const struct statx *st)
{
	struct statx other;

	fd_set_mark(fd, FD_LED, true);
	if (is_told(st))
		return;
	written[written_n % WRITTEN].dev = file_device(st);
	written[written_n % WRITTEN].ino = file_number(st);
	written_n++;
	lead_looks_at_places();
	for (int64_t i = 0; i < LOOKED; i++) {
		if (i == fd || !looked(i, &other) || !same_file(&other, file_device(st),
								 file_number(st)))
			continue;
		fd_set_mark(i, FD_LED, true);
		place_tell(t, i, FILE_SAME, 0, 0, &other);
	}
}

/* A call was made that may write, or has given a descriptor, and is about to be told. */
void places_made(struct thread *t, const struct walk *w, uint64_t seq)
{
	struct statx st;
	int64_t at;

	if (w->result < 0)
		return;
	if (w->desc->nr == __NR_write || w->desc->nr == __NR_writev) {
		if (!fd_is((int32_t)w->args[0], FD_LED))
			return;
		at = OWN3(__NR_lseek, (int32_t)w->args[0], 0, SEEK_CUR_);
		if (at >= w->result)
			place_tell(t, (int32_t)w->args[0], FILE_AT, at - w->result, seq, NULL);
	} else if (w->desc->result == KIND_FD) {
		fd_set_mark(w->result, FD_LED, false);
		if (!looked(w->result, &st) || !is_told(&st))
			return;
		fd_set_mark(w->result, FD_LED, true);
		place_tell(t, w->result, FILE_SAME, 0, seq, &st);
	}
}
