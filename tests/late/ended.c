/*
 * ended PORT: a server that leaves children that have ended behind, and waits for one only when it
 * is asked to.  A line is answered by another:
 *	end N		a child ends with this status: its number, from 1 on
 *	kill		one is killed: its number
 *	wait N		for child N: how it has ended, as "exit 7" or "signal 9"; "none"
 *	any		the same, for anyone
 *	idle		"idle"
 */
#include <arpa/inet.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHILDREN	1000

static pid_t child[CHILDREN];
static int children;

static int child_end(int status)
{
	pid_t pid = fork();

	while (!pid && status < 0)
		pause();
	if (!pid)
		_exit(status);
	if (status < 0)
		kill(pid, SIGKILL);
	child[++children] = pid;
	/* It has ended, and stays as it is. */
	waitid(P_PID, (id_t)pid, &(siginfo_t){ 0 }, WEXITED | WNOWAIT);
	return children;
}

static void child_wait(pid_t pid, char *answer, size_t size)
{
	int status;

	/* One that is killed is told to be in all versions, and may take a moment to end. */
	pid = waitpid(pid, &status, 0);
	if (pid <= 0)
		snprintf(answer, size, "none\n");
	else if (WIFEXITED(status))
		snprintf(answer, size, "exit %d\n", WEXITSTATUS(status));
	else
		snprintf(answer, size, "signal %d\n", WTERMSIG(status));
}

static void line_serve(const char *line, char *answer, size_t size)
{
	int n;

	snprintf(answer, size, "idle\n");
	if (sscanf(line, "end %d", &n) == 1)
		snprintf(answer, size, "%d\n", child_end(n));
	else if (!strncmp(line, "kill", 4))
		snprintf(answer, size, "%d\n", child_end(-1));
	else if (sscanf(line, "wait %d", &n) == 1 && n > 0 && n < CHILDREN && child[n])
		child_wait(child[n], answer, size);
	else if (!strncmp(line, "any", 3))
		child_wait(-1, answer, size);
}

int main(int argc, char **argv)
{
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };
	int s = socket(AF_INET, SOCK_STREAM, 0), on = 1;
	char line[256], answer[64];

	at.sin_port = htons((unsigned short)atoi(argv[argc - 1]));
	setsockopt(s, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (bind(s, (struct sockaddr *)&at, sizeof(at)) || listen(s, 8))
		return 1;
	for (;;) {
		int fd = accept(s, NULL, NULL);
		ssize_t n;

		while ((n = read(fd, line, sizeof(line) - 1)) > 0) {
			line[n] = 0;
			line_serve(line, answer, sizeof(answer));
			if (write(fd, answer, strlen(answer)) < 0)
				break;
		}
		close(fd);
	}
}
