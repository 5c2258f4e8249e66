/*
 * A daemon that takes a while to end: one page of a file is mapped so often that the kernel
 * works for some time to forget that, when the process has no memory any more.  It says its
 * pid, and ends by SIGUSR1.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define SIZE	(2ul << 20)
#define TIMES	8000

static void leave(int sig)
{
	_exit(0);
}

static int maps_make(void)
{
	int fd = memfd_create("leaving", 0);

	if (fd < 0 || ftruncate(fd, SIZE))
		return 0;
	for (int i = 0; i < TIMES; i++)
		if (mmap(NULL, SIZE, i % 2 ? PROT_READ : PROT_READ | PROT_WRITE,
			 MAP_SHARED | MAP_POPULATE, fd, 0) == MAP_FAILED)
			return 0;
	return 1;
}

int main(int argc, char **argv)
{
	FILE *out;

	if (daemon(1, 1))
		return 1;
	signal(SIGUSR1, leave);
	out = fopen(argv[1], "w");
	if (!out || !maps_make())
		return 1;
	fprintf(out, "%d\n", getpid());
	fclose(out);
	for (;;)
		pause();
}
