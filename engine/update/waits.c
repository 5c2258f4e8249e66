/*
 * Waits of libc's that may be update points: epoll_wait(), and those for conditions.
 *
 * The server's calls come here, and go on to libc's own.  A thread that was woken only to come
 * to its point waits in epoll_wait() once more, as it does in the new build; from a condition it
 * returns, in both.
 */
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <sys/epoll.h>

#include "engine/update/points.h"
#include "engine/update/update.h"

static bool epolls, conditions;	/* nothing hangs on their order */

static bool is_on(const bool *flag)
{
	return __atomic_load_n(flag, __ATOMIC_RELAXED);
}

void mve_update_epoll(bool on)
{
	__atomic_store_n(&epolls, on, __ATOMIC_RELAXED);
}

void mve_update_conditions(bool on)
{
	__atomic_store_n(&conditions, on, __ATOMIC_RELAXED);
}

int epoll_wait(int fd, struct epoll_event *events, int most, int timeout)
{
	int n;

	do {
		if (is_on(&epolls))
			mve_update_point("epoll_wait");
		n = epoll_pwait(fd, events, most, timeout, NULL);
	} while (n < 0 && errno == EINTR && is_on(&epolls) && points_are_asked());
	return n;
}

/* --- conditions ---------------------------------------------------------------- */

typedef int (*waiter)(pthread_cond_t *, pthread_mutex_t *, const struct timespec *);

/* libc has an older one of the same name, for programs of that time. */
static waiter real(waiter *known, const char *name)
{
	waiter found = __atomic_load_n(known, __ATOMIC_RELAXED);

	if (!found) {
		found = (waiter)dlvsym(RTLD_NEXT, name, "GLIBC_2.3.2");
		__atomic_store_n(known, found, __ATOMIC_RELAXED);
	}
	return found;
}

/* Its mutex is free while it stands: others may need it to come to theirs. */
static int wait_for(waiter wait, const char *name, pthread_cond_t *condition,
	pthread_mutex_t *mutex, const struct timespec *until)
{
	int err;

	if (is_on(&conditions) && points_concern_me()) {
		pthread_mutex_unlock(mutex);
		mve_update_point(name);
		return pthread_mutex_lock(mutex);
	}
	points_wait(is_on(&conditions) ? condition : NULL);
	err = wait(condition, mutex, until);
	points_wait(NULL);
	return err;
}

int pthread_cond_wait(pthread_cond_t *condition, pthread_mutex_t *mutex)
{
	static waiter libcs;
	static const char name[] = "pthread_cond_wait";

	return wait_for(real(&libcs, name), name, condition, mutex, NULL);
}

int pthread_cond_timedwait(pthread_cond_t *condition, pthread_mutex_t *mutex,
	const struct timespec *until)
{
	static waiter libcs;
	static const char name[] = "pthread_cond_timedwait";

	return wait_for(real(&libcs, name), name, condition, mutex, until);
}
