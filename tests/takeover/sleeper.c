/*
 * A server whose first thread waits for the other (pthread_join) and takes the signals,
 * of which it tells the other by a pipe: each connection is told how many have come, and when.
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

static int pipe_fds[2];

static void tell(int sig)
{
	if (write(pipe_fds[1], &sig, 1) != 1)
		_exit(1);
}

static void *serve(void *port)
{
	struct sockaddr_in at = { .sin_family = AF_INET,
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int listener = socket(AF_INET, SOCK_STREAM, 0), one = 1, came = 0;
	sigset_t all;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, NULL);
	at.sin_port = htons((uint16_t)atoi(port));
	setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(listener, (void *)&at, sizeof(at)) || listen(listener, 8))
		exit(1);
	for (;;) {
		int fd = accept(listener, NULL, NULL);
		char text[48];

		while (read(pipe_fds[0], text, 1) == 1)
			came++;
		if (write(fd, text, (size_t)snprintf(text, sizeof(text), "%d %ld\n", came,
						      (long)time(NULL))) < 0)
			exit(1);
		close(fd);
	}
}

int main(int argc, char **argv)
{
	struct sigaction act = { .sa_handler = tell, .sa_flags = SA_RESTART };
	pthread_t other;

	if (pipe2(pipe_fds, O_NONBLOCK) || sigaction(SIGUSR1, &act, NULL))
		return 1;
	return pthread_create(&other, NULL, serve, argv[argc - 1]) || pthread_join(other, NULL);
}
