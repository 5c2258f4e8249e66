/*
 * Writing to what a user has named: a file, or a terminal, pipe or socket that somebody has
 * to read.  The loop does not wait for him.
 *
 * What comes to us open is shared with the server and with whoever started us, so it cannot
 * be made not to wait.  It is opened once more; a socket, which cannot be, is asked not to
 * wait with each write.  A file is written as it is: the place in it is shared, too.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/core/must.h"
#include "engine/core/pairs.h"
#include "engine/outside/session/outlet.h"

#define READ_MS	1000	/* so long nobody need read of a file that is to be written whole */
#define AS_OUTLET	(O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC)
#define STEP	4096	/* a pipe that has room has so much */

static int fifo_name(const char *path)
{
	int fd = open(path, O_PATH | O_CLOEXEC);
	struct stat st;

	if (fd >= 0 && !fstat(fd, &st) && S_ISFIFO(st.st_mode))
		return fd;
	if (fd >= 0)
		close(fd);
	return -ENXIO;
}

int outlet_create(const char *path)
{
	int fd = open(path, AS_OUTLET | O_CREAT | O_TRUNC, 0666);

	if (fd >= 0)
		return fd;
	return errno == ENXIO ? fifo_name(path) : -errno;
}

static bool only_names(int fd)
{
	int flags = fcntl(fd, F_GETFL);

	return flags >= 0 && flags & O_PATH;
}

int outlet_open(int fd)
{
	char path[32];
	struct stat st;
	int again = -1;

	if (fstat(fd, &st))
		return -errno;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (S_ISFIFO(st.st_mode) || S_ISCHR(st.st_mode))
		again = open(path, AS_OUTLET);
	if (again < 0 && only_names(fd))
		return -errno;
	if (again < 0)
		again = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	return again < 0 ? -errno : again;
}

/* --- a pipe that nobody reads yet ------------------------------------------------------ */

static void *reader_await(void *arg)
{
	struct outlet_wait *w = arg;
	uint64_t one = 1;
	char path[32];
	int fd;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", w->fd);
	do
		fd = open(path, O_WRONLY | O_NOCTTY | O_CLOEXEC);
	while (fd < 0 && errno == EINTR);
	/* Its place and flags are nobody else's. */
	if (fd >= 0 && fcntl(fd, F_SETFL, O_WRONLY | O_NONBLOCK) < 0)
		errno = EBADF;
	PUBLISH(outlet_opened, &w->opened, fd < 0 ? -errno : fd);
	return write(w->comes, &one, sizeof(one)) < 0 ? w : NULL;
}

int outlet_await(struct outlet_wait *w)
{
	pthread_t thread;
	int result;

	w->opened = OUTLET_WAITS;
	w->comes = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (w->comes < 0)
		return -errno;
	result = -pthread_create(&thread, NULL, reader_await, w);
	if (!result)
		pthread_detach(thread);
	return result;
}

int outlet_come(struct outlet_wait *w)
{
	return CONSUME(outlet_opened, &w->opened);
}

/* --- writing --------------------------------------------------------------------------- */

static ssize_t step_write(int fd, const char *text, size_t len)
{
	struct pollfd room = { .fd = fd, .events = POLLOUT };
	ssize_t n;

	if (poll(&room, 1, 0) <= 0) {
		errno = EAGAIN;
		return -1;
	}
	n = send(fd, text, len, MSG_DONTWAIT | MSG_NOSIGNAL);
	return n < 0 && errno == ENOTSOCK ? write(fd, text, len) : n;
}

int outlet_write(int fd, const char *text, size_t len, size_t *at)
{
	MUST(*at <= len);
	while (*at < len) {
		size_t left = len - *at;
		ssize_t n = step_write(fd, text + *at, left < STEP ? left : STEP);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n ? -errno : -EIO;
		*at += (size_t)n;
	}
	return 0;
}

int outlet_file(const char *path, const char *text, size_t len)
{
	int fd = open(path, AS_OUTLET | O_CREAT | O_TRUNC, 0666);
	struct pollfd room = { .fd = fd, .events = POLLOUT };
	size_t at = 0;
	int result;

	if (fd < 0)
		return -errno;
	do
		result = outlet_write(fd, text, len, &at);
	while (result == -EAGAIN && poll(&room, 1, READ_MS) > 0);
	if (close(fd) < 0 && !result)
		result = -errno;
	return result;
}
