/* A server of many descriptors, begun where few may be open: it says so, again and again. */
#include <fcntl.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

#define MANY	300

int main(void)
{
	struct rlimit few, more;
	int fd[MANY], ok;
	char byte;

	getrlimit(RLIMIT_NOFILE, &few);
	more = (struct rlimit){ few.rlim_max, few.rlim_max };
	setrlimit(RLIMIT_NOFILE, &more);
	for (int i = 0; i < MANY; i++)
		fd[i] = open("/dev/zero", O_RDONLY);
	for (;;) {
		ok = 0;
		for (int i = 0; i < MANY; i++)
			ok += read(fd[i], &byte, 1) == 1;
		dprintf(1, "%lu %d\n", (unsigned long)few.rlim_cur, ok);
		usleep(20000);
	}
}
