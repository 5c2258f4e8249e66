/*
 * ending PORT: a server whose processes make children that end at once, one after the other,
 * for tests of taking over while some are on their way out.  It answers each connection.
 */
#include <arpa/inet.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define MAKERS	12
#define PAUSE_US	300

static volatile sig_atomic_t over;

static void end(int sig)
{
	(void)sig;
	over = 1;
}

static void make_children(void)
{
	while (!over) {
		pid_t pid = fork();

		if (!pid)
			_exit(1);	/* which the monitor is asked about */
		if (pid < 0)
			_exit(1);
		while (waitpid(pid, NULL, 0) != pid)
			;
		usleep(PAUSE_US);
	}
	_exit(0);
}

int main(int argc, char **argv)
{
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(0x7f000001) };
	struct sigaction ends = { .sa_handler = end };
	int listener = socket(AF_INET, SOCK_STREAM, 0), on = 1, fd;
	pid_t maker[MAKERS];

	at.sin_port = htons((unsigned short)atoi(argv[argc - 1]));
	setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (bind(listener, (struct sockaddr *)&at, sizeof(at)) || listen(listener, 64))
		return 1;
	sigaction(SIGTERM, &ends, NULL);
	for (int i = 0; i < MAKERS; i++)
		if (!(maker[i] = fork()))
			make_children();
	while (!over && (fd = accept(listener, NULL, NULL)) >= 0) {
		if (write(fd, "here\n", 5) != 5)
			return 1;
		close(fd);
	}
	for (int i = 0; i < MAKERS; i++)
		kill(maker[i], SIGTERM);
	for (int i = 0; i < MAKERS; i++)
		while (waitpid(maker[i], NULL, 0) != maker[i])
			;
	return 0;
}
