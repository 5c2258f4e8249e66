/*
 * A thread that opens a file is given the lowest number that is free, whatever another one
 * does meanwhile: it maps a file that is written, over and over, whose content is told to
 * followers piece by piece.  What it opens is at times put in the place of that number.
 */
#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/programs/check.h"

#define PIECES	40
#define PIECE	65536
#define MAPS	200
#define OPENS	3000

static int ready[2];

static void *opens(void *arg)
{
	int lowest = open("/dev/null", O_RDONLY), fd;
	char byte = 0;

	(void)arg;
	CHECK(lowest >= 0 && write(ready[1], &byte, 1) == 1);
	CHECK_EQ(close(lowest), 0);
	for (int i = 0; i < OPENS; i++) {
		fd = open("/dev/null", O_RDONLY);
		CHECK_EQ(fd, lowest);
		CHECK_EQ(close(fd), 0);
		CHECK_EQ(dup2(0, lowest), lowest);
		CHECK_EQ(close(lowest), 0);
	}
	return NULL;
}

int main(void)
{
	int fd = open("sparse", O_RDWR | O_CREAT | O_TRUNC, 0600);
	pthread_t thread;
	char byte;

	CHECK(fd >= 0 && pipe(ready) == 0);
	for (int i = 0; i < PIECES; i++)
		CHECK_EQ(pwrite(fd, "piece", 5, i * 2 * PIECE), 5);
	CHECK_EQ(pthread_create(&thread, NULL, opens, NULL), 0);
	CHECK_EQ(read(ready[0], &byte, 1), 1);
	for (int i = 0; i < MAPS; i++) {
		char *at = mmap(NULL, PIECES * 2 * PIECE, PROT_READ, MAP_SHARED, fd, 0);

		CHECK(at != MAP_FAILED);
		for (int k = 0; k < PIECES; k++)
			CHECK(!memcmp(at + k * 2 * PIECE, "piece", 6));
		CHECK_EQ(munmap(at, PIECES * 2 * PIECE), 0);
	}
	pthread_join(thread, NULL);
	return passed("lowest");
}
