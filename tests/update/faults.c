/*
 * A server for tests/update/faults.py: a counter behind a lock, a thread that works, an epoll
 * loop.  What is wrong in a build is said when it is compiled.
 */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "engine/update/update.h"

struct state {
	long asked;
#ifdef NEW
	long extra;
#endif
	char *note;
};

static struct state *state;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int aborted, before, after;
static volatile int busy;

static void on_abort(void) { aborted++; }
static void on_before(void) { before++; }
static void on_after(void) { after++; }

/* Comes to its point now and then; LOCKED: with the lock; NEVER: not at all. */
static void *work(void *arg)
{
	(void)arg;
	for (;;) {
#ifdef LOCKED
		pthread_mutex_lock(&lock);
		mve_update_point("work");
		pthread_mutex_unlock(&lock);
#elif defined(NEVER)
		while (busy)
			usleep(1000);
		mve_update_point("work");
#else
		pthread_mutex_lock(&lock);
		state->asked += 0;
		pthread_mutex_unlock(&lock);
		mve_update_point("work");
#endif
		usleep(1000);
	}
	return NULL;
}

static void answer(const char *line)
{
	pthread_mutex_lock(&lock);
	state->asked++;
	if (line[0] == 'b')
		busy = 1;
	if (line[0] == 'f')
		busy = 0;
#ifdef NEW
	printf("new %ld %ld %s aborted %d before %d after %d\n", state->asked, state->extra,
		state->note, aborted, before, after);
#else
	printf("old %ld %s aborted %d before %d after %d\n", state->asked, state->note, aborted,
		before, after);
#endif
	fflush(stdout);
	pthread_mutex_unlock(&lock);
}

static void begin(void)
{
	pthread_t thread;

	state = calloc(1, sizeof(*state));
	state->note = strdup("note");
	pthread_create(&thread, NULL, work, NULL);
	printf("ready on port 0\n");
	fflush(stdout);
}

int main(void)
{
	struct epoll_event e = { .events = EPOLLIN };
	int set;

	mve_update_before(on_before);
	mve_update_after(on_after);
	mve_update_abort(on_abort);
	mve_update_epoll(true);
	if (!mve_local(set)) {
		set = epoll_create1(0);
		epoll_ctl(set, EPOLL_CTL_ADD, 0, &e);
	}
	if (!mve_updating())
		begin();
	for (;;) {
		char line[16];
		int n;

		n = epoll_wait(set, &e, 1, -1);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 || read(0, line, 1) <= 0)
			return 0;
		answer(line);
	}
}
