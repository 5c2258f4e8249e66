/*
 * Threads make locks in memory that is used again, each time by whoever comes first: a follower's
 * threads have their locks in other places than the leader's.  Each takes its own only, so what
 * comes of that is the same in every run.
 */
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include "check.h"

#define THREADS	6
#define ROUNDS	300
#define KNOWN	6	/* times that a lock is taken before another is in its place */
#define SLOTS	64

static struct slot {
	_Alignas(64) sem_t sem;
	int used;
} slots[SLOTS];
static unsigned next;

static struct slot *slot_take(unsigned value)
{
	struct slot *s;

	do
		s = &slots[__atomic_fetch_add(&next, 1, __ATOMIC_SEQ_CST) % SLOTS];
	while (__atomic_exchange_n(&s->used, 1, __ATOMIC_SEQ_CST));
	CHECK_EQ(sem_init(&s->sem, 0, value), 0);
	return s;
}

static void slot_drop(struct slot *s)
{
	CHECK_EQ(sem_destroy(&s->sem), 0);
	__atomic_store_n(&s->used, 0, __ATOMIC_SEQ_CST);
}

static void *work(void *arg)
{
	for (int i = 0; i < ROUNDS; i++) {
		struct slot *taken = slot_take(0), *free;

		for (int n = 0; n < KNOWN; n++) {
			CHECK_EQ(sem_trywait(&taken->sem), -1);
			CHECK_EQ(errno, EAGAIN);
		}
		free = slot_take(1);
		CHECK_EQ(sem_trywait(&free->sem), 0);
		slot_drop(free);
		slot_drop(taken);
	}
	return arg;
}

int main(void)
{
	pthread_t thread[THREADS];

	for (int i = 0; i < THREADS; i++)
		CHECK_EQ(pthread_create(&thread[i], NULL, work, NULL), 0);
	for (int i = 0; i < THREADS; i++)
		CHECK_EQ(pthread_join(thread[i], NULL), 0);
	return passed("relocked");
}
