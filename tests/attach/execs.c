/*
 * execs PORT: a process for each connection, which executes a shell that answers its lines: at any
 * moment some are being born, some are on their way through execve, and some end.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static void reap(int sig)
{
	int was = errno;

	(void)sig;
	while (waitpid(-1, NULL, WNOHANG) > 0)
		;
	errno = was;
}

static void serve(int fd)
{
	dup2(fd, 0);
	dup2(fd, 1);
	execl("/bin/sh", "sh", "-c", "while read n; do echo $n; done", NULL);
	_exit(1);
}

int main(int argc, char **argv)
{
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };
	struct sigaction hears = { .sa_handler = reap, .sa_flags = SA_RESTART };
	int listener = socket(AF_INET, SOCK_STREAM, 0), one = 1;

	at.sin_port = htons((unsigned short)atoi(argv[argc - 1]));
	setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(listener, (struct sockaddr *)&at, sizeof(at)) || listen(listener, 64) ||
	    sigaction(SIGCHLD, &hears, NULL))
		return 1;
	for (;;) {
		int fd = accept(listener, NULL, NULL);

		if (fd >= 0 && !fork())
			serve(fd);
		if (fd >= 0)
			close(fd);
	}
}
