/*
 * A storm of signals, five thousand in a second to each thread, while system
 * calls run: each call returns what it must, callee-saved registers keep
 * their values, and pipes lose no byte.  Handlers make calls themselves.
 */
#include <pthread.h>
#include <sys/time.h>
#include "check.h"

#define THREADS 2
#define TICKS_LEAST 500	/* of a thread: on a busy machine that takes longer than what is asked for */

static __thread volatile unsigned ticks;
static pthread_mutex_t done_lock = PTHREAD_MUTEX_INITIALIZER;
static bool done;

static void tick(int sig, siginfo_t *info, void *context)
{
	int saved = errno;

	if (raw0(SYS_getpid) != getpid() || raw0(SYS_gettid) != gettid())
		_exit(3);
	if (raw3(SYS_close, -1, 0, 0) != -EBADF)
		_exit(4);
	ticks++;
	errno = saved;
}

/* One call with every other register known. */
static void guarded_call(long tid)
{
	register long r12 asm("r12") = 0x1212121212;
	register long r13 asm("r13") = 0x1313131313;
	register long r14 asm("r14") = 0x1414141414;
	register long r15 asm("r15") = 0x1515151515;
	register long r8 asm("r8") = 0x0808080808;
	register long r9 asm("r9") = 0x0909090909;
	register long r10 asm("r10") = 0x1010101010;
	long ret, di = 0x77, si = 0x66, dx = 0x55;

	asm volatile("mov $186, %%eax\n\tsyscall"
		     : "=a"(ret), "+r"(r12), "+r"(r13), "+r"(r14), "+r"(r15),
		       "+r"(r8), "+r"(r9), "+r"(r10), "+D"(di), "+S"(si), "+d"(dx)
		     : : "rcx", "r11", "memory");
	CHECK_EQ(ret, tid);
	CHECK(r12 == 0x1212121212 && r13 == 0x1313131313);
	CHECK(r14 == 0x1414141414 && r15 == 0x1515151515);
	CHECK(r8 == 0x0808080808 && r9 == 0x0909090909 && r10 == 0x1010101010);
	CHECK(di == 0x77 && si == 0x66 && dx == 0x55);
}

static ssize_t whole(ssize_t (*call)(int, void *, size_t), int fd, void *p,
		     size_t size)
{
	ssize_t n;

	do
		n = call(fd, p, size);
	while (n < 0 && errno == EINTR);
	return n;
}

static ssize_t do_write(int fd, void *p, size_t size)
{
	return write(fd, p, size);
}

static void pipe_bytes(int *fds, unsigned *sequence)
{
	unsigned out = (*sequence)++, in = 0;

	CHECK_EQ(whole(do_write, fds[1], &out, sizeof(out)), sizeof(out));
	CHECK_EQ(whole(read, fds[0], &in, sizeof(in)), sizeof(in));
	CHECK_EQ(in, out);
}

static void short_sleep(void)
{
	struct timespec t = { 0, 200000 };

	while (nanosleep(&t, &t))
		CHECK_EQ(errno, EINTR);
}

static timer_t thread_timer(void)
{
	struct sigevent event = {
		.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGRTMIN + 1,
	};
	struct itimerspec every = { { 0, 200000 }, { 0, 200000 } };
	timer_t timer;

	event._sigev_un._tid = gettid();
	CHECK_EQ(timer_create(CLOCK_MONOTONIC, &event, &timer), 0);
	CHECK_EQ(timer_settime(timer, 0, &every, NULL), 0);
	return timer;
}

/* A lock tells a follower's threads when; plain memory would not. */
static bool is_done(bool now)
{
	bool is;

	pthread_mutex_lock(&done_lock);
	is = done |= now;
	pthread_mutex_unlock(&done_lock);
	return is;
}

static void *work(void *arg)
{
	unsigned sequence = 0, rounds = 0;
	timer_t timer = thread_timer();
	long tid = gettid(), own = (long)arg;
	int fds[2];

	CHECK_EQ(pipe(fds), 0);
	while (!is_done(false) || ticks < TICKS_LEAST) {
		for (int i = 0; i < 50; i++) {
			guarded_call(tid);
			pipe_bytes(fds, &sequence);
			CHECK_FAILS(close(-1), EBADF);
		}
		if (rounds++ % 16 == (unsigned)own)
			short_sleep();
	}
	timer_delete(timer);
	close(fds[0]);
	close(fds[1]);
	return NULL;
}

/* storm [SECONDS] */
int main(int argc, char **argv)
{
	struct itimerval every = { { 0, 200 }, { 0, 200 } }, off = { 0 };
	pthread_t threads[THREADS];
	struct timespec end = { argc > 1 ? atoi(argv[1]) : 1, 0 };

	on_siginfo(SIGRTMIN + 1, tick, SA_RESTART);
	on_siginfo(SIGALRM, tick, 0);
	setitimer(ITIMER_REAL, &every, NULL);
	for (long i = 0; i < THREADS; i++)
		CHECK_EQ(pthread_create(&threads[i], NULL, work, (void *)i), 0);
	while (nanosleep(&end, &end))
		CHECK_EQ(errno, EINTR);
	is_done(true);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	setitimer(ITIMER_REAL, &off, NULL);
	return passed("storm");
}
