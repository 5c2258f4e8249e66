/*
 * What both versions of the threaded kv have in common: a listener, a line, an answer.
 * They differ in what the table holds and in the commands; see v1.c.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "engine/update/update.h"

#define LINE_SIZE	512
#define KEY_SIZE	64

static inline int listen_on(unsigned port)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_port = htons((uint16_t)port),
				 .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;
	socklen_t len = sizeof(a);

	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (bind(fd, (struct sockaddr *)&a, len) < 0 || listen(fd, 64) < 0 ||
	    getsockname(fd, (struct sockaddr *)&a, &len) < 0)
		return -1;
	printf("kv: ready on port %d\n", ntohs(a.sin_port));
	fflush(stdout);
	return fd;
}

static inline unsigned hash_of(const char *key)
{
	unsigned hash = 5381;

	while (*key)
		hash = hash * 33 + (unsigned char)*key++;
	return hash;
}

/* All of it goes, or the client is gone. */
static inline int send_all(int fd, const char *text, size_t n)
{
	while (n) {
		ssize_t sent = send(fd, text, n, MSG_NOSIGNAL);

		if (sent < 0 && errno == EINTR)
			continue;
		if (sent <= 0)
			return -1;
		text += sent;
		n -= (size_t)sent;
	}
	return 0;
}
