/*
 * A server with an epoll set that makes a child for each line: "fork", "vfork" or "raw" (a
 * clone with its own table of descriptors and shared memory).  The child closes all that it
 * was given, as a careful child does, and ends; then the line is answered.
 */
#include <arpa/inet.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static int epfd, listener;
static char stack[65536] __attribute__((aligned(16)));

static int child(void *arg)
{
	(void)arg;
	for (int fd = 3; fd < 32; fd++)
		close(fd);
	_exit(0);
}

static pid_t make(const char *line)
{
	if (!strcmp(line, "raw\n"))
		return clone(child, stack + sizeof(stack), CLONE_VM | CLONE_VFORK | SIGCHLD, NULL);
	pid_t pid = !strcmp(line, "vfork\n") ? vfork() : fork();

	if (!pid)
		child(NULL);
	return pid;
}

static void watch(int fd)
{
	struct epoll_event e = { .events = EPOLLIN, .data.fd = fd };

	if (epoll_ctl(epfd, EPOLL_CTL_ADD, fd, &e))
		exit(1);
}

static void talk(int fd)
{
	char line[32] = "";
	ssize_t n = read(fd, line, sizeof(line) - 1);
	int status;

	if (n <= 0) {
		close(fd);
		return;
	}
	if (waitpid(make(line), &status, 0) < 0 || status || write(fd, line, (size_t)n) != n)
		exit(1);
}

int main(int argc, char **argv)
{
	struct sockaddr_in at = { .sin_family = AF_INET,
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct epoll_event e;
	int one = 1;

	listener = socket(AF_INET, SOCK_STREAM, 0);
	at.sin_port = htons((uint16_t)atoi(argv[argc - 1]));
	setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(listener, (void *)&at, sizeof(at)) || listen(listener, 8))
		return 1;
	epfd = epoll_create1(0);
	watch(listener);
	for (;;) {
		if (epoll_wait(epfd, &e, 1, -1) != 1)
			continue;
		if (e.data.fd == listener)
			watch(accept(listener, NULL, NULL));
		else
			talk(e.data.fd);
	}
}
