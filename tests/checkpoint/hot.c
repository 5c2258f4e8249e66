/*
 * What requests write again and again is saved as the checkpoint is opened. It goes back as the
 * rest does, whether or not it is written this time; what can no longer be read is let alone, and
 * what is another thread's own.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <mve/checkpoint.h>

#define CHECK(cond)	do { \
	if (!(cond)) { \
		printf("line %d: %s: %s\n", __LINE__, #cond, mve_checkpoint_why()); \
		exit(1); \
	} } while (0)

#define ROUNDS	600	/* more than there are epochs */
#define PAGES	4

static char data[8192], before[8192];
static char *heap, *pages;

static unsigned long ahead(void)
{
	struct mve_checkpoint_counts counts;

	mve_checkpoint_counts(&counts);
	return counts.ahead;
}

static void change(int round)
{
	for (size_t n = 0; n < sizeof(data); n += 300)
		data[n] = (char)(round + 1);
	for (size_t n = 0; n < 4096; n += 128 * (1 + round % 3))
		heap[n] = (char)(round + 2);
	data[round * 7 % sizeof(data)]++;
}

/* Within another one at times, of which the inner one is dropped. */
static void request(int round)
{
	change(round);
	if (round % 5)
		return;
	CHECK(mve_checkpoint_open() == 0);
	change(round + 1);
	CHECK(mve_checkpoint_drop() == 0);
}

static __attribute__((noinline)) void turn(int round, char *heap_before)
{
	int got;

	memcpy(before, data, sizeof(data));
	memcpy(heap_before, heap, 4096);
	got = mve_checkpoint_open();
	CHECK(got >= 0);
	if (got == 1) {
		CHECK(!memcmp(before, data, sizeof(data)) && !memcmp(heap_before, heap, 4096));
		return;
	}
	request(round);
	if (round % 11 == 10)
		mve_checkpoint_restore();
	CHECK(mve_checkpoint_drop() == 0);
}

/* Pages of the heap that the program shuts. */
static void shut(int how)
{
	CHECK(mprotect(pages, PAGES * 4096, how) == 0);
}

static void write_pages(void)
{
	CHECK(mve_checkpoint_open() == 0);
	for (int n = 0; n < PAGES * 4096; n += 64)
		pages[n]++;
	CHECK(mve_checkpoint_drop() == 0);
}

static void unreadable(void)
{
	unsigned long was;

	pages = aligned_alloc(4096, PAGES * 4096);
	memset(pages, 0, PAGES * 4096);
	for (int n = 0; n < 5; n++)
		write_pages();
	was = ahead();
	write_pages();
	CHECK(ahead() - was >= PAGES * 4096 / 512);
	shut(PROT_NONE);
	CHECK(mve_checkpoint_open() == 0);
	CHECK(mve_checkpoint_drop() == 0);
	shut(PROT_READ | PROT_WRITE);
	CHECK(pages[64] == 6);
}

/* Two blocks change places at each checkpoint; and then the turns are the other way round, as if
 * one request had been another. */
static char *block[2];

static int other(int round)
{
	return (round ^ (round > ROUNDS / 2)) & 1;
}

static void every_other(void)
{
	struct mve_checkpoint_counts was, now;
	int wasted = 0;	/* and there is no room for what both write */

	block[0] = calloc(2, 16 << 10);
	block[1] = block[0] + (16 << 10);
	for (int round = 0; round < ROUNDS; round++) {
		mve_checkpoint_counts(&was);
		CHECK(mve_checkpoint_open() == 0);
		for (int n = 0; n < 40; n++)
			block[other(round)][n * 400] = (char)(round + 1);
		CHECK(mve_checkpoint_drop() == 0);
		mve_checkpoint_counts(&now);
		wasted += now.ahead - was.ahead < 40 || now.ahead - was.ahead > 50;
	}
	CHECK(wasted < ROUNDS / 10);
	free(block[0]);
}

/* A thread that has opened checkpoints, and has an array on its stack, writes there while another
 * one's is open. */
#define ARRAY	9000

static int turn_of[2][2];

static void hand_over(int from)
{
	char byte = 'b';

	CHECK(write(turn_of[!from][1], &byte, 1) == 1);
	CHECK(read(turn_of[from][0], &byte, 1) == 1);
}

static __attribute__((noinline)) void array_fill(char *array, char with)
{
	for (size_t n = 0; n < ARRAY; n += 300)
		array[n] = with;
}

static void *has_array(void *unused)
{
	char array[ARRAY];

	for (int n = 0; n < 40; n++) {
		CHECK(mve_checkpoint_open() == 0);
		array_fill(array, (char)n);
		CHECK(mve_checkpoint_drop() == 0);
	}
	hand_over(1);
	array_fill(array, 'a');
	hand_over(1);
	for (size_t n = 0; n < sizeof(array); n += 300)
		CHECK(array[n] == 'a');
	return unused;
}

static void two_threads(void)
{
	pthread_t made;
	char byte;
	int got;

	CHECK(pipe(turn_of[0]) == 0 && pipe(turn_of[1]) == 0);
	CHECK(pthread_create(&made, NULL, has_array, NULL) == 0);
	CHECK(read(turn_of[0][0], &byte, 1) == 1);
	got = mve_checkpoint_open();
	CHECK(got >= 0);
	if (got == 0) {
		hand_over(0);
		mve_checkpoint_restore();
	}
	CHECK(write(turn_of[1][1], &byte, 1) == 1);
	CHECK(pthread_join(made, NULL) == 0);
}

int main(void)
{
	two_threads();
	every_other();
	char *heap_before = malloc(4096);

	heap = malloc(4096);
	memset(heap, 1, 4096);
	for (int round = 0; round < ROUNDS; round++)
		turn(round, heap_before);
	CHECK(ahead() > ROUNDS * 10);
	unreadable();
	puts("hot: ok");
}
