/*
 * Threads that map what they have just written, each into a file of its own, at the same time:
 * each finds its own bytes there.
 */
#include <pthread.h>
#include <sys/mman.h>

#include "tests/programs/check.h"

#define THREADS	6
#define ROUNDS	250
#define SIZE	4096

static void round_of(long who, int round)
{
	int fd = memfd_create("mine", 0);
	char text[SIZE] = "", *at;

	snprintf(text, sizeof(text), "thread %ld, round %d", who, round);
	CHECK(fd >= 0 && write(fd, text, SIZE) == SIZE);
	at = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	CHECK(at != MAP_FAILED);
	CHECK(!strcmp(at, text));
	CHECK(pwrite(fd, "changed", 7, SIZE / 2) == 7);
	CHECK(!memcmp(at + SIZE / 2, "changed", 7));
	CHECK(!munmap(at, SIZE) && !close(fd));
}

static void *work(void *who)
{
	for (int i = 0; i < ROUNDS; i++)
		round_of((long)who, i);
	return NULL;
}

int main(void)
{
	pthread_t thread[THREADS];

	for (long i = 0; i < THREADS; i++)
		CHECK(!pthread_create(&thread[i], NULL, work, (void *)i));
	for (int i = 0; i < THREADS; i++)
		CHECK(!pthread_join(thread[i], NULL));
	return passed("mirrors_threads");
}
