/*
 * `same_data OWN OTHER [TIMES]`: registers a descriptor with the data OWN, and others, which go
 * at once: one with the data OTHER, which may be the same, and TIMES with data of their own.
 * An event of the first has its data still.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

static int set;

static int registered(uint64_t data)
{
	struct epoll_event event = { .events = EPOLLIN | EPOLLET, .data.u64 = data };
	int fd = eventfd(0, 0);

	if (fd < 0 || epoll_ctl(set, EPOLL_CTL_ADD, fd, &event))
		exit(1);
	return fd;
}

static void rings(int fd, uint64_t own)
{
	struct epoll_event event = { 0 };
	uint64_t one = 1;

	if (write(fd, &one, sizeof(one)) != sizeof(one) || epoll_wait(set, &event, 1, -1) != 1)
		exit(2);
	/* What is another in a follower shows. */
	printf("%s\n", event.data.u64 == own ? "its data" : "another's data");
	fflush(stdout);
}

int main(int argc, char **argv)
{
	uint64_t own = argc > 2 ? strtoul(argv[1], NULL, 0) : 1;
	uint64_t other = argc > 2 ? strtoul(argv[2], NULL, 0) : 1;
	unsigned long times = argc > 3 ? strtoul(argv[3], NULL, 0) : 0;
	int fd;

	set = epoll_create1(0);
	fd = registered(own);
	close(registered(other));
	rings(fd, own);
	for (unsigned long i = 1; i <= times; i++)
		close(registered((own + i) << 32));
	fd = registered(own + 1);
	rings(fd, own + 1);
	puts("same_data: ok");
	return 0;
}
