/*
 * A server that answers each connection's line with the same line, by THREADS threads.  Where
 * it was built with STILL a thread does not go on: at "stall" before its answer and at "later"
 * behind it, in a futex that nobody wakes; at "spin" and "spinlater" it computes for ever; at
 * "naps" it waits for a condition that the leader does not wait for, again and again.
 */
#include <arpa/inet.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#define AWAKE	700000		/* ticks at each nap: it may be met awake, and mostly is not */

static int listener;

static void still(const char *line, const char *word)
{
#ifdef STILL
	static int nobody;
	static volatile int spins = 1;
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	static pthread_cond_t never = PTHREAD_COND_INITIALIZER;

	if (strcmp(line, word))
		return;
	while (!strncmp(word, "spin", 4) && spins)
		;
	while (!strcmp(word, "naps\n")) {
		const uint64_t from = __builtin_ia32_rdtsc();

		while (__builtin_ia32_rdtsc() - from < AWAKE)
			;
		pthread_cond_wait(&never, &lock);
	}
	for (;;)
		syscall(SYS_futex, &nobody, FUTEX_WAIT_PRIVATE, 0, NULL, NULL, 0);
#endif
	(void)line;
	(void)word;
}

static void *serve(void *arg)
{
	char line[64] = "";

	for (;;) {
		struct pollfd p = { .fd = listener, .events = POLLIN };
		int fd;

		still(line, "later\n");
		still(line, "spinlater\n");
		if (poll(&p, 1, -1) != 1)
			continue;
		fd = accept(listener, NULL, NULL);
		if (fd < 0)
			continue;
		memset(line, 0, sizeof(line));
		if (read(fd, line, sizeof(line) - 1) < 0)
			exit(1);
		still(line, "stall\n");
		still(line, "spin\n");
		still(line, "naps\n");
		if (write(fd, line, strlen(line)) < 0)
			exit(1);
		close(fd);
	}
	return arg;
}

int main(int argc, char **argv)
{
	struct sockaddr_in at = { .sin_family = AF_INET,
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int one = 1, threads = argc > 2 ? atoi(argv[2]) : 1;
	pthread_t other;

	listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
	at.sin_port = htons((uint16_t)atoi(argv[1]));
	setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(listener, (void *)&at, sizeof(at)) || listen(listener, 64))
		return 1;
	while (--threads > 0)
		if (pthread_create(&other, NULL, serve, NULL))
			return 1;
	serve(NULL);
	return 0;
}
