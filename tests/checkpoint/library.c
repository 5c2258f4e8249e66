/*
 * What libraries keep goes back, and is looked at only for a checkpoint under which the program
 * has called one: by a name, by a pointer in its data, by one that dlsym() gave; where a library
 * has called the program and goes on once a checkpoint is open; where another thread is in one.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <dlfcn.h>
#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <mve/checkpoint.h>

#define CHECK(cond)	do { \
	if (!(cond)) { \
		printf("line %d: %s: %s\n", __LINE__, #cond, mve_checkpoint_why()); \
		exit(1); \
	} } while (0)

static int told[2];
static char text[64];

static unsigned long looks(void)
{
	struct mve_checkpoint_counts c;

	mve_checkpoint_counts(&c);
	return c.looks;
}

static __attribute__((noinline)) void taken_back(void (*function)(void))
{
	int got = mve_checkpoint_open();

	CHECK(got >= 0);
	if (got == 1)
		return;
	function();
	mve_checkpoint_restore();
	CHECK(!"it did not go back");
}

/* What a request mostly does. */
static void no_library(void)
{
	char *block = malloc(1000), name[64];
	struct statvfs files;

	snprintf(name, sizeof(name), "%d %s", 5, "words");
	strcpy(block, name);
	memcpy(text, block, 5);
	CHECK(write(told[1], text, 5) == 5 && read(told[0], text + 10, 5) == 5);
	CHECK(chdir(".") == 0 && getpgrp() > 0 && inet_addr("127.0.0.1") == htonl(0x7f000001));
	CHECK(strtof(block, NULL) == 5 && statvfs(".", &files) == 0);
	free(block);
}

static int (*kept)(void) = rand;
static int (*found)(void);
static int (*const *which)(void);

static void one_number(void)
{
	int n = (*which)();

	CHECK(write(told[1], &n, sizeof(n)) == sizeof(n));
}

static int told_number(void)
{
	int n;

	CHECK(read(told[0], &n, sizeof(n)) == sizeof(n));
	return n;
}

/* However the function is reached, it goes back, and one look is enough. */
static void by_pointer(int (*const *pointer)(void))
{
	unsigned long before = looks();
	int first;

	which = pointer;
	srand(7);
	taken_back(one_number);
	first = told_number();
	for (int n = 0; n < 5; n++) {
		taken_back(one_number);
		CHECK(told_number() == first);
	}
	CHECK(rand() == first && looks() == before + 6);
}

static void pointers(void)
{
	static int (*copied)(void);
	int (*const named)(void) = rand;

	by_pointer(&named);
	by_pointer(&kept);
	memcpy(&copied, &kept, sizeof(kept));
	by_pointer(&copied);
	found = (int (*)(void))dlsym(RTLD_DEFAULT, "rand");
	by_pointer(&found);
}

static char *blocks[8];

/* Blocks of libc's lie beside one another; its words about them lie between. */
static void neighbours(void)
{
	strcpy(blocks[1], "one");
	free(blocks[2]);
	strcpy(blocks[3], "three");
	free(blocks[4]);
	blocks[2] = strdup("this is larger than it was");
	strcpy(blocks[5], "five");
	free(blocks[3]);
	for (int n = 0; n < 20; n++)
		memset(strdup("twenty of them"), 'x', 14);
}

/* So large that libc would unmap it. */
#define LARGE	(4ul << 20)

static char *large;

static void large_goes(void)
{
	memset(large, 'x', LARGE);
	free(large);
}

static void large_block(void)
{
	char *words = malloc(LARGE + 1);

	memset(words, 'a', LARGE);
	words[LARGE] = '\0';
	large = strdup(words);
	taken_back(large_goes);
	CHECK(!strcmp(large, words));
	free(large);
	free(words);
}

/* As a library calls it: libc clears nothing of what its heap has just grown by. */
static void *(*libc_calloc)(size_t, size_t);

static void libc_grows(void)
{
	CHECK(libc_calloc(1, LARGE));
}

static void grows_again(void)
{
	long before = syscall(SYS_brk, 0);

	for (int round = 0; round < 10; round++)
		taken_back(libc_grows);
	CHECK(syscall(SYS_brk, 0) == before);
}

/* First of all it has not begun. */
static void libc_break(void)
{
	char *block;

	libc_calloc = (void *(*)(size_t, size_t))dlsym(RTLD_DEFAULT, "calloc");
	grows_again();
	free(libc_calloc(1, 1));
	grows_again();
	block = libc_calloc(1, 2 * LARGE);
	for (size_t n = 0; n < 2 * LARGE; n++)
		CHECK(!block[n]);
	free(block);
}

static void libc_blocks(void)
{
	for (int n = 0; n < 8; n++)
		blocks[n] = strdup("as it was");
	CHECK(malloc_usable_size(blocks[0]) >= sizeof("as it was"));
	for (int round = 0; round < 50; round++) {
		taken_back(neighbours);
		for (int n = 0; n < 8; n++)
			CHECK(!strcmp(blocks[n], "as it was"));
	}
	for (int n = 0; n < 8; n++)
		free(blocks[n]);
	for (int n = 0; n < 100; n++)
		CHECK(strdup("all is well"));
}

/*
 * qsort() has a block of libc's heap to merge in: a checkpoint is opened in the middle of that, by
 * the function that it calls, and restored a hundred calls later.
 */
#define NUMBERS	300

static int calls, opens_at, restored;

static int compare(const void *a, const void *b)
{
	int got;

	if (++calls == opens_at) {
		got = mve_checkpoint_open();
		CHECK(got >= 0);
		restored |= got;
	} else if (calls == opens_at + 100) {
		if (restored)
			mve_checkpoint_drop();
		else
			mve_checkpoint_restore();
	}
	return *(const int *)a - *(const int *)b;
}

static void called_back(void)
{
	int numbers[NUMBERS];

	for (opens_at = 100; opens_at < 1200; opens_at += 37) {
		for (int n = 0; n < NUMBERS; n++)
			numbers[n] = n * 7 % NUMBERS;
		calls = restored = 0;
		qsort(numbers, NUMBERS, sizeof(numbers[0]), compare);
		for (int n = 1; n < NUMBERS; n++)
			CHECK(numbers[n - 1] <= numbers[n]);
		CHECK(restored);
	}
}

/* Pages that each look finds written, and one that few find; written without a checkpoint, and
 * under one that is dropped, too. */
static void often(void)
{
	static int (*seldom)(void);

	*(void **)&seldom = dlsym(RTLD_DEFAULT, "lrand48");
	for (int n = 0; n < 1000; n++) {
		which = n % 30 ? &kept : &seldom;
		taken_back(one_number);
		CHECK(told_number() == (*which)());
		CHECK(mve_checkpoint_open() == 0);
		(*which)();
		mve_checkpoint_drop();
	}
}

static void nothing(void)
{
}

/* It comes out of its library while a checkpoint is open, and no call says so. */
static void *reads(void *file)
{
	char line[16];

	CHECK(fgets(line, sizeof(line), file));
	CHECK(write(told[1], line, 1) == 1);
	return NULL;
}

static void other_thread(void)
{
	unsigned long before;
	pthread_t thread;
	int ends[2];
	FILE *file;

	CHECK(pipe(ends) == 0);
	file = fdopen(ends[0], "r");
	pthread_create(&thread, NULL, reads, file);
	for (before = looks(); looks() == before; usleep(1000))
		taken_back(nothing);
	CHECK(write(ends[1], "x\n", 2) == 2 && read(told[0], text, 1) == 1);
	pthread_join(thread, NULL);
	before = looks();
	taken_back(no_library);
	CHECK(looks() == before);
}

int main(void)
{
	unsigned long before;

	CHECK(pipe(told) == 0);
	libc_break();
	before = looks();
	for (int n = 0; n < 1000; n++)
		taken_back(no_library);
	CHECK(looks() == before);
	pointers();
	often();
	libc_blocks();
	large_block();
	called_back();
	other_thread();
	puts("library: ok");
}
