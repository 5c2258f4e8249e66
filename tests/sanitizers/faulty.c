/*
 * A server with faults that nobody sees but a sanitizer: each connection sends a line,
 * whose letters say what is done, and is told "ok".
 *
 *	a  reads behind a block		m  goes by an unknown value
 *	u  overflows an int		t  two threads write, unordered
 *	l  loses a block
 *	f  the rest of the line in a child		q  ends, with what stdio has
 */
#include <arpa/inet.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile int sink;

static __attribute__((noinline)) void fault_address(void)
{
	volatile char *block = malloc(7);

	memset((void *)block, 1, 7);
	sink = block[7];
	free((void *)block);
}

static __attribute__((noinline)) void fault_unknown(void)
{
	volatile int *block = malloc(4 * sizeof(int));

	if (block[1] > 5)
		sink = 1;
	free((void *)block);
}

static __attribute__((noinline)) void fault_overflow(void)
{
	volatile int most = INT_MAX;

	sink = most + 1;
}

static __attribute__((noinline)) void fault_leak(void)
{
	volatile char *block = malloc(1234);

	block[0] = 1;
}

static void *fault_race(void *unused)
{
	for (int i = 0; i < 100; i++)
		sink++;
	return unused;
}

static void race(void)
{
	pthread_t thread[2];

	for (int i = 0; i < 2; i++)
		pthread_create(&thread[i], NULL, fault_race, NULL);
	for (int i = 0; i < 2; i++)
		pthread_join(thread[i], NULL);
}

static void act(const char *line)
{
	pid_t child;

	for (; *line; line++) {
		switch (*line) {
		case 'a': fault_address(); break;
		case 'm': fault_unknown(); break;
		case 'u': fault_overflow(); break;
		case 't': race(); break;
		case 'l': fault_leak(); break;
		case 'q': exit(0);
		case 'f':
			child = fork();
			if (!child) {
				act(line + 1);
				_exit(0);
			}
			waitpid(child, NULL, 0);
			return;
		default:
			break;
		}
	}
}

int main(int argc, char **argv)
{
	struct sockaddr_in at = { .sin_family = AF_INET,
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int listener = socket(AF_INET, SOCK_STREAM, 0), one = 1;

	signal(SIGPIPE, SIG_IGN);
	printf("serves\n");	/* written at the end: by TSan's own hook, in its build */
	at.sin_port = htons((uint16_t)atoi(argv[argc - 1]));
	setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(listener, (void *)&at, sizeof(at)) || listen(listener, 8))
		return 1;
	for (;;) {
		int fd = accept(listener, NULL, NULL);
		char line[100] = "";
		ssize_t n = read(fd, line, sizeof(line) - 1);

		line[n > 0 ? n : 0] = 0;
		if (write(fd, "ok\n", 3) != 3 || close(fd))
			return 1;
		act(line);
	}
}
