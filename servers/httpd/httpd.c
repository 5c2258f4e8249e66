/*
 * httpd: a small web server, for sanitizer followers and their figures: the
 * server of the published experiment, made anew.
 *
 *	httpd PORT FOLDER [bzip2]
 *
 * serves the files of FOLDER on 127.0.0.1; with PORT 0 the kernel picks one.  With
 * bzip2 each reply is compressed anew.  The first line of its output is
 * "httpd: ready on port N".  GET and HEAD, connections that stay open, requests
 * one behind the other.
 *
 * One thread and one dispatch loop.  A client's next request is looked at only
 * when its last reply has gone, so one that never reads stops nobody else.
 * Requests have nothing in common: a follower may skip any connection.  SIGTERM
 * and SIGINT end the server with status 0.
 *
 * request.c holds a bug that is there on purpose.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "httpd.h"

#define EVENTS	64

struct client {
	int fd;
	bool writing;		/* waits until its reply can go on */
	bool last;		/* the connection ends behind the reply */
	size_t in_len, out_sent;
	struct reply out;	/* data is NULL: none is on its way */
	char in[HEAD_SIZE + 1];	/* and the NUL behind a head */
};

static int poll_fd;

/* --- clients --------------------------------------------------------------------- */

/* Takes one request out of what has come, and makes its reply. */
static void client_answer(struct client *c, size_t len)
{
	char head[HEAD_SIZE + 1];
	struct request r;
	int refused;

	memcpy(head, c->in, len);
	head[len] = 0;
	refused = request_parse(&r, head);
	c->out = refused ? reply_status(refused, false) : reply_file(&r);
	c->last = refused || !r.keep;
	c->out_sent = 0;
	request_free(&r);
	c->in_len -= len;
	memmove(c->in, c->in + len, c->in_len);
}

/* Whether a request has come that is to be answered. */
static bool client_next(struct client *c)
{
	size_t len = request_length(c->in, c->in_len);

	if (len) {
		client_answer(c, len);
	} else if (c->in_len == HEAD_SIZE) {
		c->out = reply_status(431, false);
		c->last = true;
		c->out_sent = 0;
		c->in_len = 0;
	} else {
		return false;
	}
	return true;
}

/* False when the client is gone, its last reply is, or there is no memory for one. */
static bool client_write(struct client *c)
{
	ssize_t n;

	if (!c->out.data)
		return false;
	n = send(c->fd, c->out.data + c->out_sent, c->out.len - c->out_sent, MSG_NOSIGNAL);
	if (n < 0)
		return errno == EAGAIN;
	c->out_sent += (size_t)n;
	if (c->out_sent < c->out.len)
		return true;
	free(c->out.data);
	c->out.data = NULL;
	return !c->last;
}

/* Waits for the client to read when a reply is stuck, else for a request. */
static bool client_wait(struct client *c)
{
	bool writing = c->out.data;
	struct epoll_event want = { .events = writing ? EPOLLOUT : EPOLLIN, .data.ptr = c };

	if (writing == c->writing)
		return true;
	c->writing = writing;
	return epoll_ctl(poll_fd, EPOLL_CTL_MOD, c->fd, &want) == 0;
}

/* False when the client is done. */
static bool client_serve(struct client *c)
{
	if (!c->out.data) {
		ssize_t n = recv(c->fd, c->in + c->in_len, HEAD_SIZE - c->in_len, 0);

		if (n <= 0)
			return n < 0 && errno == EAGAIN;
		c->in_len += (size_t)n;
	}
	while (c->out.data || client_next(c)) {
		if (!client_write(c))
			return false;
		if (c->out.data)
			break;
	}
	return client_wait(c);
}

static void client_close(struct client *c)
{
	close(c->fd);
	free(c->out.data);
	free(c);
}

static void client_accept(int listening)
{
	int fd = accept4(listening, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	struct client *c = fd < 0 ? NULL : calloc(1, sizeof(*c));
	struct epoll_event want = { .events = EPOLLIN, .data.ptr = c };

	if (c) {
		c->fd = fd;
		if (epoll_ctl(poll_fd, EPOLL_CTL_ADD, fd, &want) < 0)
			client_close(c);
	} else if (fd >= 0) {
		close(fd);
	}
}

/* --- the server -------------------------------------------------------------------- */

static int listen_on(uint16_t port)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_port = htons(port),
				 .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), on = 1;
	socklen_t len = sizeof(a);

	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (bind(fd, (struct sockaddr *)&a, len) < 0 || listen(fd, 511) < 0 ||
	    getsockname(fd, (struct sockaddr *)&a, &len) < 0)
		return -1;
	printf("httpd: ready on port %d\n", ntohs(a.sin_port));
	fflush(stdout);
	return fd;
}

/* A descriptor that is ready when the server is to end. */
static int stop_open(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigprocmask(SIG_BLOCK, &set, NULL);
	return signalfd(-1, &set, SFD_CLOEXEC);
}

/* Their events carry the address of the descriptor, a client's the client. */
static void serve(int listening, int stopping)
{
	struct epoll_event event[EVENTS];
	struct epoll_event stop = { .events = EPOLLIN, .data.ptr = &stopping };
	struct epoll_event come = { .events = EPOLLIN, .data.ptr = &listening };

	epoll_ctl(poll_fd, EPOLL_CTL_ADD, stopping, &stop);
	epoll_ctl(poll_fd, EPOLL_CTL_ADD, listening, &come);
	for (;;) {
		int n = epoll_wait(poll_fd, event, EVENTS, -1);

		for (int i = 0; i < n; i++) {
			void *who = event[i].data.ptr;

			if (who == &stopping)
				return;
			if (who == &listening)
				client_accept(listening);
			else if (!client_serve(who))
				client_close(who);
		}
	}
}

static int usage(void)
{
	fputs("usage: httpd PORT FOLDER [bzip2]\n", stderr);
	return 2;
}

int main(int argc, char **argv)
{
	const bool compress = argc == 4 && !strcmp(argv[3], "bzip2");
	char *end;
	unsigned long port;
	int listening, stopping;

	if (argc < 3 || argc > 4 || (argc == 4 && !compress))
		return usage();
	port = strtoul(argv[1], &end, 10);
	if (port > UINT16_MAX || *end || end == argv[1])
		return usage();
	if (reply_begin(argv[2], compress) < 0) {
		fprintf(stderr, "httpd: cannot serve %s: %s\n", argv[2], strerror(errno));
		return 1;
	}
	poll_fd = epoll_create1(EPOLL_CLOEXEC);
	stopping = stop_open();
	listening = listen_on((uint16_t)port);
	if (poll_fd < 0 || stopping < 0 || listening < 0) {
		fprintf(stderr, "httpd: cannot serve port %lu: %s\n", port, strerror(errno));
		return 1;
	}
	serve(listening, stopping);
	puts("httpd: ended");
	return 0;
}
