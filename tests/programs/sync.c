/*
 * What lives between user space and the kernel: robust mutexes whose owner
 * dies, priority inheritance, shared mutexes between processes, barriers;
 * restartable sequences, which a signal or preemption aborts.
 */
#include <linux/rseq.h>
#include <pthread.h>
#include <sys/auxv.h>
#include <sys/rseq.h>
#include <sys/time.h>
#include "check.h"

static pthread_mutex_t robust, inheriting;
static pthread_barrier_t barrier;
static long counter, turns = 20000;

static void *dies_holding(void *arg)
{
	CHECK_EQ(pthread_mutex_lock(&robust), 0);
	if (arg)
		raw3(SYS_exit, 0, 0, 0);
	return NULL;
}

static void robust_in_threads(void)
{
	pthread_mutexattr_t attr;
	pthread_t thread;

	pthread_mutexattr_init(&attr);
	pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST);
	CHECK_EQ(pthread_mutex_init(&robust, &attr), 0);
	for (int i = 0; i < 50; i++) {
		CHECK_EQ(pthread_create(&thread, NULL, dies_holding, NULL), 0);
		pthread_join(thread, NULL);
		CHECK_EQ(pthread_mutex_lock(&robust), EOWNERDEAD);
		CHECK_EQ(pthread_mutex_consistent(&robust), 0);
		CHECK_EQ(pthread_mutex_unlock(&robust), 0);
	}
}

static void robust_in_processes(void)
{
	pthread_mutex_t *shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
				       MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pthread_mutexattr_t attr;

	pthread_mutexattr_init(&attr);
	pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST);
	pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
	CHECK_EQ(pthread_mutex_init(shared, &attr), 0);
	for (int i = 0; i < 20; i++) {
		pid_t pid = fork();
		if (!pid) {
			pthread_mutex_lock(shared);
			raise(SIGKILL);
		}
		CHECK_EQ(status_of(pid), SIGKILL);
		CHECK_EQ(pthread_mutex_lock(shared), EOWNERDEAD);
		CHECK_EQ(pthread_mutex_consistent(shared), 0);
		CHECK_EQ(pthread_mutex_unlock(shared), 0);
	}
}

static void *count_up(void *arg)
{
	pthread_barrier_wait(&barrier);
	for (int i = 0; i < turns; i++) {
		CHECK_EQ(pthread_mutex_lock(&inheriting), 0);
		counter++;
		CHECK_EQ(pthread_mutex_unlock(&inheriting), 0);
	}
	return NULL;
}

static void priority_inheritance(void)
{
	pthread_mutexattr_t attr;
	pthread_t threads[4];

	pthread_mutexattr_init(&attr);
	CHECK_EQ(pthread_mutexattr_setprotocol(&attr, PTHREAD_PRIO_INHERIT), 0);
	CHECK_EQ(pthread_mutex_init(&inheriting, &attr), 0);
	CHECK_EQ(pthread_barrier_init(&barrier, NULL, 4), 0);
	for (int i = 0; i < 4; i++)
		CHECK_EQ(pthread_create(&threads[i], NULL, count_up, NULL), 0);
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	CHECK_EQ(counter, 4 * turns);
}

static void robust_list(void)
{
	void *head = NULL, *mine = (void *)(16 + (char *)pthread_self());
	size_t size = 0;

	CHECK_EQ(raw3(SYS_get_robust_list, 0, &head, &size), 0);
	CHECK_EQ(size, 24);
	CHECK(head > mine && (char *)head < (char *)mine + 4096);
}

/*
 * A critical section that spins until it is aborted: the timer's signal, or
 * preemption, must send it to the abort handler.
 */
static volatile sig_atomic_t ticks;

static void tick(int sig)
{
	CHECK_EQ(raw0(SYS_getpid), getpid());
	ticks++;
}

__attribute__((noinline)) static int spin_until_aborted(struct rseq *area)
{
	int aborted = 0;

	asm volatile(
		".pushsection __rseq_cs, \"aw\"\n"
		".balign 32\n"
		"77:	.long 0, 0\n"
		"	.quad 1f, 2f - 1f, 4f\n"
		".popsection\n"
		"	lea 77b(%%rip), %%rax\n"
		"	mov %%rax, 8(%1)\n"
		"1:	pause\n"
		"	jmp 1b\n"
		"2:	nop\n"
		"	jmp 5f\n"
		"	.byte 0x0f, 0xb9, 0x3d\n"
		"	.long %c2\n"
		"4:	movl $1, %0\n"
		"5:"
		: "+m"(aborted) : "r"(area), "i"(RSEQ_SIG) : "rax", "memory");
	return aborted;
}

static void restartable(void)
{
	struct itimerval every = { { 0, 500 }, { 0, 500 } }, off = { 0 };
	struct rseq *area = (void *)((char *)__builtin_thread_pointer() +
				     __rseq_offset);

	if (!__rseq_size) {
		printf("no rseq\n");
		return;
	}
	CHECK((int)area->cpu_id >= 0);
	on_signal(SIGALRM, tick, SA_RESTART);
	setitimer(ITIMER_REAL, &every, NULL);
	for (int i = 0; i < 500; i++)
		CHECK_EQ(spin_until_aborted(area), 1);
	setitimer(ITIMER_REAL, &off, NULL);
	CHECK(ticks > 0);
	CHECK_EQ(raw4(SYS_rseq, area, 32, 0, RSEQ_SIG + 1), -EPERM);
	CHECK_EQ(raw4(SYS_rseq, area, 32, 0, RSEQ_SIG), -EBUSY);
}

/* With an argument: nothing that is aborted by chance, and fewer turns. */
int main(int argc, char **argv)
{
	if (argc > 1)
		turns = 2000;
	robust_in_threads();
	robust_in_processes();
	priority_inheritance();
	robust_list();
	if (argc < 2)
		restartable();
	return passed("sync");
}
