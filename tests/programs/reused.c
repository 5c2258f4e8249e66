/*
 * Numbers of descriptors that some threads close and others are given at once.  What was done
 * before the close the next one finds, without a lock: whose the number was stands in plain
 * memory, and is written to each new descriptor.
 */
#include <pthread.h>
#include <sys/socket.h>

#include "check.h"

#define THREADS	4
#define ROUNDS	300
#define NUMBERS	1024

static uint32_t owner[NUMBERS];		/* the last, and in which round */

static void have(int fd, uint32_t me)
{
	CHECK(fd >= 0 && fd < NUMBERS);
	CHECK_EQ(write(fd, &owner[fd], sizeof(owner[fd])), sizeof(owner[fd]));
	owner[fd] = me;
}

static void leave(int fd, bool range)
{
	CHECK_EQ(range ? syscall(SYS_close_range, fd, fd, 0) : close(fd), 0);
}

/* By a message to itself. */
static int received(int pair[2], int fd)
{
	union { struct cmsghdr head; char room[CMSG_SPACE(sizeof(int))]; } control = {
		.head = { CMSG_LEN(sizeof(int)), SOL_SOCKET, SCM_RIGHTS }
	};
	char byte = 0;
	struct iovec iov = { &byte, 1 };
	struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = &control,
			    .msg_controllen = sizeof(control) };

	memcpy(CMSG_DATA(&control.head), &fd, sizeof(fd));
	CHECK_EQ(sendmsg(pair[0], &m, 0), 1);
	CHECK_EQ(recvmsg(pair[1], &m, 0), 1);
	memcpy(&fd, CMSG_DATA(&control.head), sizeof(fd));
	return fd;
}

static void *use(void *arg)
{
	uint32_t id = (uint32_t)(uintptr_t)arg;

	for (uint32_t i = 0; i < ROUNDS; i++) {
		uint32_t me = id * ROUNDS + i;
		int fd = open("/dev/null", O_WRONLY), more = dup(fd), pair[2], last;

		have(fd, me);
		have(more, me);
		CHECK_EQ(socketpair(AF_UNIX, SOCK_DGRAM, 0, pair), 0);
		have(pair[0], me);
		have(pair[1], me);
		leave(more, i % 3 == id % 3);
		CHECK_EQ(read(pair[0], &me, sizeof(me)), sizeof(me));
		CHECK_EQ(read(pair[1], &me, sizeof(me)), sizeof(me));
		last = received(pair, fd);
		have(last, me);
		leave(pair[0], false);
		leave(fd, i % 3 == id % 3);
		leave(pair[1], false);
		leave(last, false);
	}
	return NULL;
}

int main(void)
{
	pthread_t thread[THREADS];

	for (uintptr_t i = 0; i < THREADS; i++)
		CHECK_EQ(pthread_create(&thread[i], NULL, use, (void *)i), 0);
	for (int i = 0; i < THREADS; i++)
		CHECK_EQ(pthread_join(thread[i], NULL), 0);
	return passed("reused");
}
