/*
 * A server for tests/update/epoll.py: one loop, whose registrations' data are the connections'
 * addresses.  Each line is answered by how many this connection has sent.
 */
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "engine/update/update.h"

struct conn {
#if BUILD == 2
	long extra;
#endif
	int fd, lines;
	struct conn *next;
};

static int epoll_fd;
static struct conn *conns, *listening;

static struct conn *conn_new(int fd)
{
	struct conn *c = calloc(1, sizeof(*c));
	struct epoll_event e = { .events = EPOLLIN, .data.ptr = c };

	c->fd = fd;
	epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &e);
	return c;
}

static void begin(int port)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_port = htons((unsigned short)port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(a);
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	bind(fd, (struct sockaddr *)&a, sizeof(a));
	listen(fd, 16);
	getsockname(fd, (struct sockaddr *)&a, &len);
	epoll_fd = epoll_create1(0);
	listening = conn_new(fd);
	printf("ready on port %d\n", ntohs(a.sin_port));
	fflush(stdout);
}

static void gone(struct conn *c)
{
	struct conn **at = &conns;

	while (*at != c)
		at = &(*at)->next;
	*at = c->next;
	close(c->fd);
	free(c);
}

static void answer(struct conn *c)
{
	char line[64];
	ssize_t n = read(c->fd, line, sizeof(line));

	if (n <= 0) {
		gone(c);
		return;
	}
	n = snprintf(line, sizeof(line), "lines %d\n", ++c->lines);
	write(c->fd, line, (size_t)n);
}

int main(int argc, char **argv)
{
	struct epoll_event e;

	(void)argc;
	mve_update_epoll(true);
	if (!mve_updating())
		begin(atoi(argv[1]));
	for (;;) {
		struct conn *c;

		if (epoll_wait(epoll_fd, &e, 1, -1) != 1)
			continue;
		c = e.data.ptr;
		if (c != listening) {
			answer(c);
			continue;
		}
		c = conn_new(accept(c->fd, NULL, NULL));
		c->next = conns;
		conns = c;
	}
}
