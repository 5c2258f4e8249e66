/*
 * Threads that map memory at the same time, and say through a pipe where it lies: a twin
 * must say the same.  None ends before the others have their heaps, which would be anybody's
 * then; and nothing is freed that malloc has mapped, for that changes a bound for all.
 */
#include <pthread.h>
#include <sys/mman.h>
#include "check.h"

#define THREADS	6
#define ROUNDS	60

struct one {
	pthread_t id;
	int pipe_fd[2];
	unsigned number;
};

static pthread_barrier_t end;

static void tell(const struct one *o, const void *p)
{
	const void *back;

	CHECK_EQ(write(o->pipe_fd[1], &p, sizeof(p)), sizeof(p));
	CHECK_EQ(read(o->pipe_fd[0], &back, sizeof(back)), sizeof(back));
	CHECK_EQ(back, p);
}

static void *work(void *arg)
{
	const struct one *o = arg;
	char *kept = NULL;

	for (unsigned i = 0; i < ROUNDS; i++) {
		size_t n = (i * 37 + o->number * 11) % 50 * 8192 + 100;
		char *small = malloc(200 + i), *large = malloc(n / 8);
		char *own = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		CHECK(own != MAP_FAILED);
		own[n - 1] = large[n / 8 - 1] = 1;
		tell(o, small);
		tell(o, large);
		tell(o, own);
		free(large);
		free(kept);
		kept = small;
		if (i % 3)
			CHECK_EQ(munmap(own, n), 0);
		if (i % 8 == 0)
			usleep(o->number * 100);
	}
	pthread_barrier_wait(&end);
	return NULL;
}

int main(void)
{
	struct one all[THREADS];

	CHECK_EQ(pthread_barrier_init(&end, NULL, THREADS), 0);
	for (unsigned i = 0; i < THREADS; i++) {
		all[i].number = i;
		CHECK_EQ(pipe(all[i].pipe_fd), 0);
		CHECK_EQ(pthread_create(&all[i].id, NULL, work, &all[i]), 0);
	}
	for (unsigned i = 0; i < THREADS; i++)
		CHECK_EQ(pthread_join(all[i].id, NULL), 0);
	return passed("addresses_beside");
}
