/*
 * The order in which threads take locks.  Each thread writes its letter into a
 * log under the lock; how long it takes in between comes from the processor's
 * clock, so the log is another one in every run.  At the end it goes to a file:
 * a follower whose threads came in another order would write something else.
 */
#include <pthread.h>
#include <semaphore.h>
#include <x86intrin.h>
#include "check.h"

#define THREADS	4
#define ROUNDS	300
#define LOG_MAX	(1 << 20)
#define FAR_MS	600000	/* nobody waits for so long, however busy the machine is */

static char log_text[LOG_MAX];
static unsigned log_length;

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_spinlock_t spin;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static pthread_barrier_t barrier;
static sem_t sem;

static void note(char c)
{
	unsigned at = log_length;

	CHECK(at < LOG_MAX);
	log_text[at] = c;
	log_length = at + 1;
}

/* For a while that nobody knows. */
static void dawdle(void)
{
	unsigned long n = __rdtsc() >> 4 & 1023;

	if (n < 16)
		sched_yield();
	while (n--)
		_mm_pause();
}

static struct timespec in_ms(clockid_t clock, long ms)
{
	struct timespec t;

	CHECK_EQ(clock_gettime(clock, &t), 0);
	t.tv_nsec += ms * 1000000;
	t.tv_sec += t.tv_nsec / 1000000000;
	t.tv_nsec %= 1000000000;
	return t;
}

/* --- one round of each kind ---------------------------------------------------- */

static void round_mutex(char who, int i)
{
	(void)i;
	CHECK_EQ(pthread_mutex_lock(&mutex), 0);
	note(who);
	dawdle();
	note(who);
	CHECK_EQ(pthread_mutex_unlock(&mutex), 0);
}

static void round_try(char who, int i)
{
	int result, misses = 0;

	(void)i;
	while ((result = pthread_mutex_trylock(&mutex)) == EBUSY) {
		misses++;
		sched_yield();
	}
	CHECK_EQ(result, 0);
	note(who);
	note((char)('0' + misses % 10));
	dawdle();
	CHECK_EQ(pthread_mutex_unlock(&mutex), 0);
}

static void round_timed(char who, int i)
{
	struct timespec at = in_ms(i % 2 ? CLOCK_MONOTONIC : CLOCK_REALTIME, i % 8 ? 100 : 0);
	int result = i % 2 ? pthread_mutex_clocklock(&mutex, CLOCK_MONOTONIC, &at)
			   : pthread_mutex_timedlock(&mutex, &at);

	if (result == ETIMEDOUT) {
		CHECK_EQ(pthread_mutex_lock(&mutex), 0);
		note('-');
	} else {
		CHECK_EQ(result, 0);
	}
	note(who);
	dawdle();
	CHECK_EQ(pthread_mutex_unlock(&mutex), 0);
}

static int rwlock_take(int i, bool write)
{
	struct timespec real = in_ms(CLOCK_REALTIME, FAR_MS), mono = in_ms(CLOCK_MONOTONIC, FAR_MS);

	switch (i % 4) {
	case 0:
		return write ? pthread_rwlock_wrlock(&rwlock) : pthread_rwlock_rdlock(&rwlock);
	case 1:
		return write ? pthread_rwlock_timedwrlock(&rwlock, &real)
			     : pthread_rwlock_timedrdlock(&rwlock, &real);
	case 2:
		return write ? pthread_rwlock_clockwrlock(&rwlock, CLOCK_MONOTONIC, &mono)
			     : pthread_rwlock_clockrdlock(&rwlock, CLOCK_MONOTONIC, &mono);
	default:
		return write ? pthread_rwlock_trywrlock(&rwlock)
			     : pthread_rwlock_tryrdlock(&rwlock);
	}
}

static void round_rwlock(char who, int i)
{
	bool write = i % 3 == 0;
	unsigned seen;

	while (rwlock_take(i, write) != 0)
		;
	seen = log_length;
	if (write)
		note(who);
	dawdle();
	CHECK_EQ(pthread_rwlock_unlock(&rwlock), 0);
	/* What a reader saw depends on the order, too. */
	CHECK_EQ(pthread_mutex_lock(&mutex), 0);
	CHECK_EQ(pthread_rwlock_wrlock(&rwlock), 0);
	note((char)('0' + seen % 10));
	CHECK_EQ(pthread_rwlock_unlock(&rwlock), 0);
	CHECK_EQ(pthread_mutex_unlock(&mutex), 0);
}

static void round_spin(char who, int i)
{
	if (i % 2)
		CHECK_EQ(pthread_spin_lock(&spin), 0);
	else
		while (pthread_spin_trylock(&spin) != 0)
			sched_yield();
	note(who);
	CHECK_EQ(pthread_spin_unlock(&spin), 0);
	dawdle();
}

static void round_sem(char who, int i)
{
	struct timespec real = in_ms(CLOCK_REALTIME, FAR_MS), mono = in_ms(CLOCK_MONOTONIC, FAR_MS);
	int result = -1;

	switch (i % 4) {
	case 0:
		result = sem_wait(&sem);
		break;
	case 1:
		result = sem_timedwait(&sem, &real);
		break;
	case 2:
		result = sem_clockwait(&sem, CLOCK_MONOTONIC, &mono);
		break;
	default:
		while ((result = sem_trywait(&sem)) != 0) {
			CHECK_EQ(errno, EAGAIN);
			sched_yield();
		}
	}
	CHECK_EQ(result, 0);
	note(who);
	dawdle();
	CHECK_EQ(sem_post(&sem), 0);
}

/* Even threads make, odd ones take; some waits run out of time. */
static int stock;

static void cond_wait(int i)
{
	struct timespec real = in_ms(CLOCK_REALTIME, 2), mono = in_ms(CLOCK_MONOTONIC, 2);
	int result;

	if (i % 3 == 0)
		result = pthread_cond_wait(&cond, &mutex);
	else if (i % 3 == 1)
		result = pthread_cond_timedwait(&cond, &mutex, &real);
	else
		result = pthread_cond_clockwait(&cond, &mutex, CLOCK_MONOTONIC, &mono);
	CHECK(result == 0 || result == ETIMEDOUT);
	note(result ? 't' : 'w');
}

static void round_cond(char who, int i)
{
	CHECK_EQ(pthread_mutex_lock(&mutex), 0);
	if ((who - 'a') % 2 == 0) {
		stock++;
		note(who);
		if (i % 5)
			CHECK_EQ(pthread_cond_signal(&cond), 0);
		else
			CHECK_EQ(pthread_cond_broadcast(&cond), 0);
	} else {
		while (!stock)
			cond_wait(i);
		stock--;
		note(who);
	}
	CHECK_EQ(pthread_mutex_unlock(&mutex), 0);
	dawdle();
}

static void round_barrier(char who, int i)
{
	int result;

	if (i >= ROUNDS / 4)
		return;
	dawdle();
	result = pthread_barrier_wait(&barrier);
	CHECK(result == 0 || result == PTHREAD_BARRIER_SERIAL_THREAD);
	if (result)
		note(who);
	pthread_barrier_wait(&barrier);
}

/* --- what runs once ------------------------------------------------------------- */

static pthread_once_t once[ROUNDS];
static char ran[ROUNDS];
static __thread char self;
static __thread int turn;

static void run_once(void)
{
	dawdle();
	ran[turn] = self;
	/* The thread that runs it may make calls: they are its own. */
	CHECK_EQ(close(-1), -1);
}

static void round_once(char who, int i)
{
	self = who;
	turn = i;
	dawdle();
	CHECK_EQ(pthread_once(&once[i], run_once), 0);
	CHECK(ran[i]);
}

/* --- errors that the functions tell ----------------------------------------------- */

static pthread_mutex_t checked;

static void round_errors(char who, int i)
{
	struct timespec past = { 0, 0 };
	int value;

	(void)i;
	CHECK_EQ(pthread_mutex_lock(&checked), 0);
	CHECK_EQ(pthread_mutex_lock(&checked), EDEADLK);
	CHECK_EQ(pthread_mutex_trylock(&checked), EBUSY);
	CHECK_EQ(pthread_mutex_timedlock(&checked, &past), EDEADLK);
	CHECK_EQ(pthread_cond_timedwait(&cond, &checked, &past), ETIMEDOUT);
	CHECK_EQ(sem_getvalue(&sem, &value), 0);
	CHECK_EQ(value, 1);
	CHECK_EQ(sem_wait(&sem), 0);
	CHECK_FAILS(sem_trywait(&sem), EAGAIN);
	CHECK_FAILS(sem_timedwait(&sem, &past), ETIMEDOUT);
	CHECK_EQ(sem_post(&sem), 0);
	note(who);
	CHECK_EQ(pthread_mutex_unlock(&checked), 0);
	CHECK_EQ(pthread_cond_wait(&cond, &checked), EPERM);
}

/* --- all of it ----------------------------------------------------------------------- */

static const struct kind {
	const char *name;
	void (*round)(char who, int i);
} kinds[] = {
	{ "mutex", round_mutex }, { "try", round_try }, { "timed", round_timed },
	{ "rwlock", round_rwlock }, { "spin", round_spin }, { "sem", round_sem },
	{ "cond", round_cond }, { "barrier", round_barrier }, { "once", round_once },
	{ "errors", round_errors },
};

static const struct kind *kind;

static void *run(void *arg)
{
	char who = (char)('a' + (long)arg);

	for (int i = 0; i < ROUNDS; i++)
		kind->round(who, i);
	return NULL;
}

static void log_write(void)
{
	int fd = open("locks.log", O_WRONLY | O_CREAT | O_APPEND, 0600);

	CHECK(fd >= 0);
	if (kind->round == round_once)
		CHECK_EQ(write(fd, ran, sizeof(ran)), sizeof(ran));
	CHECK_EQ(write(fd, log_text, log_length), log_length);
	close(fd);
	log_length = 0;
}

static void run_kind(const struct kind *k)
{
	pthread_t thread[THREADS];

	kind = k;
	for (long i = 0; i < THREADS; i++)
		CHECK_EQ(pthread_create(&thread[i], NULL, run, (void *)i), 0);
	for (int i = 0; i < THREADS; i++)
		CHECK_EQ(pthread_join(thread[i], NULL), 0);
	log_write();
}

int main(int argc, char **argv)
{
	pthread_mutexattr_t attr;

	pthread_mutexattr_init(&attr);
	pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_ERRORCHECK);
	pthread_mutex_init(&checked, &attr);
	pthread_spin_init(&spin, PTHREAD_PROCESS_PRIVATE);
	pthread_barrier_init(&barrier, NULL, THREADS);
	sem_init(&sem, 0, 1);
	for (unsigned i = 0; argc < 2 && i < COUNT(kinds); i++)
		run_kind(&kinds[i]);
	for (int a = 1; a < argc; a++)
		for (unsigned i = 0; i < COUNT(kinds); i++)
			if (!strcmp(argv[a], kinds[i].name))
				run_kind(&kinds[i]);
	return passed("locks");
}
