/*
 * A server whose child is killed as soon as it is there.  Of one client: "make" forks one that
 * sleeps, "wait" says who has ended, and how.
 */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static int child_make(void)
{
	pid_t pid = fork();

	while (!pid)
		pause();
	return pid;
}

static void serve(FILE *peer)
{
	char line[100];

	while (fgets(line, sizeof(line), peer)) {
		int status = 0;

		if (!strcmp(line, "make\n"))
			fprintf(peer, "%d\n", child_make());
		else
			fprintf(peer, "%d ", waitpid(-1, &status, 0)),
			fprintf(peer, "%d\n", status);
		fflush(peer);
	}
}

int main(int argc, char **argv)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) },
				 .sin_port = htons((uint16_t)atoi(argv[argc - 1])) };
	int s = socket(AF_INET, SOCK_STREAM, 0), one = 1;

	setsockopt(s, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(s, (void *)&a, sizeof(a)) || listen(s, 9))
		return 1;
	for (;;) {
		FILE *peer = fdopen(accept(s, NULL, NULL), "r+");

		if (!peer)
			return 1;
		serve(peer);
		fclose(peer);
	}
}
