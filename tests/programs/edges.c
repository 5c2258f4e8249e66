/*
 * Memory that a call was given and the kernel did not look at, or not at all of: it ends
 * with its page before the length that was said, or the length is nonsense and the call
 * fails.  What lies there is filled by chance (a clock), so that a follower that compares
 * it differs.
 */
#include <linux/futex.h>
#include <mqueue.h>
#include <pthread.h>
#include <setjmp.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/time.h>

#include "tests/programs/check.h"

#define KEYRING_PROCESS	(-2)

static char *edge;		/* the next page is not there */
static char chance[4096];	/* other bytes in each version */

/* How far one counts until a nap is over, of which followers are not told. */
static void *nap(void *over)
{
	struct timespec ms = { 0, 1000000 };
	int word = 0;

	syscall(SYS_futex, &word, FUTEX_WAIT, 0, &ms);
	__atomic_store_n((bool *)over, true, __ATOMIC_RELAXED);
	return NULL;
}

static uint64_t own_value(void)
{
	bool over = false;
	pthread_t t;
	uint64_t n = 0;

	CHECK_EQ(pthread_create(&t, NULL, nap, &over), 0);
	while (!__atomic_load_n(&over, __ATOMIC_RELAXED))
		n++;
	CHECK_EQ(pthread_join(t, NULL), 0);
	return n;
}

static void at_the_edge(void)
{
	int fd = socket(AF_INET, SOCK_STREAM, 0), on = 1;
	struct msghdr *m = (struct msghdr *)(edge - 24);

	memcpy(edge - 4, &on, 4);
	CHECK_EQ(setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, edge - 4, 5), 0);
	strcpy(edge - 6, "short");
	CHECK_EQ(prctl(PR_SET_NAME, edge - 6), 0);
	memset(m, 1, 24);
	CHECK_FAILS(sendmsg(-1, m, 0), EBADF);
	CHECK_FAILS(sendmsg(fd, m, 0), EFAULT);
	close(fd);
}

static void nonsense(void)
{
	struct mq_attr attr = { .mq_maxmsg = 1, .mq_msgsize = 8 };
	mqd_t q = mq_open("/mve-edges", O_CREAT | O_RDWR, 0600, &attr);

	CHECK(q != (mqd_t)-1);
	CHECK_EQ(mq_unlink("/mve-edges"), 0);
	CHECK_FAILS(mq_send(q, chance, (size_t)-1, 0), EMSGSIZE);
	CHECK_FAILS(syscall(SYS_add_key, "user", "mve", chance, 1ul << 62, KEYRING_PROCESS), EINVAL);
	CHECK_FAILS(setsockopt(0, SOL_SOCKET, SO_KEEPALIVE, chance, INT_MAX), ENOTSOCK);
	CHECK_EQ(mq_close(q), 0);
}

/* An operation that the kernel does not know stays one. */
static void futexes(void)
{
	struct timespec soon = { 0, 1 };
	int word = 0;

	CHECK_FAILS(syscall(SYS_futex, &word, FUTEX_WAIT | FUTEX_CLOCK_REALTIME, 1, &soon), ENOSYS);
	CHECK_FAILS(syscall(SYS_futex, &word, FUTEX_WAIT, 1, &soon), EAGAIN);
	CHECK_FAILS(syscall(SYS_futex, &word, FUTEX_WAIT, 0, &soon), ETIMEDOUT);
}

static sigjmp_buf before_clock;

static void clock_faulted(int sig)
{
	siglongjmp(before_clock, sig);
}

/* A fault in the vDSO, or what the kernel's call answers: but no clock, and no end. */
static void clocks(void)
{
	struct timeval *tv = (struct timeval *)edge;

	CHECK(signal(SIGSEGV, clock_faulted) != SIG_ERR);
	if (!sigsetjmp(before_clock, 1))
		CHECK_FAILS(clock_gettime(CLOCK_REALTIME, (struct timespec *)edge), EFAULT);
	if (!sigsetjmp(before_clock, 1))
		CHECK(gettimeofday(tv, NULL) < 0);
	CHECK(signal(SIGSEGV, SIG_DFL) != SIG_ERR);
}

int main(void)
{
	uint64_t own = own_value();
	char *at = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	CHECK(at != MAP_FAILED);
	edge = at + 4096;
	for (size_t i = 0; i < sizeof(chance); i += sizeof(own))
		memcpy(chance + i, &own, sizeof(own));
	CHECK_EQ(mprotect(edge, 4096, PROT_NONE), 0);
	at_the_edge();
	nonsense();
	futexes();
	clocks();
	return passed("edges");
}
