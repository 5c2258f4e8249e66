/*
 * Answers lines, and changes memory with each: globals, and some that it allocates.  A descriptor
 * is watched by epoll for each, too, of which mve keeps tables of its own.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

struct row {
	int lines, last;
	long seen;		/* never changed */
};

struct row table[4];

static int watched(int set)
{
	struct epoll_event want = { .events = EPOLLIN };
	int fd = dup(0);

	return fd >= 0 && !epoll_ctl(set, EPOLL_CTL_ADD, fd, &want) &&
	       !epoll_ctl(set, EPOLL_CTL_DEL, fd, NULL) && !close(fd);
}

int main(void)
{
	int set = epoll_create1(0);
	long *counts = calloc(1000, sizeof(*counts));
	char byte;

	for (long line = 0; counts && read(0, &byte, 1) == 1; line++) {
		table[line % 4].lines++;
		table[line % 4].last = (int)line;
		counts[line % 1000] += line;
		if (!watched(set))
			return 1;
		if (write(1, "line\n", 5) != 5)
			return 1;
	}
	return !counts;
}
