/*
 * numbers PORT: a server that has a thousand descriptors of many kinds, some closed by an
 * execve and some not, one after the other and far apart.  It answers "?" with what each of
 * them is: its number and flags, and what an epoll set of its own says of a pipe in it.  A
 * second thread waits all the time.
 */
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>

#define NUMBERS	6000
#define PIPES	240

static int epoll, out;

static void *wait_on(void *arg)
{
	const int *pair = arg;
	char c;

	while (read(pair[0], &c, 1))
		;
	return NULL;
}

static void flag(int fd, int n)
{
	if (fd < 0 || fcntl(fd, F_SETFD, n % 3 == 1 ? FD_CLOEXEC : 0))
		exit(2);
}

static void all_open(void)
{
	struct epoll_event e = { .events = EPOLLIN, .data.u64 = 4711 };
	sigset_t set;
	int pair[2];

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	for (int i = 0; i < PIPES; i++) {
		if (pipe(pair))
			exit(2);
		flag(pair[0], i);
		flag(pair[1], i / 3);
		flag(eventfd(i, 0), i);
	}
	epoll = epoll_create1(EPOLL_CLOEXEC);
	if (pipe(pair) || epoll_ctl(epoll, EPOLL_CTL_ADD, pair[0], &e))
		exit(2);
	out = pair[1];
	flag(timerfd_create(CLOCK_MONOTONIC, 0), 1);
	flag(signalfd(-1, &set, 0), 1);
	flag(socket(AF_UNIX, SOCK_STREAM, 0), 1);
	flag(open("/dev/null", O_RDONLY), 1);
	flag(dup2(pair[0], 1500), 0);
	flag(dup2(pair[0], 5000), 1);
	flag(dup2(pair[0], 5001), 0);
	close(100);
	close(101);
}

static void tell(int client)
{
	static char text[NUMBERS * 8];
	struct epoll_event e = { 0 };
	int len = 0;

	if (write(out, "x", 1) != 1 || epoll_wait(epoll, &e, 1, 2000) != 1)
		exit(3);
	len = sprintf(text, "%d", (int)e.data.u64);
	for (int i = 0; i < NUMBERS; i++) {
		int flags = fcntl(i, F_GETFD);

		if (flags >= 0)
			len += sprintf(text + len, " %d:%d", i, flags);
	}
	len += sprintf(text + len, "\n");
	for (int at = 0, n; at < len; at += n)
		if ((n = (int)write(client, text + at, (size_t)(len - at))) <= 0)
			exit(4);
}

int main(int argc, char **argv)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
				  .sin_port = htons((uint16_t)atoi(argv[argc - 1])) };
	int s = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), one = 1, client, pair[2];
	pthread_t thread;
	char c;

	setsockopt(s, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(s, (struct sockaddr *)&to, sizeof(to)) || listen(s, 8))
		return 2;
	all_open();
	if (pipe(pair) || pthread_create(&thread, NULL, wait_on, pair))
		return 2;
	while ((client = accept(s, NULL, NULL)) >= 0) {
		while (read(client, &c, 1) == 1)
			tell(client);
		close(client);
	}
	return 0;
}
