/*
 * Handlers that run wherever their signals find the program: in accept, between calls,
 * on the way into fork.  One waits for children, which end by themselves and so have
 * their leaks looked for; the last act of the other is a call.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHILDREN	60

static int bell[2];
static volatile sig_atomic_t reaped;

static void on_child(int sig)
{
	int was = errno;

	while (waitpid(-1, NULL, WNOHANG) > 0)
		reaped++;
	errno = was;
}

static void on_user(int sig)
{
	write(bell[1], "x", 1);
}

static void child(const struct sockaddr_in *to)
{
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	kill(getppid(), SIGUSR1);
	if (connect(fd, (const struct sockaddr *)to, sizeof(*to)) || write(fd, "y", 1) != 1)
		_exit(1);
	close(fd);
	exit(0);
}

static int visit(int listener)
{
	char c = 0;
	int fd;

	do
		fd = accept(listener, NULL, NULL);
	while (fd < 0 && errno == EINTR);
	while (read(fd, &c, 1) < 0 && errno == EINTR)
		;
	close(fd);
	return c == 'y';
}

int main(void)
{
	struct sockaddr_in at = { .sin_family = AF_INET };
	struct sigaction act = { .sa_handler = on_child, .sa_flags = SA_RESTART };
	int listener = socket(AF_INET, SOCK_STREAM, 0), visits = 0;
	socklen_t len = sizeof(at);

	at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (pipe(bell) || bind(listener, (struct sockaddr *)&at, sizeof(at)) ||
	    listen(listener, 8) || getsockname(listener, (struct sockaddr *)&at, &len))
		return 1;
	sigaction(SIGCHLD, &act, NULL);
	signal(SIGUSR1, on_user);
	for (int i = 0; i < CHILDREN; i++) {
		if (!fork())
			child(&at);
		visits += visit(listener);
	}
	while (reaped < CHILDREN)
		poll(NULL, 0, 10);
	printf("%d visits, %d reaped\n", visits, (int)reaped);
	return 0;
}
