/*
 * See descriptors.h.  What cannot be closed at once, for its owner's user has us wait for too
 * much already, stays open and is tried again: it was fetched when that was not so, so that
 * there are never more of them than one work has fetched, and LEFT_MOST.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "engine/core/must.h"
#include "engine/outside/session/descriptors.h"
#include "engine/outside/session/reach.h"

static struct left {
	struct open { pid_t pid; int fd; } *row;
	size_t n, room;
} left;

struct closing {
	unsigned n;
	int fd[];
};

#define LEFT_MOST	256	/* for later: what one process has in a message, and some */
#define CLOSED_MOST	((REACH_ROOM - sizeof(struct closing)) / sizeof(int))

int descriptor_fetch(pid_t pid, int number)
{
	int handle = (int)syscall(SYS_pidfd_open, pid, 0);
	int fd = handle < 0 ? -1 : (int)syscall(SYS_pidfd_getfd, handle, number, 0);

	fd = fd < 0 ? -errno : fd;
	if (handle >= 0)
		close(handle);
	return fd;
}

static long close_do(void *room)
{
	const struct closing *c = room;

	MUST(c->n <= CLOSED_MOST);
	for (unsigned i = 0; i < c->n; i++)
		close(c->fd[i]);
	return 0;
}

/* Those of the first one's process. */
static void left_post(struct closing *c)
{
	pid_t pid = left.row[0].pid;
	size_t kept = 0;

	c->n = 0;
	for (size_t i = 0; i < left.n; i++) {
		if (left.row[i].pid == pid && c->n < CLOSED_MOST)
			c->fd[c->n++] = left.row[i].fd;
		else
			left.row[kept++] = left.row[i];
	}
	left.n = kept;
	reach_post(close_do, NULL);
}

bool descriptors_look(void)
{
	struct closing *c;

	while (left.n && (c = reach_room(left.row[0].pid, REACH_ROOM)))
		left_post(c);
	/* Whose turn it is not holds up no other's. */
	if (left.n > 1) {
		struct open first = left.row[0];

		memmove(left.row, left.row + 1, (left.n - 1) * sizeof(first));
		left.row[left.n - 1] = first;
	}
	return left.n;
}

static void left_add(pid_t pid, int fd)
{
	size_t room = left.room ? left.room * 2 : 64;

	if (left.n == left.room) {
		left.row = realloc(left.row, room * sizeof(*left.row));
		MUST(left.row);
		left.room = room;
	}
	left.row[left.n++] = (struct open){ pid, fd };
}

void descriptors_ready(void)
{
	volatile size_t *n = &left.n;

	*n = *n;	/* its page */
}

static void all_add(pid_t pid, const int *fd, unsigned n)
{
	MUST(pid > 0 || !n);
	for (unsigned i = 0; i < n; i++)
		left_add(pid, fd[i]);
}

void descriptors_leave(pid_t pid, const int *fd, unsigned n)
{
	all_add(pid, fd, n);
	if (left.n > LEFT_MOST)
		descriptors_look();
}

void descriptors_close(pid_t pid, const int *fd, unsigned n)
{
	if (!n)
		return;
	all_add(pid, fd, n);
	descriptors_look();
}
