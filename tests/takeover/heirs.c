/*
 * heirs PORT: for "kill" it makes a child, ends it by SIGKILL and waits for it; for "heir" it makes
 * one that stays.
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static void must(int ok, const char *what)
{
	if (ok)
		return;
	perror(what);
	exit(1);
}

static void child_make(int stays)
{
	pid_t pid = fork();
	int status;

	must(pid >= 0, "fork");
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			pause();
	}
	if (!stays)
		must(!kill(pid, SIGKILL) && waitpid(pid, &status, 0) == pid, "kill");
}

int main(int argc, char **argv)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int one = 1, listener, fd;
	char line[16];

	must(argc == 2, "heirs PORT");
	a.sin_port = htons((uint16_t)atoi(argv[1]));
	listener = socket(AF_INET, SOCK_STREAM, 0);
	setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	must(!bind(listener, (struct sockaddr *)&a, sizeof(a)) && !listen(listener, 64), "listen");
	while ((fd = accept(listener, NULL, NULL)) >= 0) {
		if (read(fd, line, sizeof(line)) > 0) {
			child_make(line[0] == 'h');
			must(write(fd, "OK\n", 3) == 3, "write");
		}
		close(fd);
	}
	return 0;
}
