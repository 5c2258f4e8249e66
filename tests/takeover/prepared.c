/*
 * prepared.c: a server of two processes, each with a port, connections and some more
 * descriptors.  It answers each line with how many it has had and whether all that it has
 * open is still what it was.
 *
 *	prepared PORT OTHER MORE
 */
#include <arpa/inet.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define MOST	1000
#define MUST(x)	do { if (!(x)) { perror(#x); exit(3); } } while (0)

static struct pollfd polled[MOST];
static int polls, more[MOST], mores;

static int listen_on(int port)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_port = htons((unsigned short)port),
				 .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = socket(AF_INET, SOCK_STREAM, 0), on = 1;

	MUST(fd >= 0 && !setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)));
	MUST(!bind(fd, (struct sockaddr *)&a, sizeof(a)) && !listen(fd, 10));
	return fd;
}

/* Each is an eventfd with its own number in it, which is put back. */
static int wrong(void)
{
	int n = 0;

	for (int i = 0; i < mores; i++) {
		eventfd_t value = 0;

		n += eventfd_read(more[i], &value) || value != (eventfd_t)i + 1 ||
		     eventfd_write(more[i], value);
	}
	return n;
}

static void answer(struct pollfd *p)
{
	static int lines;
	char line[100], out[100];
	ssize_t n = read(p->fd, line, sizeof(line) - 1);

	if (n <= 0) {
		close(p->fd);
		p->fd = -1;
		return;
	}
	n = snprintf(out, sizeof(out), "%d lines, %d wrong\n", ++lines, wrong());
	MUST(write(p->fd, out, (size_t)n) == n);
}

/* The second process ends soon after the first. */
static void serve(int port, pid_t parent)
{
	for (int i = 0; i < mores; i++)
		MUST((more[i] = eventfd((unsigned)i + 1, EFD_NONBLOCK)) >= 0);
	polled[polls++] = (struct pollfd){ listen_on(port), POLLIN, 0 };
	for (;;) {
		MUST(poll(polled, (nfds_t)polls, 200) >= 0);
		if (parent && getppid() != parent)
			exit(0);
		if (polled[0].revents)
			polled[polls++] = (struct pollfd){ accept(polled[0].fd, NULL, NULL),
							   POLLIN, 0 };
		for (int i = 1; i < polls; i++)
			if (polled[i].revents)
				answer(&polled[i]);
	}
}

int main(int argc, char **argv)
{
	pid_t parent = getpid();

	if (argc != 4)
		return 2;
	mores = atoi(argv[3]);
	if (!fork())
		serve(atoi(argv[2]), parent);
	serve(atoi(argv[1]), 0);
}
