/*
 * What is to be sent of a process whose only thread has crashed is looked up by the thread that
 * reaches into processes, while the loop chooses who leads and switches the streams.  The
 * process stands from before that: it has told what descriptors it has with what it asked.
 * Nothing of it is believed longer than until the takeover ends, and what was not done by then
 * the loop does itself.
 */
#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "engine/abi/standing.h"
#include "engine/core/must.h"
#include "engine/outside/session/descriptors.h"
#include "engine/outside/session/reach.h"
#include "engine/outside/takeover/take.h"
#include "engine/outside/takeover/takeover_parts.h"
#include "engine/outside/takeover/taking.h"

#define ROWS	64	/* of more the others are fetched as ever */

static struct ahead {
	pid_t pid;		/* 0: nothing is known */
	uint64_t open[STANDING_TOLD];
	struct thread_status status;
	bool stands;		/* status */
	int directory;		/* or -1 */
	unsigned n;
	struct ahead_row row[ROWS];
} known;

/* --- by the thread, in its room --------------------------------------------------------- */

/*
 * Its name would say so, too, and is dearer.  An epoll set has no descriptor of ours in it, and
 * nothing else can be asked for one; it may wait for who waits in it.
 */
static bool is_epoll(int fd, int ours)
{
	return epoll_ctl(fd, EPOLL_CTL_DEL, ours, NULL) < 0 && errno == ENOENT;
}

static void row_look(struct ahead *a, int pidfd, dev_t pidfds, int number)
{
	struct ahead_row *row = &a->row[a->n];
	struct stat st;

	*row = (struct ahead_row){ .number = number,
				   .fd = (int)syscall(SYS_pidfd_getfd, pidfd, number, 0) };
	if (row->fd < 0)
		return;
	row->kind = STATE_plain;
	if (!descriptor_plain(row->fd, pidfds, &st)) {
		row->kind = is_epoll(row->fd, pidfd) ? STATE_epoll : kind_of(row->fd);
	} else {
		row->ino = st.st_ino;
		row->locks = locks_lockable(&st) && locks_may(a->pid, number, row->fd, &st);
	}
	a->n++;
}

static void rows_look(struct ahead *a)
{
	int pidfd = (int)syscall(SYS_pidfd_open, a->pid, 0);
	dev_t pidfds = pidfd < 0 ? 0 : pidfds_of(pidfd);

	for (int i = 0; pidfd >= 0 && i < STANDING_TOLD * 64 && a->n < ROWS; i++)
		if (a->open[i / 64] >> i % 64 & 1)
			row_look(a, pidfd, pidfds, i);
	if (pidfd >= 0)
		close(pidfd);
}

static long ahead_do(void *room)
{
	struct ahead *a = room;

	a->stands = thread_status(a->pid, a->pid, &a->status);
	rows_look(a);
	a->directory = directory_open(a->pid);
	return 0;
}

/* --- in the loop ------------------------------------------------------------------------ */

static void rows_close(struct ahead *a)
{
	int fd[ROWS + 1];
	unsigned n = 0;

	for (unsigned i = 0; i < a->n; i++)
		if (a->row[i].fd >= 0)
			fd[n++] = a->row[i].fd;
	if (a->directory >= 0)
		fd[n++] = a->directory;
	descriptors_close(a->pid, fd, n);
}

void ahead_ready(void)
{
	takeover_own(&known, sizeof(known));
}

void ahead_end(void)
{
	reach_settle();
	if (!known.pid)
		return;
	rows_close(&known);
	known.pid = 0;
}

/* It is done: at the latest when something else is to be reached. */
static void ahead_over(void *room, long result)
{
	struct ahead *a = room;

	(void)result;
	if (known.pid || !a->pid)
		rows_close(a);	/* left behind, and another has been looked up */
	else
		memcpy(&known, a, offsetof(struct ahead, row) + a->n * sizeof(a->row[0]));
}

void ahead_begin(const struct request *r)
{
	struct ahead *a;

	ahead_end();
	MUST(r->kind == REQ_CRASHED && r->pid > 0);
	if (r->pid != r->tid)
		return;
	a = reach_room(r->pid, sizeof(*a));
	if (!a)
		return;
	a->pid = r->pid;
	a->directory = -1;
	a->n = 0;
	for (unsigned i = 0; i < STANDING_TOLD; i++)
		a->open[i] = r->call[2 * STANDING_TOLD] ? r->call[2 * i] : 0;
	reach_post(ahead_do, ahead_over);
}

/* Not looked for: the successor may have no other processor than ours to wake on. */
static bool is_known(pid_t pid)
{
	reach_rest();
	return known.pid && known.pid == pid && known.stands;
}

bool ahead_status(pid_t pid, struct thread_status *s)
{
	if (!is_known(pid))
		return false;
	*s = known.status;
	return true;
}

bool ahead_descriptor(pid_t pid, int number, struct ahead_row *row)
{
	for (unsigned i = 0; is_known(pid) && known.status.threads == 1 && i < known.n; i++)
		if (known.row[i].number == number && known.row[i].fd >= 0) {
			*row = known.row[i];
			known.row[i].fd = -1;
			return true;
		}
	return false;
}

int ahead_directory(pid_t pid)
{
	int fd = is_known(pid) ? known.directory : -1;

	if (fd >= 0)
		known.directory = -1;
	return fd;
}
