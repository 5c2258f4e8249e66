/*
 * Threads that tell more than a small ring holds, in an order that they have in common:
 * some take locks as fast as they can, two read what fills most of a chunk, and one
 * sleeps, looks and sleeps again: behind its sleep stands all that the others did before.
 * A read that is half told when the ring is full is waited for by everybody.
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <unistd.h>

#include "check.h"

#define LOCKERS	3
#define READERS	2
#define ROUNDS	40000
#define SIZE	24000

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static unsigned long counted;
static bool over;

static bool count(void)
{
	bool more;

	pthread_mutex_lock(&mutex);
	counted++;
	more = !over;
	pthread_mutex_unlock(&mutex);
	return more;
}

static void *lock_often(void *unused)
{
	(void)unused;
	for (int i = 0; i < ROUNDS; i++)
		count();
	return NULL;
}

static void *read_much(void *unused)
{
	static char bytes[READERS][SIZE];
	static int readers;
	char *mine = bytes[__atomic_fetch_add(&readers, 1, __ATOMIC_RELAXED)];
	int fd = open("/dev/zero", O_RDONLY);

	(void)unused;
	CHECK(fd >= 0);
	while (count())
		CHECK(read(fd, mine, SIZE) == SIZE);
	return NULL;
}

static void *sleep_often(void *unused)
{
	(void)unused;
	while (count())
		usleep(100);
	return NULL;
}

int main(void)
{
	pthread_t locker[LOCKERS], reader[READERS], sleeper;

	for (int i = 0; i < READERS; i++)
		CHECK(!pthread_create(&reader[i], NULL, read_much, NULL));
	CHECK(!pthread_create(&sleeper, NULL, sleep_often, NULL));
	for (int i = 0; i < LOCKERS; i++)
		CHECK(!pthread_create(&locker[i], NULL, lock_often, NULL));
	for (int i = 0; i < LOCKERS; i++)
		CHECK(!pthread_join(locker[i], NULL));
	pthread_mutex_lock(&mutex);
	over = true;
	pthread_mutex_unlock(&mutex);
	for (int i = 0; i < READERS; i++)
		CHECK(!pthread_join(reader[i], NULL));
	CHECK(!pthread_join(sleeper, NULL));
	return passed("full_ring");
}
