/*
 * A signal that arrives while a call sleeps: with SA_RESTART the call goes
 * on where POSIX says so, without it EINTR is returned once the handler has
 * run; a sleep tells what is left.  Each blocking call of a table is tried
 * with a handler of both kinds.  The signal is sent by another thread that
 * sees in /proc that the call sleeps.
 */
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <netinet/in.h>
#include <sys/timerfd.h>
#include "check.h"

/* The kernel adds the timer's slack to what is left. */
#define CHECK_NEARLY_10(t) \
	CHECK((t).tv_sec == 9 || ((t).tv_sec == 10 && (t).tv_nsec < 1000000))

static volatile sig_atomic_t handled;
static int pipe_fds[2], full_pipe[2], pair[2], listener, epoll, event, lock_fd;
static pid_t sleeper;

static void handler(int sig)
{
	handled++;
}

static long do_read(void) { char c; return read(pipe_fds[0], &c, 1); }
static long do_write(void) { return write(full_pipe[1], "x", 1); }
static long do_recv(void) { char c; return recv(pair[0], &c, 1, 0); }
static long do_accept(void) { return accept(listener, NULL, NULL); }
static long do_event(void) { uint64_t n; return read(event, &n, 8); }
static long do_flock(void) { return flock(lock_fd, LOCK_EX); }
static long do_wait(void) { return waitpid(-1, NULL, 0); }
static long do_pause(void) { return pause(); }
static long do_poll(void) { return poll(NULL, 0, 10000); }
static long do_select(void) { return select(0, NULL, NULL, NULL, NULL); }

static long do_recvmsg(void)
{
	char c;
	struct iovec iov = { &c, 1 };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };

	return recvmsg(pair[0], &msg, 0);
}

static long do_epoll(void)
{
	struct epoll_event e;

	return epoll_wait(epoll, &e, 1, 10000);
}

static long do_suspend(void)
{
	sigset_t none;

	sigemptyset(&none);
	return sigsuspend(&none);
}

static long do_nanosleep(void)
{
	struct timespec t = { 10, 0 }, left = { 0 };
	long ret = nanosleep(&t, &left);

	CHECK_NEARLY_10(left);
	return ret;
}

static long do_clock_nanosleep(void)
{
	struct timespec t = { 10, 0 }, left = { 0 };
	int err = clock_nanosleep(CLOCK_MONOTONIC, 0, &t, &left);

	CHECK_NEARLY_10(left);
	errno = err;
	return err ? -1 : 0;
}

static long do_futex(void)
{
	int word = 0;

	return syscall(SYS_futex, &word, FUTEX_WAIT, 0, NULL, NULL, 0);
}

static long do_sigwait(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR2);
	return sigwaitinfo(&set, NULL);
}

static long do_semop(void)
{
	static int id;
	struct sembuf down = { 0, -1, 0 };

	id = semget(IPC_PRIVATE, 1, 0600);
	long ret = semop(id, &down, 1);
	int err = errno;
	semctl(id, 0, IPC_RMID);
	errno = err;
	return ret;
}

static long do_msgrcv(void)
{
	struct { long type; char c; } msg;
	int id = msgget(IPC_PRIVATE, 0600);
	long ret = msgrcv(id, &msg, 1, 0, 0);
	int err = errno;

	msgctl(id, IPC_RMID, NULL);
	errno = err;
	return ret;
}

/* What ends a call that was restarted. */
static void end_read(void) { CHECK_EQ(write(pipe_fds[1], "x", 1), 1); }
static void end_recv(void) { CHECK_EQ(write(pair[1], "x", 1), 1); }
static void end_event(void) { uint64_t n = 1; CHECK_EQ(write(event, &n, 8), 8); }
static void end_flock(void) { CHECK_EQ(flock(lock_fd + 1, LOCK_UN), 0); }
static void end_wait(void) { CHECK_EQ(kill(sleeper, SIGKILL), 0); }

static void end_write(void)
{
	char page[4096];

	CHECK_EQ(read(full_pipe[0], page, sizeof(page)), sizeof(page));
}

static void end_accept(void)
{
	struct sockaddr_in to;
	socklen_t size = sizeof(to);
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	CHECK_EQ(getsockname(listener, (struct sockaddr *)&to, &size), 0);
	CHECK_EQ(connect(fd, (struct sockaddr *)&to, size), 0);
	close(fd);
}

static const struct blocking {
	const char *name;
	long (*call)(void);
	void (*end)(void);	/* NULL: never restarted */
} calls[] = {
	{ "read", do_read, end_read },
	{ "write", do_write, end_write },
	{ "recv", do_recv, end_recv },
	{ "recvmsg", do_recvmsg, end_recv },
	{ "accept", do_accept, end_accept },
	{ "eventfd", do_event, end_event },
	{ "flock", do_flock, end_flock },
	{ "waitpid", do_wait, end_wait },
	{ "pause", do_pause, NULL },
	{ "poll", do_poll, NULL },
	{ "select", do_select, NULL },
	{ "epoll_wait", do_epoll, NULL },
	{ "sigsuspend", do_suspend, NULL },
	{ "nanosleep", do_nanosleep, NULL },
	{ "clock_nanosleep", do_clock_nanosleep, NULL },
	{ "sigwaitinfo", do_sigwait, NULL },
	{ "semop", do_semop, NULL },
	{ "msgrcv", do_msgrcv, NULL },
};

static const struct blocking *now;
static bool restarts;

static void *disturb(void *tid)
{
	wait_asleep((long)tid);
	CHECK_EQ(syscall(SYS_tgkill, getpid(), (long)tid, SIGUSR1), 0);
	while (!handled)
		sched_yield();
	if (restarts) {
		wait_asleep((long)tid);
		now->end();
	}
	return NULL;
}

static void start_sleeper(void)
{
	sleeper = fork();
	if (!sleeper)
		for (;;)
			pause();
	CHECK(sleeper > 0);
}

static void try(const struct blocking *call, int flags)
{
	pthread_t thread;
	bool is_wait = call->call == do_wait;

	now = call;
	restarts = (flags & SA_RESTART) && call->end;
	handled = 0;
	on_signal(SIGUSR1, handler, flags);
	if (is_wait)
		start_sleeper();
	if (call->call == do_flock)
		CHECK_EQ(flock(lock_fd + 1, LOCK_EX), 0);
	CHECK_EQ(pthread_create(&thread, NULL, disturb, (void *)(long)gettid()), 0);
	errno = 0;
	long ret = call->call();
	int err = errno;
	pthread_join(thread, NULL);
	if (handled != 1 || (restarts ? ret < 0 : ret != -1 || err != EINTR)) {
		dprintf(2, "%s: handled %d, returns %ld, errno %d, flags %#x\n",
			call->name, handled, ret, err, flags);
		_exit(1);
	}
	if (is_wait && !restarts) {
		end_wait();
		CHECK_EQ(status_of(sleeper), SIGKILL);
	}
	flock(lock_fd, LOCK_UN);
	flock(lock_fd + 1, LOCK_UN);
}

/* futex: libc hides EINTR, the kernel does not; with SA_RESTART it goes on. */
static void *disturb_futex(void *tid)
{
	wait_asleep((long)tid);
	CHECK_EQ(syscall(SYS_tgkill, getpid(), (long)tid, SIGUSR1), 0);
	return NULL;
}

static void futex_interrupted(void)
{
	pthread_t thread;

	handled = 0;
	on_signal(SIGUSR1, handler, 0);
	CHECK_EQ(pthread_create(&thread, NULL, disturb_futex,
				(void *)(long)gettid()), 0);
	CHECK_FAILS(do_futex(), EINTR);
	CHECK_EQ(handled, 1);
	pthread_join(thread, NULL);
}

/* Signals without a handler end no call: ignored, or SIGSTOP and SIGCONT. */
static void not_interrupted(void)
{
	struct timespec t = { 0, 200000000 };
	pid_t parent = getpid(), pid = fork();

	if (!pid) {
		wait_asleep(parent);
		for (int i = 0; i < 10; i++) {
			kill(parent, SIGWINCH);
			kill(parent, SIGSTOP);
			kill(parent, SIGCONT);
		}
		_exit(0);
	}
	CHECK_EQ(nanosleep(&t, NULL), 0);
	CHECK_EQ(status_of(pid), 0);
}

static void open_all(void)
{
	struct sockaddr_in any = { .sin_family = AF_INET };
	char page[4096] = "";

	any.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	CHECK_EQ(pipe(pipe_fds), 0);
	CHECK_EQ(pipe(full_pipe), 0);
	fcntl(full_pipe[1], F_SETPIPE_SZ, 4096);
	CHECK_EQ(write(full_pipe[1], page, sizeof(page)), sizeof(page));
	CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	listener = socket(AF_INET, SOCK_STREAM, 0);
	CHECK_EQ(bind(listener, (struct sockaddr *)&any, sizeof(any)), 0);
	CHECK_EQ(listen(listener, 5), 0);
	epoll = epoll_create1(0);
	event = eventfd(0, 0);
	lock_fd = open("lock", O_RDWR | O_CREAT, 0600);
	CHECK_EQ(open("lock", O_RDWR), lock_fd + 1);
}

/* The write that was restarted left one byte in the pipe. */
static void refill(void)
{
	char page[4096] = "";

	fcntl(full_pipe[1], F_SETFL, O_NONBLOCK);
	while (write(full_pipe[1], page, 1) == 1)
		;
	fcntl(full_pipe[1], F_SETFL, 0);
}

int main(void)
{
	open_all();
	for (int round = 0; round < 3; round++)
		for (size_t i = 0; i < COUNT(calls); i++) {
			refill();
			try(&calls[i], 0);
			try(&calls[i], SA_RESTART);
		}
	futex_interrupted();
	not_interrupted();
	return passed("interrupt");
}
