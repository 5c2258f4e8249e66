/*
 * Bad pointers are a result, EFAULT, and neither a fault of the program nor
 * of anybody who looks at its arguments.  Every call of the table is tried
 * with null pages, unmapped, read-only (when it writes) and kernel addresses.
 */
#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include "check.h"

enum { IN, OUT };

static long fd, sock, epfd, valid;
static char good[4096];

/* The argument numbered `at` is bad; the rest are as given. */
static const struct call {
	const char *name;
	int nr, at, direction;
	long arg[6];
	long *first;		/* where the first argument comes from */
} calls[] = {
#define CALL(name, at, direction, first, ...) \
	{ #name, SYS_##name, at, direction, { 0, __VA_ARGS__ }, first }
	CALL(read, 1, OUT, &fd, 0, 16),
	CALL(write, 1, IN, &fd, 0, 16),
	CALL(pread64, 1, OUT, &fd, 0, 16),
	CALL(pwrite64, 1, IN, &fd, 0, 16),
	CALL(readv, 1, IN, &fd, 0, 1),
	CALL(writev, 1, IN, &fd, 0, 1),
	CALL(fstat, 1, OUT, &fd, 0),
	CALL(stat, 0, IN, NULL, (long)good),
	CALL(open, 0, IN, NULL, 0),
	CALL(openat, 1, IN, NULL, 0, 0),
	CALL(access, 0, IN, NULL, 0),
	CALL(rt_sigaction, 1, IN, &valid, 0, 0, 8),
	CALL(rt_sigaction, 2, OUT, &valid, 0, 0, 8),
	CALL(rt_sigprocmask, 1, IN, NULL, 0, 0, 8),
	CALL(rt_sigprocmask, 2, OUT, NULL, 0, 0, 8),
	CALL(rt_sigpending, 0, OUT, NULL, 8),
	CALL(rt_sigsuspend, 0, IN, NULL, 8),
	CALL(rt_sigtimedwait, 0, IN, NULL, 0, 0, 8),
	CALL(rt_sigqueueinfo, 2, IN, &valid, 10, 0),
	CALL(signalfd4, 1, IN, NULL, 0, 8, 0),
	CALL(sigaltstack, 0, IN, NULL, 0),
	CALL(sigaltstack, 1, OUT, NULL, 0),
	CALL(clone3, 0, IN, NULL, 88),
	CALL(ppoll, 0, IN, NULL, 1, 0, 0, 8),
	CALL(ppoll, 2, IN, NULL, 0, 0, 0, 8),
	CALL(ppoll, 3, IN, NULL, 0, 0, 0, 8),
	CALL(poll, 0, IN, NULL, 1, 0),
	CALL(select, 1, IN, &valid, 0, 0, 0, 0),
	CALL(pselect6, 5, IN, NULL, 0, 0, 0, 0, 0),
	CALL(epoll_wait, 1, OUT, &epfd, 0, 1, 0),
	CALL(epoll_ctl, 3, IN, &epfd, EPOLL_CTL_ADD, 0, 0),
	CALL(epoll_pwait, 4, IN, &epfd, (long)good, 1, 0, 0, 8),
	CALL(pipe, 0, OUT, NULL, 0),
	CALL(pipe2, 0, OUT, NULL, 0),
	CALL(socketpair, 3, OUT, &valid, SOCK_STREAM, 0, 0),
	CALL(getsockname, 1, OUT, &sock, 0, (long)good),
	CALL(getsockname, 2, OUT, &sock, (long)good, 0),
	CALL(bind, 1, IN, &sock, 0, 16),
	CALL(sendmsg, 1, IN, &sock, 0, 0),
	CALL(recvmsg, 1, IN, &sock, 0, MSG_DONTWAIT),
	CALL(setsockopt, 3, IN, &sock, SOL_SOCKET, SO_RCVBUF, 0, 4),
	CALL(uname, 0, OUT, NULL, 0),
	CALL(getcwd, 0, OUT, NULL, 4096),
	CALL(getrlimit, 1, OUT, NULL, 0),
	CALL(prlimit64, 2, IN, NULL, 0, 0, 0),
	CALL(prlimit64, 3, OUT, NULL, 0, 0, 0),
	CALL(getrusage, 1, OUT, NULL, 0),
	CALL(sysinfo, 0, OUT, NULL, 0),
	CALL(times, 0, OUT, NULL, 0),
	CALL(nanosleep, 0, IN, NULL, 0),
	CALL(getitimer, 1, OUT, NULL, 0),
	CALL(setitimer, 1, IN, NULL, 0, 0),
	CALL(timer_create, 2, OUT, NULL, 0, 0),
	CALL(getresuid, 0, OUT, NULL, (long)good, (long)good),
	CALL(getdents64, 1, OUT, &epfd, 0, 0),
	CALL(futex, 0, IN, NULL, FUTEX_WAIT, 0, 0),
	CALL(sched_getaffinity, 2, OUT, NULL, 128, 0),
	CALL(getrandom, 0, OUT, NULL, 16, 0),
	CALL(execve, 0, IN, NULL, 0, 0),
	CALL(wait4, 1, OUT, NULL, 0, 0, 0),
	CALL(set_robust_list, 0, IN, NULL, 0),
	CALL(process_vm_readv, 1, IN, &valid, 0, 1, (long)good, 1, 0),
	CALL(statx, 4, OUT, NULL, (long)"/", 0, 0x7ff, 0),
	CALL(newfstatat, 2, OUT, NULL, (long)"/", 0, 0),
	CALL(readlink, 1, OUT, NULL, 0, 16),
	CALL(clock_gettime, 1, OUT, NULL, 0),
	CALL(sendfile, 2, OUT, &fd, 0, 0, 1),
	CALL(accept, 1, OUT, &sock, 0, (long)good),
};

/* Calls whose bad pointer natively gives something else than EFAULT. */
static long expected(const struct call *c)
{
	switch (c->nr) {
	case SYS_getdents64:
	case SYS_epoll_wait:
	case SYS_wait4:
	case SYS_set_robust_list:
	case SYS_accept:
	case SYS_readlink:
	case SYS_futex:
	case SYS_execve:
		return 0;
	default:
		return -EFAULT;
	}
}

static long results[COUNT(calls)][8];

static long attempt(const struct call *c, long bad)
{
	long a[6];

	memcpy(a, c->arg, sizeof(a));
	if (c->first)
		a[0] = *c->first;
	a[c->at] = bad;
	return raw6(c->nr, a[0], a[1], a[2], a[3], a[4], a[5]);
}

/* edge: the last byte before the hole.  getrandom leaves chance there, and a name of chance
 * is there or not: each call finds one that goes on in the hole. */
static void each_call(const long *bad, int count, char *edge)
{
	for (size_t i = 0; i < COUNT(calls); i++)
		for (int j = 0; j < count; j++)
			for (int again = 0; again < 3; again++) {
				*edge = 'x';
				results[i][j] = attempt(&calls[i], bad[j]);
			}
}

/* Printed, so that mve is compared with the kernel in every case. */
static void judge(int count)
{
	for (size_t i = 0; i < COUNT(calls); i++) {
		printf("%-16s %d:", calls[i].name, calls[i].at);
		for (int j = 0; j < count; j++) {
			printf(" %ld", results[i][j]);
		}
		printf("\n");
		if (expected(&calls[i]))
			CHECK_EQ(results[i][0], expected(&calls[i]));
	}
}

int main(void)
{
	char *hole = mmap(NULL, 8192, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	munmap(hole + 4096, 4096);
	long bad[] = {
		8, (long)(hole + 4096), (long)(hole + 4095), (long)0xffffffffff600000,
		(long)0xffff800000000000, 0x7fffffffefff, -1,
	};
	fd = open("file", O_RDWR | O_CREAT | O_TRUNC, 0600);
	CHECK_EQ(ftruncate(fd, 4096), 0);
	sock = socket(AF_UNIX, SOCK_DGRAM, 0);
	epfd = epoll_create1(0);
	valid = 1;
	*(int *)good = 16;
	each_call(bad, COUNT(bad), hole + 4095);
	judge(COUNT(bad));
	CHECK_EQ(raw0(SYS_getpid), getpid());
	return passed("efault");
}
