/*
 * Threads that make, attach and remove System V segments at the same time: each finds in its
 * own what it has written there, also when it attaches it again.
 */
#include <pthread.h>
#include <sys/shm.h>

#include "tests/programs/check.h"

#define THREADS	6
#define ROUNDS	150
#define SIZE	4096

static void round_of(long who, int round)
{
	int id = shmget(IPC_PRIVATE, SIZE, IPC_CREAT | 0600);
	char *at = shmat(id, NULL, 0), text[64];

	CHECK(id >= 0 && at != (void *)-1);
	CHECK(!*at);
	snprintf(text, sizeof(text), "thread %ld, round %d", who, round);
	strcpy(at, text);
	CHECK(!shmdt(at));
	at = shmat(id, NULL, 0);
	CHECK(at != (void *)-1);
	CHECK(!strcmp(at, text));
	CHECK(!shmdt(at) && !shmctl(id, IPC_RMID, NULL));
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
	return passed("segments_threads");
}
