/*
 * The loop's wait: wakes.h.  A source wakes it once and is then asked for again, so nobody who has
 * not been served yet can wake it without end, and a file that was closed while a child of
 * ours still had it wakes it at most once more.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "engine/core/must.h"
#include "engine/core/pairs.h"
#include "engine/core/ring.h"
#include "engine/outside/kernel/process.h"
#include "engine/outside/monitor/monitor.h"
#include "engine/outside/monitor/wakes.h"

#define LOOK_MS		250	/* how often processes are looked after */
#define SPINS_URGENT	2000	/* looks for who crashes, before the loop sleeps */
#define TABLE_ROOM	1024	/* descriptors */
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

/* --- the files, while the loop sleeps on the bells ------------------------------------------ */

static void ready_set(struct wakes *w, uint32_t ready)
{
	PUBLISH(wakes_ready, &w->ready, ready);
	syscall(SYS_futex, &w->ready, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

/* Until the loop has taken what there is it would be told of the same again. */
static void *files_watch(void *arg)
{
	struct wakes *w = arg;
	struct pollfd any = { .fd = w->fd, .events = POLLIN };

	for (;;) {
		if (poll(&any, 1, -1) <= 0)
			continue;
		ready_set(w, 1);
		while (CONSUME(wakes_ready, &w->ready))
			syscall(SYS_futex, &w->ready, FUTEX_WAIT_PRIVATE, 1, NULL, NULL, 0);
	}
	return NULL;
}

/* The kernel can, and there is a thread for the files. */
static bool bells_begin(struct wakes *w)
{
	uint32_t word = 0;
	struct futex_waitv one = { .val = 1, .uaddr = (uintptr_t)&word,
				   .flags = FUTEX_32 | FUTEX_PRIVATE_FLAG };
	pthread_t thread;

	return syscall(SYS_futex_waitv, &one, 1, 0, NULL, CLOCK_MONOTONIC) < 0 && errno == EAGAIN &&
	       !pthread_create(&thread, NULL, files_watch, w) && !pthread_detach(thread);
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
	m->wakes.bells = bells_begin(&m->wakes);
	return 0;
}

bool wakes_bells(const struct monitor *m)
{
	return m->wakes.bells;
}

/* True: one has rung since. */
static bool bells_look(struct monitor *m)
{
	bool rung = false;

	for (unsigned i = 0; i < m->versions; i++) {
		uint32_t now = CONSUME(area_doorbell, &m->version[i].area->doorbell);

		rung |= now != m->wakes.heard[i];
		m->wakes.heard[i] = now;
	}
	return rung;
}

/*
 * One says that a thread of it crashes, which will ask in a moment: it is looked for once, for it
 * may be that it has no other processor than ours, and it is a hint and no more.
 */
static bool bells_urgent(struct monitor *m)
{
	bool any = false;

	for (unsigned i = 0; i < m->versions; i++) {
		uint64_t said = __atomic_load_n(&m->version[i].area->crash_ns, __ATOMIC_RELAXED);

		any |= said && said != m->wakes.urgent[i];
		m->wakes.urgent[i] = said;
	}
	return any;
}

static bool bells_rung(const struct monitor *m)
{
	for (unsigned i = 0; i < m->versions; i++)
		if (CONSUME(area_doorbell, &m->version[i].area->doorbell) != m->wakes.heard[i])
			return true;
	return false;
}

static void bells_sleep(struct monitor *m, int ms)
{
	struct futex_waitv word[1 + WAKE_BELLS] = { 0 };
	const struct timespec until = clock_after((uint64_t)(ms > 0 ? ms : 0) * 1000);

	_Static_assert(WAKE_BELLS == VERSIONS, "one each");
	MUST(m->versions <= VERSIONS);
	for (unsigned i = bells_urgent(m) && cpus_several() ? SPINS_URGENT : 0;
	     i && !bells_rung(m); i--)
		__builtin_ia32_pause();
	word[0] = (struct futex_waitv){ .uaddr = (uintptr_t)&m->wakes.ready,
					.flags = FUTEX_32 | FUTEX_PRIVATE_FLAG };
	for (unsigned i = 0; i < m->versions; i++)
		word[1 + i] = (struct futex_waitv){ .val = m->wakes.heard[i], .flags = FUTEX_32,
			.uaddr = (uintptr_t)&m->version[i].area->doorbell };
	syscall(SYS_futex_waitv, word, 1 + m->versions, 0, ms < 0 ? NULL : &until,
		CLOCK_MONOTONIC);
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

/* As many as have something, waited for so long; -1: a wait is impossible. */
static int files_wait(const struct wakes *w, struct epoll_event *e, int ms)
{
	int n = epoll_wait(w->fd, e, WAKES_TURN, ms);

	return n >= 0 ? n : errno == EINTR ? 0 : -1;
}

/* The same, and what comes first of all: who has rung is served. */
static int bells_wait(struct monitor *m, struct epoll_event *e, int ms, bool *rung)
{
	struct wakes *w = &m->wakes;

	if (ms && !CONSUME(wakes_ready, &w->ready))
		bells_sleep(m, ms);
	*rung = bells_look(m);
	return CONSUME(wakes_ready, &w->ready) ? files_wait(w, e, 0) : 0;
}

bool wakes_wait(struct monitor *m, void (*serve)(struct monitor *m, enum wake, uint64_t which))
{
	struct wakes *w = &m->wakes;
	struct epoll_event e[WAKES_TURN];
	bool rung = false;
	int ms = wait_ms(w, now_ms());
	int n = w->bells ? bells_wait(m, e, ms, &rung) : files_wait(w, e, ms);
	uint64_t now = now_ms();

	if (n < 0)
		return false;
	if (w->once_ms && w->once_ms <= now)
		w->once_ms = 0;
	if (rung)
		serve(m, WAKE_BELL, 0);
	for (int i = 0; i < n; i++)
		serve(m, (enum wake)(e[i].data.u64 & 0xff), e[i].data.u64 >> 8);
	/* Behind that: of what is there still it is told anew. */
	if (CONSUME(wakes_ready, &w->ready))
		ready_set(w, 0);
	if (w->look_ms && w->look_ms <= now) {
		w->look_ms = 0;
		serve(m, WAKE_LOOK, 0);
	}
	return true;
}
