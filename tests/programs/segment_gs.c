/*
 * A program that uses GS itself (Wine, some Go and Windows ports do): set by
 * arch_prctl, kept over calls, threads and fork, and read through %gs:.
 */
#include <asm/prctl.h>
#include <pthread.h>
#include "check.h"

static unsigned long read_gs(void)
{
	unsigned long value;

	asm volatile("mov %%gs:0, %0" : "=r"(value));
	return value;
}

static void use_gs(unsigned long magic)
{
	unsigned long block[8] = { magic }, seen = 0;

	CHECK_EQ(raw3(SYS_arch_prctl, ARCH_SET_GS, block, 0), 0);
	for (int i = 0; i < 1000; i++) {
		CHECK_EQ(read_gs(), magic);
		CHECK_EQ(raw0(SYS_getpid), getpid());
	}
	CHECK_EQ(raw3(SYS_arch_prctl, ARCH_GET_GS, &seen, 0), 0);
	CHECK_EQ(seen, (unsigned long)block);
	CHECK_EQ(raw3(SYS_arch_prctl, ARCH_SET_GS, 0, 0), 0);
}

static void *thread(void *arg)
{
	use_gs((unsigned long)arg);
	return NULL;
}

static void in_child(void)
{
	use_gs(77);
}

int main(void)
{
	pthread_t threads[4];

	use_gs(1);
	for (long i = 0; i < 4; i++)
		CHECK_EQ(pthread_create(&threads[i], NULL, thread, (void *)(i + 2)), 0);
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	IN_CHILD(in_child);
	return passed("segment_gs");
}
