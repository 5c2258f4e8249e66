/*
 * Threads that lose a block each, and hold another by nothing but a register, in a call
 * that waits: a search for leaks at the end finds the former, all of them, and not the
 * latter.  What threads lose they have had on their stacks, below where these end now.
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define THREADS	4
#define LOST	777
#define HELD	555
#define KEY	0x5a5a000000000000ul	/* hides an address */

static int never[2], ready[2];

/* Calls deep enough that what it leaves is not written over at once. */
static __attribute__((noinline)) void lose(int depth)
{
	volatile char *block[8];

	if (depth) {
		lose(depth - 1);
	} else {
		block[4] = malloc(LOST);
		block[4][0] = 1;
	}
	block[0] = NULL;
}

static __attribute__((noinline)) uint64_t hold(void)
{
	return (uint64_t)malloc(HELD) ^ KEY;
}

/*
 * Says that it is ready and waits for ever, with the address in rbx alone from before it
 * says so: a follower's main thread does not sleep until it waits.
 */
static __attribute__((noinline)) void wait_holding(uint64_t hidden)
{
	char byte = 0;

	asm volatile("mov %0, %%rbx; mov %1, %%rcx; xor %%rcx, %%rbx; xor %%ecx, %%ecx\n\t"
		     "mov $1, %%eax; mov %2, %%edi; mov $1, %%edx; syscall\n\t"
		     "xor %%eax, %%eax; mov %3, %%edi; mov $1, %%edx; syscall"
		     : : "r"(hidden), "r"(KEY), "r"(ready[1]), "r"(never[0]), "S"(&byte)
		     : "rax", "rbx", "rcx", "rdx", "rdi", "r11", "memory");
}

static void *thread(void *arg)
{
	uint64_t hidden = hold();

	lose(3);
	wait_holding(hidden);
	return arg;
}

int main(void)
{
	char byte;

	if (pipe(never) || pipe(ready))
		return 1;
	for (int i = 0; i < THREADS; i++) {
		pthread_t t;

		if (pthread_create(&t, NULL, thread, NULL))
			return 1;
		pthread_detach(t);
	}
	for (int i = 0; i < THREADS; i++)
		if (read(ready[0], &byte, 1) != 1)
			return 1;
	usleep(200000);	/* until they wait, where it does sleep */
	printf("leaks: ok\n");
	return 0;
}
