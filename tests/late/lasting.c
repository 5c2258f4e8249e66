/*
 * A thread for each call that time ends: told to begin, it makes its call, which nothing but its
 * limit ends, and keeps how long that took.  Who connects says `begin`, or is told which are
 * back, and after how many milliseconds.
 *
 *	lasting PORT
 */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define LIMIT_S	3

static const struct timespec limit = { LIMIT_S, 0 };
static pthread_barrier_t begun;
static int nothing, set, word;

static long by_epoll(void)
{
	struct epoll_event e;

	return epoll_wait(set, &e, 1, LIMIT_S * 1000);
}

static long by_epoll_mask(void)
{
	struct epoll_event e;
	sigset_t none;

	sigemptyset(&none);
	return epoll_pwait(set, &e, 1, LIMIT_S * 1000, &none);
}

static long by_epoll_fine(void)
{
	struct epoll_event e;

	return syscall(SYS_epoll_pwait2, set, &e, 1, &limit, NULL, 8);
}

static long by_poll(void)
{
	struct pollfd p = { nothing, POLLIN, 0 };

	return poll(&p, 1, LIMIT_S * 1000);
}

static long by_ppoll(void)
{
	struct pollfd p = { nothing, POLLIN, 0 };

	return ppoll(&p, 1, &limit, NULL);
}

static long by_select(void)
{
	struct timeval tv = { LIMIT_S, 0 };
	fd_set fds;

	FD_ZERO(&fds);
	FD_SET(nothing, &fds);
	return syscall(SYS_select, nothing + 1, &fds, NULL, NULL, &tv);
}

static long by_pselect(void)
{
	struct timespec ts = limit;
	fd_set fds;

	FD_ZERO(&fds);
	FD_SET(nothing, &fds);
	return syscall(SYS_pselect6, nothing + 1, &fds, NULL, NULL, &ts, NULL);
}

static long by_sleep(void)
{
	return syscall(SYS_nanosleep, &limit, NULL);
}

static long by_clock(void)
{
	return syscall(SYS_clock_nanosleep, CLOCK_BOOTTIME, 0, &limit, NULL);
}

static long by_clock_until(void)
{
	struct timespec end;

	clock_gettime(CLOCK_MONOTONIC, &end);
	end.tv_sec += LIMIT_S;
	return syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, TIMER_ABSTIME, &end, NULL);
}

/* What ends for no other reason but its limit. */
static long at_limit(long result, int error)
{
	return result == -1 && errno == error ? 0 : -1;
}

static long by_futex(void)
{
	return at_limit(syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, &limit, NULL, 0),
			ETIMEDOUT);
}

static long by_signal(void)
{
	sigset_t one;

	sigemptyset(&one);
	sigaddset(&one, SIGUSR2);
	return at_limit(sigtimedwait(&one, NULL, &limit), EAGAIN);
}

static long by_semaphore(void)
{
	int id = semget(IPC_PRIVATE, 1, 0600);
	struct sembuf take = { 0, -1, 0 };
	long result = at_limit(semtimedop(id, &take, 1, &limit), EAGAIN);

	semctl(id, 0, IPC_RMID);
	return result;
}

static struct kind {
	const char *name;
	long (*wait)(void);
	long ms;	/* it took; or 0 */
} kinds[] = {
	{ "epoll_wait", by_epoll, 0 }, { "epoll_pwait", by_epoll_mask, 0 },
	{ "epoll_pwait2", by_epoll_fine, 0 }, { "poll", by_poll, 0 }, { "ppoll", by_ppoll, 0 },
	{ "select", by_select, 0 }, { "pselect6", by_pselect, 0 }, { "nanosleep", by_sleep, 0 },
	{ "clock_nanosleep", by_clock, 0 }, { "until", by_clock_until, 0 },
	{ "futex", by_futex, 0 }, { "sigtimedwait", by_signal, 0 },
	{ "semtimedop", by_semaphore, 0 },
};
#define KINDS (sizeof(kinds) / sizeof(kinds[0]))

static long now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void *thread(void *arg)
{
	struct kind *k = arg;
	long since;

	pthread_barrier_wait(&begun);
	since = now_ms();
	if (k->wait())
		dprintf(2, "%s: not at its limit: %s\n", k->name, strerror(errno));
	else
		__atomic_store_n(&k->ms, now_ms() - since, __ATOMIC_SEQ_CST);
	return NULL;
}

static void tell(int fd)
{
	char words[64 * KINDS];
	size_t n = 0;

	for (unsigned i = 0; i < KINDS; i++)
		n += (size_t)sprintf(words + n, "%s %ld ", kinds[i].name,
				     __atomic_load_n(&kinds[i].ms, __ATOMIC_SEQ_CST));
	words[n++] = '\n';
	if (write(fd, words, n) < 0)
		exit(1);
}

static void serve(int fd)
{
	char asked[16] = "";

	if (read(fd, asked, sizeof(asked) - 1) > 0) {
		if (*asked == 'b')
			pthread_barrier_wait(&begun);
		tell(fd);
	}
	close(fd);
}

int main(int argc, char **argv)
{
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };
	int fds[2], one = 1, listener = socket(AF_INET, SOCK_STREAM, 0);
	sigset_t blocked;
	pthread_t t;

	if (argc != 2 || pipe(fds))
		return 1;
	nothing = fds[0];
	set = epoll_create1(0);
	sigemptyset(&blocked);
	sigaddset(&blocked, SIGUSR2);
	pthread_sigmask(SIG_BLOCK, &blocked, NULL);
	pthread_barrier_init(&begun, NULL, KINDS + 1);
	for (unsigned i = 0; i < KINDS; i++)
		if (pthread_create(&t, NULL, thread, &kinds[i]))
			return 1;
	at.sin_port = htons((uint16_t)atoi(argv[1]));
	setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(listener, (struct sockaddr *)&at, sizeof(at)) || listen(listener, 16))
		return 1;
	for (;;) {
		int fd = accept(listener, NULL, NULL);

		if (fd >= 0)
			serve(fd);
	}
}
