/*
 * Workers that ring an eventfd when they have done something, unless a flag says
 * that it rings already: how often they do depends on when the other thread comes.
 * What was done is the same, and goes through a pipe for a twin to say it, too.
 * A second pair of threads registers and waits for each other's descriptors with
 * pointers to what the registering thread has just filled.
 */
#include <pthread.h>
#include <stdbool.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>

#include "check.h"

#define WORKERS	3
#define JOBS	1500

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t more = PTHREAD_COND_INITIALIZER;
static int given, taken, done[JOBS], ndone;
static int rings, bell, out[2];

static void spin(unsigned n)
{
	for (volatile unsigned i = 0; i < n; i++)
		;
}

static void *work(void *arg)
{
	uint64_t one = 1;
	int job;

	for (;;) {
		pthread_mutex_lock(&mutex);
		while (taken == given && taken < JOBS)
			pthread_cond_wait(&more, &mutex);
		job = taken < JOBS ? taken++ : -1;
		pthread_mutex_unlock(&mutex);
		if (job < 0)
			return arg;
		spin((unsigned)job * 7919 % 5000);
		pthread_mutex_lock(&mutex);
		done[ndone++] = job;
		pthread_mutex_unlock(&mutex);
		if (!__atomic_exchange_n(&rings, 1, __ATOMIC_ACQ_REL))
			CHECK_EQ(write(bell, &one, sizeof(one)), sizeof(one));
	}
}

static int collect(int told)
{
	int job, back;

	pthread_mutex_lock(&mutex);
	while (told < ndone) {
		job = done[told++];
		pthread_mutex_unlock(&mutex);
		CHECK_EQ(write(out[1], &job, sizeof(job)), sizeof(job));
		CHECK_EQ(read(out[0], &back, sizeof(back)), sizeof(back));
		CHECK_EQ(back, job);
		pthread_mutex_lock(&mutex);
	}
	if (given < JOBS)
		given += given + 5 < JOBS ? 5 : JOBS - given;
	pthread_cond_broadcast(&more);
	pthread_mutex_unlock(&mutex);
	return told;
}

static void jobs(void)
{
	struct epoll_event e = { EPOLLIN, { .fd = bell } };
	int told = 0, set = epoll_create1(EPOLL_CLOEXEC);
	pthread_t id[WORKERS];
	uint64_t n;

	CHECK_EQ(epoll_ctl(set, EPOLL_CTL_ADD, bell, &e), 0);
	for (int i = 0; i < WORKERS; i++)
		CHECK_EQ(pthread_create(&id[i], NULL, work, NULL), 0);
	told = collect(told);
	while (told < JOBS) {
		CHECK_EQ(epoll_wait(set, &e, 1, -1), 1);
		CHECK_EQ(read(bell, &n, sizeof(n)), sizeof(n));
		if (__atomic_exchange_n(&rings, 0, __ATOMIC_ACQ_REL))
			told = collect(told);
	}
	for (int i = 0; i < WORKERS; i++)
		CHECK_EQ(pthread_join(id[i], NULL), 0);
	close(set);
}

/* One registers what is ready and says why in memory; the other reads it there. */
struct reason {
	int fd;
	char text[16];
};

static int watched, ready[2];

static void *registrar(void *arg)
{
	for (int i = 0; i < JOBS; i++) {
		struct reason *r = malloc(sizeof(*r));
		struct epoll_event e = { EPOLLOUT | EPOLLONESHOT, { .ptr = r } };
		char back;

		spin((unsigned)i * 104729 % 3000);
		r->fd = i;
		snprintf(r->text, sizeof(r->text), "job %d", i);
		CHECK_EQ(epoll_ctl(watched, i ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, ready[1], &e), 0);
		CHECK_EQ(read(out[0], &back, 1), 1);
	}
	return arg;
}

static void registered(void)
{
	struct epoll_event e;
	char text[16];
	pthread_t id;

	watched = epoll_create1(EPOLL_CLOEXEC);
	CHECK_EQ(pipe(ready), 0);
	CHECK_EQ(pthread_create(&id, NULL, registrar, NULL), 0);
	for (int i = 0; i < JOBS; i++) {
		struct reason *r;

		CHECK_EQ(epoll_wait(watched, &e, 1, -1), 1);
		r = e.data.ptr;
		snprintf(text, sizeof(text), "job %d", i);
		CHECK_EQ(r->fd, i);
		CHECK_EQ(strcmp(r->text, text), 0);
		free(r);
		CHECK_EQ(write(out[1], "x", 1), 1);
	}
	CHECK_EQ(pthread_join(id, NULL), 0);
}

/* With an argument: without the flag, which a twin may find otherwise. */
int main(int argc, char **argv)
{
	bell = eventfd(0, EFD_CLOEXEC);
	CHECK_EQ(pipe(out), 0);
	if (argc < 2)
		jobs();
	registered();
	return passed("bells");
}
