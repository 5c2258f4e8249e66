/*
 * A server that is asked by lines.  "fork": makes a child that waits for the next line and ends
 * with status 7; "wait": waits for it by its id, and says how it ended; "thread": makes a thread
 * that waits likewise; "join": what it saw of itself, and whether a signal found it.
 */
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lines.h"

static int go[2], pid, tid, heard_by;
static pthread_t thread;
static sem_t begun;		/* agreed by plain memory a twin would differ from its leader */

static void hear(int sig)
{
	(void)sig;
	heard_by = (int)syscall(SYS_gettid);
}

static void wait_for_go(void)
{
	char byte;

	while (read(go[0], &byte, 1) < 0)
		;
}

static void *work(void *arg)
{
	(void)arg;
	tid = (int)syscall(SYS_gettid);
	pid = getpid();
	sem_post(&begun);
	wait_for_go();
	return NULL;
}

static void say_wait(FILE *peer)
{
	int status = 0, got = waitpid(pid, &status, 0);

	fprintf(peer, "%s, status %d\n", got == pid ? "its child" : strerror(got < 0 ? errno : 0),
		WEXITSTATUS(status));
}

static void say_join(FILE *peer)
{
	pthread_kill(thread, SIGUSR1);
	usleep(10000);
	if (write(go[1], "g", 1) == 1)
		pthread_join(thread, NULL);
	fprintf(peer, "%s, %s\n", pid == getpid() ? "its process" : "another process",
		heard_by == tid ? "its signal" : "another's signal");
}

static void child(void)
{
	wait_for_go();
	_exit(7);
}

static void serve(FILE *peer)
{
	char line[100];

	while (fgets(line, sizeof(line), peer)) {
		if (!strcmp(line, "fork\n")) {
			pid = fork();
			if (!pid)
				child();
			fprintf(peer, "made\n");
		} else if (!strcmp(line, "wait\n")) {
			if (write(go[1], "g", 1) == 1)
				say_wait(peer);
		} else if (!strcmp(line, "thread\n")) {
			pthread_create(&thread, NULL, work, NULL);
			sem_wait(&begun);
			fprintf(peer, "made\n");
		} else {
			say_join(peer);
		}
		fflush(peer);
	}
}

int main(int argc, char **argv)
{
	signal(SIGUSR1, hear);
	if (pipe(go) || sem_init(&begun, 0, 0))
		return 1;
	return lines_serve(argv[argc - 1], serve);
}
