/*
 * What a program may be at when mve comes and goes: each thread does one thing, again and
 * again, and looks whether anything that it can see is not as it must be.  Ends at SIGTERM.
 * ld: -lm
 */
#include <errno.h>
#include <linux/futex.h>
#include <math.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static atomic_int over;
static atomic_long rounds[16];
static pthread_t suspended;

static _Noreturn void wrong(const char *what, long a, long b)
{
	printf("wrong: %s: %ld, %ld\n", what, a, b);
	fflush(stdout);
	_exit(1);
}

static void same(const char *what, long is, long must)
{
	if (is != must)
		wrong(what, is, must);
}

static int64_t now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000ll + t.tv_nsec / 1000;
}

/* Every register but rsp and rdi, with the red zone and the flags, for a while; 0: all stay. */
static long registers_hold(long turns)
{
	long bad;

	__asm__ volatile(
		"movq $0x1234567, -64(%%rsp)\n"
		"mov %1, %%rdi\n"
		"mov $1, %%eax\n mov $2, %%ebx\n mov $3, %%ecx\n mov $4, %%edx\n mov $5, %%esi\n"
		"mov $8, %%r8d\n mov $9, %%r9d\n mov $10, %%r10d\n mov $11, %%r11d\n"
		"mov $12, %%r12d\n mov $13, %%r13d\n mov $14, %%r14d\n mov $15, %%r15d\n"
		"movq %%rax, %%xmm15\n pinsrq $1, %%rdx, %%xmm15\n"
		"stc\n"
		"1: jnc 2f\n"
		"lea -1(%%rdi), %%rdi\n"
		"xchg %%rcx, %%rdi\n jrcxz 3f\n xchg %%rcx, %%rdi\n"
		"jmp 1b\n"
		"2: mov $99, %%edi\n jmp 4f\n"
		"3: xchg %%rcx, %%rdi\n"
		"sub $1, %%rax\n sub $2, %%rbx\n sub $3, %%rcx\n sub $4, %%rdx\n sub $5, %%rsi\n"
		"sub $8, %%r8\n sub $9, %%r9\n sub $10, %%r10\n sub $11, %%r11\n"
		"sub $12, %%r12\n sub $13, %%r13\n sub $14, %%r14\n sub $15, %%r15\n"
		"or %%rax, %%rdi\n or %%rbx, %%rdi\n or %%rcx, %%rdi\n or %%rdx, %%rdi\n"
		"or %%rsi, %%rdi\n or %%r8, %%rdi\n or %%r9, %%rdi\n or %%r10, %%rdi\n"
		"or %%r11, %%rdi\n or %%r12, %%rdi\n or %%r13, %%rdi\n or %%r14, %%rdi\n"
		"or %%r15, %%rdi\n"
		"subq $0x1234567, -64(%%rsp)\n"
		"or -64(%%rsp), %%rdi\n"
		"movq %%xmm15, %%rax\n sub $1, %%rax\n or %%rax, %%rdi\n"
		"pextrq $1, %%xmm15, %%rax\n sub $4, %%rax\n or %%rax, %%rdi\n"
		"4: mov %%rdi, %0\n"
		: "=r"(bad) : "r"(turns)
		: "rax", "rbx", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "r12", "r13",
		  "r14", "r15", "xmm15", "memory", "cc");
	return bad;
}

static void registers_round(void)
{
	same("registers", registers_hold(2000000), 0);
}

static void sums_round(void)
{
	double sum = 0;

	for (int i = 1; i < 400000; i++)
		sum += 1 / (double)i / i;
	if (fabs(sum - 1.6449315668) > 1e-9)
		wrong("a sum", (long)(sum * 1e9), 1644931566);
}

static void nanosleep_round(void)
{
	struct timespec t = { 0, 20000000 };
	int64_t from = now_us();

	same("nanosleep", nanosleep(&t, NULL) ? errno : 0, 0);
	if (now_us() - from < 20000)
		wrong("it slept too short", now_us() - from, 20000);
}

static void until_round(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	t.tv_nsec += 15000000;
	t.tv_sec += t.tv_nsec / 1000000000;
	t.tv_nsec %= 1000000000;
	same("clock_nanosleep", clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL), 0);
}

static void poll_round(void)
{
	static int set;
	struct epoll_event e;
	struct timeval t = { 0, 9000 };
	uint32_t word = 0;
	struct timespec wait = { 0, 9000000 };

	set = set ? set : epoll_create1(0);
	same("poll", poll(NULL, 0, 9) ? errno : 0, 0);
	same("epoll_wait", epoll_wait(set, &e, 1, 9) ? errno : 0, 0);
	same("select", select(0, NULL, NULL, NULL, &t) ? errno : 0, 0);
	same("futex", syscall(SYS_futex, &word, FUTEX_WAIT, 0, &wait, 0, 0), -1);
	same("futex", errno, ETIMEDOUT);
}

static int pipes[2][2];

static void pipe_round(void)
{
	char byte = 'x';

	same("write", write(pipes[0][1], &byte, 1), 1);
	same("read", read(pipes[1][0], &byte, 1), 1);
	same("its byte", byte, 'y');
}

static void answer_round(void)
{
	char byte = 0;

	same("read", read(pipes[0][0], &byte, 1), 1);
	same("its byte", byte, 'x');
	byte = 'y';
	same("write", write(pipes[1][1], &byte, 1), 1);
}

/* A handler on a stack of its own, between any two instructions, that makes calls. */
static _Thread_local char stack[65536];
static atomic_long alarms;

static void handler(int sig)
{
	char here;

	same("the signal", sig, SIGUSR1);
	if (&here < stack || &here >= stack + sizeof(stack))
		wrong("the handler's stack", (long)&here, (long)stack);
	same("getppid", syscall(SYS_getppid), getppid());
	sched_yield();
	alarms++;
}

static void handled_round(void)
{
	stack_t want = { .ss_sp = stack, .ss_size = sizeof(stack) }, have;
	sigset_t mask;
	long before = alarms;

	same("sigaltstack", sigaltstack(&want, NULL), 0);
	for (int i = 0; i < 200; i++) {
		same("tgkill", syscall(SYS_tgkill, getpid(), gettid(), SIGUSR1), 0);
		same("registers", registers_hold(100), 0);
	}
	same("handlers", alarms - before, 200);
	same("sigaltstack", sigaltstack(NULL, &have), 0);
	same("its place", (long)have.ss_sp, (long)stack);
	same("pthread_sigmask", pthread_sigmask(SIG_BLOCK, NULL, &mask), 0);
	same("SIGUSR1 is blocked", sigismember(&mask, SIGUSR1), 0);
	same("SIGILL is blocked", sigismember(&mask, SIGILL), 0);
}

/* One waits for a signal, another sends it. */
static atomic_long asked, woken;

static void woke(int sig)
{
	(void)sig;
	woken++;
}

static void suspend_round(void)
{
	sigset_t mask;
	long want = woken + 1;

	same("pthread_sigmask", pthread_sigmask(SIG_BLOCK, NULL, &mask), 0);
	same("SIGUSR2 is not blocked", sigismember(&mask, SIGUSR2), 1);
	sigdelset(&mask, SIGUSR2);
	asked = want;
	same("sigsuspend", sigsuspend(&mask), -1);
	same("sigsuspend", errno, EINTR);
	same("it woke", woken, want);
}

static void wake_round(void)
{
	static long done;
	struct timespec t = { 0, 1000000 };

	nanosleep(&t, NULL);
	if (asked == done)
		return;
	done = asked;
	pthread_kill(suspended, SIGUSR2);
}

static void fork_round(void)
{
	struct timespec t = { 0, 3000000 };
	int status;
	pid_t pid = fork();

	if (!pid) {
		nanosleep(&t, NULL);
		_exit(7);
	}
	same("waitpid", waitpid(pid, &status, 0), pid);
	same("its status", status, 7 << 8);
	nanosleep(&t, NULL);
}

static void *thread_none(void *arg)
{
	return arg;
}

static void thread_round(void)
{
	struct timespec t = { 0, 2000000 };
	pthread_t one;
	void *got;

	same("pthread_create", pthread_create(&one, NULL, thread_none, &t), 0);
	same("pthread_join", pthread_join(one, &got), 0);
	same("its result", got == &t, 1);
	nanosleep(&t, NULL);
}

static void (*const things[])(void) = {
	registers_round, sums_round, nanosleep_round, until_round, poll_round, pipe_round,
	answer_round, handled_round, suspend_round, wake_round, fork_round, thread_round,
};
#define THINGS (sizeof(things) / sizeof(things[0]))

static void *thing_do(void *arg)
{
	size_t which = (size_t)arg;
	sigset_t usr2;

	sigemptyset(&usr2);
	sigaddset(&usr2, SIGUSR2);
	pthread_sigmask(SIG_BLOCK, &usr2, NULL);
	while (!over) {
		things[which]();
		rounds[which]++;
	}
	return NULL;
}

static void term(int sig)
{
	(void)sig;
	over = 1;
}

int main(void)
{
	struct sigaction on_stack = { .sa_handler = handler, .sa_flags = SA_ONSTACK | SA_RESTART };
	struct sigaction plain = { .sa_handler = woke, .sa_flags = SA_RESTART };
	struct timespec t = { 0, 50000000 };
	pthread_t one[THINGS];

	sigaction(SIGUSR1, &on_stack, NULL);
	sigaction(SIGUSR2, &plain, NULL);
	signal(SIGTERM, term);
	if (pipe(pipes[0]) || pipe(pipes[1]))
		return 1;
	for (size_t i = 0; i < THINGS; i++) {
		pthread_create(&one[i], NULL, thing_do, (void *)i);
		if (things[i] == suspend_round)
			suspended = one[i];
	}
	puts("ready");
	fflush(stdout);
	while (!over)
		nanosleep(&t, NULL);
	for (size_t i = 0; i < THINGS; i++)
		same("rounds", rounds[i] > 0, 1);
	puts("busy: ok");
	fflush(stdout);
	_exit(0);
}
