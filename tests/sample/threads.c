/*
 * A server with threads, in one of these ways:
 *
 *	each	a thread for each connection
 *	helped	so, beside one that sleeps from the start on until a line "done" comes, and ends
 *	loops	four threads with a listener and an epoll set of their own
 *	pool	four threads that are handed connections by the first
 *
 * A request is a line; it is answered under a lock.  The line "stale" reads memory that
 * was given back, which nobody sees but a sanitizer; behind "slow" its report takes long.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#define THREADS		4
#define QUEUE		256

static volatile int sink, slow;
static int port, listener;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t more = PTHREAD_COND_INITIALIZER;
static int queue[QUEUE];
static unsigned put, taken;

/* Called by AddressSanitizer in the midst of its report. */
void __asan_on_error(void)
{
	for (volatile long i = 0; slow && i < 2000000000; i++)
		;
}

static __attribute__((noinline)) void stale(void)
{
	volatile char *block = malloc(40);

	block[9] = 1;
	free((void *)block);
	sink = block[9];
}

static int done[2];

static void *help(void *byte)
{
	return read(done[0], &byte, 1) == 1 ? NULL : byte;
}

/* False: the client has gone. */
static int answer(int fd)
{
	char line[200];
	ssize_t n = read(fd, line, sizeof(line));

	if (n <= 0)
		return 0;
	if (n >= 4 && !memcmp(line, "slow", 4))
		slow = 1;
	if (n >= 5 && !memcmp(line, "stale", 5))
		stale();
	if (n >= 4 && !memcmp(line, "done", 4) && write(done[1], line, 1) != 1)
		exit(1);
	pthread_mutex_lock(&lock);
	n = write(fd, line, (size_t)n);
	pthread_mutex_unlock(&lock);
	return n > 0;
}

static void *serve(void *fd)
{
	while (answer((int)(long)fd))
		;
	close((int)(long)fd);
	return NULL;
}

static int listens(void)
{
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_port = htons((uint16_t)port),
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = socket(AF_INET, SOCK_STREAM, 0), one = 1;

	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &one, sizeof(one));
	if (bind(fd, (void *)&at, sizeof(at)) || listen(fd, 64))
		exit(1);
	return fd;
}

/* Their data are pointers, which another thread's connections have, too, later. */
static void *loop(void *unused)
{
	int from = listens(), set = epoll_create1(0);
	struct epoll_event e = { .events = EPOLLIN, .data.ptr = NULL };

	epoll_ctl(set, EPOLL_CTL_ADD, from, &e);
	while (epoll_wait(set, &e, 1, -1) >= 0) {
		int *client = e.data.ptr;

		if (!client) {
			client = malloc(sizeof(*client));
			*client = accept(from, NULL, NULL);
			e.data.ptr = client;
			epoll_ctl(set, EPOLL_CTL_ADD, *client, &e);
		} else if (!answer(*client)) {
			close(*client);
			free(client);
		}
	}
	return unused;
}

static void *work(void *unused)
{
	for (;;) {
		int fd;

		pthread_mutex_lock(&lock);
		while (put == taken)
			pthread_cond_wait(&more, &lock);
		fd = queue[taken++ % QUEUE];
		pthread_mutex_unlock(&lock);
		serve((void *)(long)fd);
	}
	return unused;
}

static void begin(void *(*how)(void *), long fd)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, how, (void *)fd))
		exit(1);
	pthread_detach(thread);
}

static void ends(int signal)
{
	(void)signal;
	_exit(0);
}

int main(int argc, char **argv)
{
	const char *way = argv[1];

	int each = !strcmp(way, "each") || !strcmp(way, "helped");

	port = atoi(argv[argc - 1]);
	signal(SIGTERM, ends);
	if (!strcmp(way, "helped") && !pipe(done))
		begin(help, 0);
	for (int i = 0; i < THREADS && !each; i++)
		begin(strcmp(way, "loops") ? work : loop, 0);
	if (!strcmp(way, "loops"))
		for (;;)
			pause();
	listener = listens();
	for (;;) {
		int fd = accept(listener, NULL, NULL);

		if (fd < 0)
			return 1;	/* none of these is to fail, not in a follower either */
		if (each) {
			begin(serve, fd);
			continue;
		}
		pthread_mutex_lock(&lock);
		queue[put++ % QUEUE] = fd;
		pthread_cond_signal(&more);
		pthread_mutex_unlock(&lock);
	}
}
