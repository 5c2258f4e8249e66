/*
 * Threads that agree by bare atomics, a spin lock of their own and a flag: who takes which job
 * is written to /dev/null, which a follower compares.  Without --one-at-a-time it would differ
 * soon.  They are made and joined again and again, sleep by time and in conditions, and fork;
 * and one stands in a call of which no row says that it may wait, while the others work.
 */
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "check.h"

#define ROUNDS	20
#define WORKERS	4
#define JOBS	60
#define FIFO	"one_at_a_time.fifo"

static atomic_flag spin = ATOMIC_FLAG_INIT;
static atomic_int done, left;
static int job[JOBS], first, last, null;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t came = PTHREAD_COND_INITIALIZER;

static void lock(void)
{
	while (atomic_flag_test_and_set(&spin))
		sched_yield();
}

static void say(const char *what, long who, int which)
{
	char line[64];
	int n = snprintf(line, sizeof(line), "%s %ld %d\n", what, who, which);

	CHECK(write(null, line, (size_t)n) == n);
}

static void *work(void *arg)
{
	long who = (long)arg;

	while (!atomic_load(&done) || atomic_load(&left)) {
		int got = -1;

		lock();
		if (first < last)
			got = job[first++];
		atomic_flag_clear(&spin);
		if (got < 0) {
			usleep(50);
			continue;
		}
		say("job", who, got);
		atomic_fetch_sub(&left, 1);
		if (got % 7)
			continue;
		pthread_mutex_lock(&mutex);
		pthread_cond_broadcast(&came);
		pthread_mutex_unlock(&mutex);
	}
	return NULL;
}

static void round_of(int n)
{
	struct timespec limit;
	pthread_t t[WORKERS];
	pid_t child;

	first = last = 0;
	atomic_store(&done, 0);
	for (long i = 0; i < WORKERS; i++)
		CHECK(!pthread_create(&t[i], NULL, work, (void *)i));
	for (int i = 0; i < JOBS; i++) {
		atomic_fetch_add(&left, 1);
		lock();
		job[last++] = i;
		atomic_flag_clear(&spin);
		if (i % 9 == 0)
			usleep(100);
	}
	clock_gettime(CLOCK_REALTIME, &limit);
	limit.tv_nsec = (limit.tv_nsec + 1000000) % 1000000000;
	pthread_mutex_lock(&mutex);
	say("came", pthread_cond_timedwait(&came, &mutex, &limit), n);
	pthread_mutex_unlock(&mutex);
	child = fork();
	if (!child)
		_exit(first == last);
	say("left", atomic_load(&left), n);
	CHECK(waitpid(child, NULL, 0) == child);
	atomic_store(&done, 1);
	for (int i = 0; i < WORKERS; i++)
		CHECK(!pthread_join(t[i], NULL));
}

static void *stand(void *arg)
{
	int fd = open(FIFO, O_RDONLY);

	CHECK(fd >= 0);
	say("stood", (long)arg, close(fd));
	return NULL;
}

static void one_stands(void)
{
	pthread_t t;
	int fd;

	CHECK(!mkfifo(FIFO, 0600));
	CHECK(!pthread_create(&t, NULL, stand, NULL));
	round_of(ROUNDS);
	fd = open(FIFO, O_WRONLY);
	CHECK(fd >= 0 && !pthread_join(t, NULL));
	CHECK(!close(fd) && !unlink(FIFO));
}

/* With a file's name: goes on until that is there. */
int main(int argc, char **argv)
{
	null = open("/dev/null", O_WRONLY);
	CHECK(null >= 0);
	for (int n = 0; n < ROUNDS; n++)
		round_of(n);
	while (argc > 1 && access(argv[1], F_OK))
		round_of(ROUNDS);
	for (int n = 0; argc > 1 && n < ROUNDS; n++)
		round_of(n);
	one_stands();
	return passed("one_at_a_time");
}
