/*
 * What one thread leaves in memory before it writes to a pipe, a pair or an eventfd, or
 * sends a signal, the thread that reads there or waits for it finds, whichever call the two
 * are made by: read and write have many sisters.  It sends on what it found, for a twin to say the same.
 */
#include <fcntl.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "check.h"

#define ROUNDS	150

typedef ssize_t move_fn(int fd, void *bytes, size_t n);

static ssize_t by_read(int fd, void *bytes, size_t n)
{
	return read(fd, bytes, n);
}

static ssize_t by_write(int fd, void *bytes, size_t n)
{
	return write(fd, bytes, n);
}

static ssize_t by_preadv2(int fd, void *bytes, size_t n)
{
	struct iovec v = { bytes, n };

	return preadv2(fd, &v, 1, -1, 0);
}

static ssize_t by_pwritev2(int fd, void *bytes, size_t n)
{
	struct iovec v = { bytes, n };

	return pwritev2(fd, &v, 1, -1, 0);
}

static ssize_t by_vmsplice(int fd, void *bytes, size_t n)
{
	struct iovec v = { bytes, n };

	return vmsplice(fd, &v, 1, 0);
}

static ssize_t by_recvmmsg(int fd, void *bytes, size_t n)
{
	struct iovec v = { bytes, n };
	struct mmsghdr m = { { .msg_iov = &v, .msg_iovlen = 1 }, 0 };

	return recvmmsg(fd, &m, 1, 0, NULL) == 1 ? m.msg_len : -1;
}

static ssize_t by_sendmmsg(int fd, void *bytes, size_t n)
{
	struct iovec v = { bytes, n };
	struct mmsghdr m = { { .msg_iov = &v, .msg_iovlen = 1 }, 0 };

	return sendmmsg(fd, &m, 1, 0) == 1 ? m.msg_len : -1;
}

static pthread_t taker;

static ssize_t by_kill(int fd, void *bytes, size_t n)
{
	(void)fd, (void)bytes;
	return pthread_kill(taker, SIGUSR1) ? -1 : (ssize_t)n;
}

static ssize_t by_queue(int fd, void *bytes, size_t n)
{
	(void)fd, (void)bytes;
	return pthread_sigqueue(taker, SIGUSR1, (union sigval){ .sival_int = 1 }) ? -1 : (ssize_t)n;
}

static ssize_t by_sigwait(int fd, void *bytes, size_t n)
{
	sigset_t set;

	(void)fd, (void)bytes;
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	return sigwaitinfo(&set, NULL) == SIGUSR1 ? (ssize_t)n : -1;
}

static void pipe_make(int fd[2])
{
	CHECK(!pipe(fd));
}

static void pair_make(int fd[2])
{
	CHECK(!socketpair(AF_UNIX, SOCK_STREAM, 0, fd));
}

static void eventfd_make(int fd[2])
{
	fd[0] = eventfd(0, 0);
	fd[1] = dup(fd[0]);
	CHECK(fd[0] >= 0 && fd[1] >= 0);
}

static const struct way {
	void (*make)(int fd[2]);
	move_fn *give, *take;
} ways[] = {
	{ pipe_make, by_write, by_preadv2 },
	{ pipe_make, by_pwritev2, by_read },
	{ pipe_make, by_vmsplice, by_preadv2 },
	{ pair_make, by_sendmmsg, by_read },
	{ pair_make, by_write, by_recvmmsg },
	{ eventfd_make, by_pwritev2, by_preadv2 },
	{ pipe_make, by_kill, by_sigwait },
	{ pipe_make, by_queue, by_sigwait },
};

static const struct way *way;
static int tube[2], back[2];
static volatile int left;

static void spin(unsigned n)
{
	for (volatile unsigned i = 0; i < n; i++)
		;
}

static void *giver(void *arg)
{
	uint64_t one;

	for (int i = 1; i <= ROUNDS; i++) {
		CHECK_EQ(read(back[0], &one, sizeof(one)), sizeof(one));
		spin((unsigned)i * 7919 % 60000);
		left = i;
		one = 1;
		CHECK_EQ(way->give(tube[1], &one, sizeof(one)), sizeof(one));
	}
	return arg;
}

static void taken(int sink)
{
	uint64_t one;
	int found;

	for (int i = 1; i <= ROUNDS; i++) {
		one = 1;
		CHECK_EQ(write(back[1], &one, sizeof(one)), sizeof(one));
		CHECK_EQ(way->take(tube[0], &one, sizeof(one)), sizeof(one));
		found = left;
		CHECK_EQ(write(sink, &found, sizeof(found)), sizeof(found));
		CHECK_EQ(found, i);
	}
}

int main(void)
{
	int sink = open("/dev/null", O_WRONLY);
	pthread_t id;
	sigset_t set;

	taker = pthread_self();
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	CHECK(!pthread_sigmask(SIG_BLOCK, &set, NULL));
	for (unsigned i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
		way = &ways[i];
		left = 0;
		way->make(tube);
		CHECK(!pipe(back));
		CHECK(!pthread_create(&id, NULL, giver, NULL));
		taken(sink);
		CHECK(!pthread_join(id, NULL));
		for (int k = 0; k < 2; k++)
			CHECK(!close(tube[k]) && !close(back[k]));
	}
	puts("rung: ok");
	return 0;
}
