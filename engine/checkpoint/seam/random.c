/*
 * rand, random and what belongs to them, with libc's sequences: libc writes the table that it keeps
 * at each number, and so a request that asks for one would cost a look at the memory of libraries.
 * This table is the program's and goes back as such, and so does one that the program has given.
 *
 * All have these, libraries too, whose numbers come from the same table; a program's own take their
 * place.
 */
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include "engine/checkpoint/seam/calls.h"

extern char __libc_single_threaded;

#define OURS	__attribute__((weak, visibility("default")))

/* What is there if nobody has given one: the first word says of what kind it is. */
#define TABLE_WORDS	32

static struct {
	pthread_mutex_t latch;
	struct random_data data;
	int32_t table[TABLE_WORDS];
} numbers __attribute__((aligned(256))) = { .latch = PTHREAD_MUTEX_INITIALIZER };

/* The table in use, its first word included; that of the simplest kind has two. */
static size_t table_bytes(void)
{
	int words = numbers.data.rand_deg ? numbers.data.rand_deg : 1;

	return (1 + (size_t)words) * sizeof(int32_t);
}

/* All of it is about to be written.  Without a seed it is as if that were 1. */
static struct random_data *enter(void)
{
	struct random_data *data = &numbers.data;

	seam_written(&numbers, sizeof(numbers));
	if (!__libc_single_threaded)
		pthread_mutex_lock(&numbers.latch);
	if (!data->state)
		initstate_r(1, (char *)numbers.table, sizeof(numbers.table), data);
	else if (data->state != numbers.table + 1)
		seam_written(data->state - 1, table_bytes());
	return data;
}

static void leave(void)
{
	if (!__libc_single_threaded)
		pthread_mutex_unlock(&numbers.latch);
}

OURS long random(void)
{
	int32_t got;

	random_r(enter(), &got);
	leave();
	return got;
}

OURS int rand(void)
{
	return (int)random();
}

OURS void srandom(unsigned seed)
{
	srandom_r(seed, enter());
	leave();
}

OURS void srand(unsigned seed)
{
	srandom(seed);
}

OURS char *initstate(unsigned seed, char *table, size_t size)
{
	struct random_data *data = enter();
	char *old = (char *)(data->state - 1);

	seam_written(table, size);
	if (initstate_r(seed, table, size, data) < 0)
		old = NULL;
	leave();
	return old;
}

OURS char *setstate(char *table)
{
	struct random_data *data = enter();
	char *old = (char *)(data->state - 1);

	if (setstate_r(table, data) < 0)
		old = NULL;
	leave();
	return old;
}
