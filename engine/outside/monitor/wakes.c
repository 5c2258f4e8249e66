/*
 * The loop's wait.  A source wakes it once and is then asked for again, so nobody who has
 * not been served yet can wake it without end, and a file that was closed while a child of
 * ours still had it wakes it at most once more.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

#include "engine/core/must.h"
#include "engine/outside/monitor/monitor.h"
#include "engine/outside/monitor/wakes.h"

#define TABLE_ROOM	1024	/* descriptors */

#define LOOK_MS		250	/* how often processes are looked after */
#define WAKES_TURN	64	/* served before the next wait; the others are not lost */

uint64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

struct timespec clock_after(uint64_t us)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	t.tv_nsec += (long)(us % 1000000) * 1000;
	t.tv_sec += (time_t)(us / 1000000) + t.tv_nsec / 1000000000;
	t.tv_nsec %= 1000000000;
	return t;
}

/*
 * Where a process has threads the kernel waits until every processor has passed before its table
 * of descriptors grows, 10 ms: so it is made for a takeover's before there are any.
 */
static void table_make(int fd)
{
	int last = fcntl(fd, F_DUPFD_CLOEXEC, TABLE_ROOM - 1);

	if (last >= 0)
		close(last);
}

int wakes_open(struct monitor *m)
{
	if (m->wakes.fd > 0)
		close(m->wakes.fd);
	m->wakes = (struct wakes){ .fd = epoll_create1(EPOLL_CLOEXEC) };
	if (m->wakes.fd < 0)
		return -errno;
	table_make(m->wakes.fd);
	return 0;
}

bool monitor_poll(struct monitor *m, int fd, short events, enum wake what, uint64_t which)
{
	/* The bits of poll() and of epoll are the same. */
	struct epoll_event e = { .events = (uint32_t)events | EPOLLONESHOT,
				 .data.u64 = what | which << 8 };

	MUST(what <= 0xff && which << 8 >> 8 == which);	/* they share a word */

	return epoll_ctl(m->wakes.fd, EPOLL_CTL_MOD, fd, &e) == 0 ||
	       (errno == ENOENT && epoll_ctl(m->wakes.fd, EPOLL_CTL_ADD, fd, &e) == 0);
}

/* One wake-up is enough: whoever wants a later one asks again then. */
void monitor_wake_after(struct monitor *m, unsigned ms)
{
	uint64_t when = now_ms() + ms;

	if (!m->wakes.once_ms || when < m->wakes.once_ms)
		m->wakes.once_ms = when;
}

void wakes_look(struct monitor *m)
{
	m->wakes.look_ms = now_ms() + LOOK_MS;
}

static int wait_ms(const struct wakes *w, uint64_t now)
{
	uint64_t next = w->once_ms && w->look_ms && w->look_ms < w->once_ms ? w->look_ms :
			w->once_ms ? w->once_ms : w->look_ms;

	if (!next)
		return -1;
	return next <= now ? 0 : next - now > INT_MAX ? INT_MAX : (int)(next - now);
}

bool wakes_wait(struct monitor *m, void (*serve)(struct monitor *m, enum wake, uint64_t which))
{
	struct wakes *w = &m->wakes;
	struct epoll_event e[WAKES_TURN];
	int n = epoll_wait(w->fd, e, WAKES_TURN, wait_ms(w, now_ms()));
	uint64_t now = now_ms();

	if (n < 0 && errno != EINTR)
		return false;
	if (w->once_ms && w->once_ms <= now)
		w->once_ms = 0;
	for (int i = 0; i < n; i++)
		serve(m, (enum wake)(e[i].data.u64 & 0xff), e[i].data.u64 >> 8);
	if (w->look_ms && w->look_ms <= now) {
		w->look_ms = 0;
		serve(m, WAKE_LOOK, 0);
	}
	return true;
}
