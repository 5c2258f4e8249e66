/*
 * A program that differs from itself: what its child counts in memory is written down (several,
 * one shared page), or a thread of its own (threads).  Else which build it is (BUILT), when it is
 * told to.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile unsigned long *count;

static void *counts(void *nothing)
{
	for (;;)
		++*count;
	return nothing;
}

static pid_t child_make(void)
{
	pid_t pid = fork();

	if (!pid)
		counts(NULL);
	return pid;
}

int main(int argc, char **argv)
{
	const char *how = argc > 1 ? argv[1] : "";
	pid_t child = 0;
	pthread_t t;
	char text[64];

	count = mmap(NULL, sizeof(*count), PROT_READ | PROT_WRITE,
		     (strcmp(how, "several") ? MAP_PRIVATE : MAP_SHARED) | MAP_ANONYMOUS, -1, 0);
	if (!strcmp(how, "several"))
		child = child_make();
	else if (!strcmp(how, "threads"))
		pthread_create(&t, NULL, counts, NULL);
	else
		*count = BUILT + (unsigned long)read(STDIN_FILENO, text, 1);
	usleep(50000);
	snprintf(text, sizeof(text), "%lu\n", *count);
	if (write(STDOUT_FILENO, text, strlen(text)) < 0)
		abort();
	if (child > 0 && !kill(child, SIGKILL))
		waitpid(child, NULL, 0);
	return 0;
}
