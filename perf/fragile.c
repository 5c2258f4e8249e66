/*
 * A server that can be made to crash by a request, for the latency of the
 * request that killed the leader.
 *
 *	fragile PORT fragile|sound
 *
 * Answers each line with the same line.  The line "crash" makes a fragile one
 * write to address 0 before it answers; a sound one answers it, too.
 */
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

static int fragile;

static int listen_at(int port)
{
	const struct sockaddr_in at = {
		.sin_family = AF_INET,
		.sin_port = htons((unsigned short)port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	const int one = 1, fd = socket(AF_INET, SOCK_STREAM, 0);

	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (fd < 0 || bind(fd, (const void *)&at, sizeof(at)) || listen(fd, 128))
		exit(3);
	return fd;
}

static void watch(int epoll, int fd)
{
	struct epoll_event ev = { .events = EPOLLIN, .data.fd = fd };

	if (fd < 0 || epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &ev))
		exit(3);
}

static void answer(int fd)
{
	char line[200];
	const ssize_t got = read(fd, line, sizeof(line));

	if (got <= 0) {
		close(fd);
		return;
	}
	if (fragile && got >= 5 && !memcmp(line, "crash", 5))
		*(volatile int *)0 = 1;
	if (write(fd, line, (size_t)got) != got)
		close(fd);
}

int main(int argc, char **argv)
{
	int listening, epoll;

	if (argc != 3)
		return 2;
	fragile = !strcmp(argv[2], "fragile");
	listening = listen_at(atoi(argv[1]));
	epoll = epoll_create1(0);
	watch(epoll, listening);
	for (;;) {
		struct epoll_event ev;

		if (epoll_wait(epoll, &ev, 1, -1) != 1)
			continue;
		if (ev.data.fd == listening)
			watch(epoll, accept(listening, NULL, NULL));
		else
			answer(ev.data.fd);
	}
}
