/*
 * A server whose child is killed as soon as it is there.  Of one client: "make" forks one that
 * sleeps, "wait" says who has ended, and how.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lines.h"

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
	return lines_serve(argv[argc - 1], serve);
}
