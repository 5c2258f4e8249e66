/*
 * Arrays of frames that are large enough for the second stack: they go back where they stood, by
 * whomever the checkpoint was opened and taken back, and nobody's are another's: in functions that
 * return, that are left by longjmp, in handlers, on stacks of their own, and in threads.
 */
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>
#include <unistd.h>
#include <mve/checkpoint.h>

#define SIZE	8192
#define CHECK(cond)	do { \
	if (!(cond)) { \
		printf("line %d: %s: %s\n", __LINE__, #cond, mve_checkpoint_why()); \
		exit(1); \
	} } while (0)

static void all_are(const char *array, char byte)
{
	for (int n = 0; n < SIZE; n++)
		CHECK(array[n] == byte);
}

static __attribute__((noinline)) void filled(char *array, char byte)
{
	memset(array, byte, SIZE);
}

/* Takes the places of who has returned. */
static __attribute__((noinline)) void deep(int depth)
{
	char array[SIZE];

	filled(array, (char)depth);
	if (depth)
		deep(depth - 1);
	all_are(array, (char)depth);
}

/* Opened by a callee that returns, with an array of its own. */
static __attribute__((noinline)) int opens(void)
{
	char array[SIZE];
	int got;

	filled(array, 'o');
	got = mve_checkpoint_open();
	CHECK(got >= 0);
	all_are(array, 'o');
	filled(array, 'p');
	return got;
}

static __attribute__((noinline)) int stands(void)
{
	char array[SIZE];
	int got;

	filled(array, 's');
	got = opens();
	all_are(array, 's');
	if (got == 0) {
		filled(array, 't');
		array[77] = 'u';
	}
	return got;
}

/* Both have returned by then. */
static void callee(void)
{
	int got = stands();

	if (got == 0) {
		deep(12);
		mve_checkpoint_restore();
	}
	CHECK(got == 1 && mve_checkpoint_depth() == 0);
}

static __attribute__((noinline)) void nested_at(int depth)
{
	char array[SIZE];
	int got;

	filled(array, (char)depth);
	got = mve_checkpoint_open();
	CHECK(got >= 0);
	all_are(array, (char)depth);
	if (got == 1)
		return;
	filled(array, 'n');
	deep(3);
	if (depth < 6)
		nested_at(depth + 1);
	deep(2);
	if (depth % 2)
		CHECK(mve_checkpoint_drop() == 0);
	else
		mve_checkpoint_restore();
}

static jmp_buf back;

static __attribute__((noinline)) void jumps(int depth)
{
	char array[SIZE];

	filled(array, 'j');
	if (depth == 0)
		longjmp(back, 1);
	jumps(depth - 1);
	all_are(array, 'j');
}

static __attribute__((noinline)) uintptr_t place(void)
{
	char array[SIZE];
	uintptr_t volatile at = (uintptr_t)array;

	filled(array, 'x');
	return at;
}

/* What was left by a jump is had again. */
static void jumped(void)
{
	char array[SIZE];
	uintptr_t volatile at = place();

	filled(array, 'k');
	for (volatile int n = 0; n < 1000; n++) {
		if (setjmp(back) == 0)
			jumps(5);
		CHECK(place() == at);
		deep(2);
		all_are(array, 'k');
	}
}

static __attribute__((noinline)) void with_alloca(int size)
{
	char array[SIZE], *more = __builtin_alloca(size), vla[size];

	filled(array, 'a');
	memset(more, 'b', size);
	memset(vla, 'c', size);
	deep(2);
	all_are(array, 'a');
	CHECK(more[0] == 'b' && more[size - 1] == 'b' && vla[size - 1] == 'c');
}

static volatile sig_atomic_t handled;

static void on_signal(int sig)
{
	char array[SIZE];

	filled(array, (char)sig);
	deep(2);
	all_are(array, (char)sig);
	handled++;
}

static void handlers(void)
{
	static char room[1 << 17];
	stack_t other = { .ss_sp = room, .ss_size = sizeof(room) };
	struct sigaction action = { .sa_handler = on_signal, .sa_flags = SA_ONSTACK };
	char array[SIZE];

	sigaltstack(&other, NULL);
	sigaction(SIGUSR1, &action, NULL);
	signal(SIGUSR2, on_signal);
	filled(array, 'h');
	raise(SIGUSR1);
	raise(SIGUSR2);
	all_are(array, 'h');
	CHECK(handled == 2);
}

static ucontext_t loop, routine;

static void coroutine(void)
{
	char array[SIZE];

	for (int n = 0; n < 5; n++) {
		filled(array, 'r');
		swapcontext(&routine, &loop);
		all_are(array, 'r');
	}
}

static void contexts(void)
{
	static char room[1 << 17];

	getcontext(&routine);
	routine.uc_stack.ss_sp = room;
	routine.uc_stack.ss_size = sizeof(room);
	routine.uc_link = &loop;
	makecontext(&routine, coroutine, 0);
	for (int n = 0; n < 5; n++) {
		swapcontext(&loop, &routine);
		deep(3);
	}
}

static int ticks;

static void on_tick(int sig)
{
	char array[SIZE];

	ticks += sig > 0;
	filled(array, 'i');
}

/* A handler at any point of a function's beginning and end. */
static void interrupted(void)
{
	struct sigaction action = { .sa_handler = on_tick };
	timer_t timer;
	struct sigevent event = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGALRM };
	struct itimerspec often = { { 0, 20000 }, { 0, 20000 } }, never = { { 0, 0 }, { 0, 0 } };

	sigaction(SIGALRM, &action, NULL);
	CHECK(timer_create(CLOCK_MONOTONIC, &event, &timer) == 0);
	timer_settime(timer, 0, &often, NULL);
	for (int n = 0; n < 2000; n++)
		deep(4);
	timer_settime(timer, 0, &never, NULL);
	timer_delete(timer);
}

static void *thread(void *number)
{
	char array[SIZE];

	for (int n = 0; n < 200; n++) {
		filled(array, (char)(uintptr_t)number);
		deep(5);
		all_are(array, (char)(uintptr_t)number);
	}
	return NULL;
}

static void threads(void)
{
	pthread_t made[8];

	for (int turn = 0; turn < 5; turn++) {
		for (uintptr_t n = 0; n < 8; n++)
			CHECK(pthread_create(&made[n], NULL, thread, (void *)(n + 1)) == 0);
		for (int n = 0; n < 8; n++)
			pthread_join(made[n], NULL);
	}
}

int main(void)
{
	uintptr_t first = place();

	CHECK(first - 0x2000000000ul < 1ul << 30);
	for (int n = 0; n < 600; n++)	/* more than there are epochs */
		callee();
	for (int n = 0; n < 100; n++)
		nested_at(0);
	jumped();
	with_alloca(5000);
	handlers();
	contexts();
	interrupted();
	threads();
	deep(200);	/* more than there is room for */
	callee();
	CHECK(place() == first);
	puts("frames: ok");
}
