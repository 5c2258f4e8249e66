/*
 * A process forks while another of its threads brings code that nobody has seen: the inside
 * arms all threads then, one after the other.  The child, which has none of them, does the
 * same, and must not wait for them.
 */
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>

#include "check.h"

#define THREADS		60
#define TRIES		6
#define CHILD_S		10

static atomic_int begun, over;
static pthread_barrier_t all;

static void code_map(void)
{
	char *at = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
			MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	CHECK(at != MAP_FAILED);
	*at = (char)0xc3;
	((void (*)(void))at)();
}

/* Its child does the same: a signal ends one that hangs. */
static void forks_make(void)
{
	pid_t pid = fork();

	CHECK(pid >= 0);
	if (!pid) {
		alarm(CHILD_S);
		code_map();
		_exit(0);
	}
	CHECK_EQ(status_of(pid), 0);
}

static void *forks(void *arg)
{
	(void)arg;
	pthread_barrier_wait(&all);
	while (!begun)
		;
	for (int i = 0; i < 3; i++)
		forks_make();
	return NULL;
}

static void *works(void *arg)
{
	(void)arg;
	pthread_barrier_wait(&all);
	while (!over)
		poll(NULL, 0, 1);
	return NULL;
}

/* A process of its own: it has no code unseen only once. */
static void try(void)
{
	pthread_t thread[THREADS + 1];

	CHECK_EQ(pthread_barrier_init(&all, NULL, THREADS + 2), 0);
	CHECK_EQ(pthread_create(&thread[0], NULL, forks, NULL), 0);
	for (int i = 1; i <= THREADS; i++)
		CHECK_EQ(pthread_create(&thread[i], NULL, works, NULL), 0);
	pthread_barrier_wait(&all);
	begun = 1;
	code_map();
	CHECK_EQ(pthread_join(thread[0], NULL), 0);
	over = 1;
	for (int i = 1; i <= THREADS; i++)
		CHECK_EQ(pthread_join(thread[i], NULL), 0);
}

int main(void)
{
	for (int i = 0; i < TRIES; i++)
		IN_CHILD(try);
	return passed("fork_armed");
}
