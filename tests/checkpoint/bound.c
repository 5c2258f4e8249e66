/*
 * What a checkpoint takes is bounded, whatever is written under it: gigabytes into the same
 * memory, into memory that comes and goes, and into new memory take no more than that memory and
 * its copy; what is more than the log can hold takes the log, is not restored, which is said, and
 * the next checkpoint has it back.
 *
 * What is in memory is asked of the kernel (RssAnon).
 */
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <mve/checkpoint.h>

#define MIB	(1024l * 1024)
#define LOG	1024		/* docs/limits.md; in MiB, as all that follows */
#define BLOCK	64
#define ROUNDS	32
#define LARGE	1536
#define SLACK	32		/* tags, what is kept of the log, and the allocator's */

static long begun;

/* The number behind a word in a file of /proc, in MiB. */
static long told(const char *file, const char *word)
{
	static char text[8192];
	int fd = open(file, O_RDONLY);
	ssize_t n = read(fd, text, sizeof(text) - 1);
	char *at;

	close(fd);
	text[n < 0 ? 0 : n] = '\0';
	at = strstr(text, word);
	return at ? atol(at + strlen(word)) / 1024 : 0;
}

static long taken(void)
{
	return told("/proc/self/status", "RssAnon:") - begun;
}

static void bounded(const char *what, long most)
{
	long now = taken();

	if (now <= most)
		return;
	printf("%s: %ld MiB more than before, at most %ld were allowed\n", what, now, most);
	exit(1);
}

static void must(int is, const char *what)
{
	if (is)
		return;
	printf("%s: %s\n", what, mve_checkpoint_why());
	exit(1);
}

/* All of it is written, though nothing reads it. */
static void fill(char *at, char byte, size_t size)
{
	memset(at, byte, size);
	__asm__ volatile("" : : "r"(at) : "memory");
}

static char *filled(size_t size)
{
	char *at = malloc(size);

	must(at != NULL, "no memory");
	fill(at, 1, size);
	return at;
}

static int all_are(const char *at, size_t size, char byte)
{
	return at[0] == byte && !memcmp(at, at + 1, size - 1);
}

/* Gigabytes into the same bytes. */
static void again(void)
{
	char *at = filled(BLOCK * MIB);

	begun = taken() + begun;
	if (mve_checkpoint_open() == 0) {
		for (int n = 0; n < ROUNDS; n++)
			fill(at, (char)(n + 2), BLOCK * MIB);
		bounded("the same bytes again", BLOCK * 9 / 8 + SLACK);
		mve_checkpoint_restore();
		must(0, "not restored");
	}
	must(all_are(at, BLOCK * MIB, 1), "not as it was");
	free(at);
}

/* Mappings that come and go. */
static void mapped(void)
{
	begun = taken() + begun;
	if (mve_checkpoint_open() == 0) {
		for (int n = 0; n < ROUNDS; n++) {
			char *at = mmap(NULL, BLOCK * MIB, PROT_READ | PROT_WRITE,
					MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

			must(at != MAP_FAILED, "not mapped");
			fill(at, (char)(n + 1), BLOCK * MIB);
			bounded("mappings that come and go", BLOCK + SLACK);
			munmap(at, BLOCK * MIB);
		}
		mve_checkpoint_restore();
		must(0, "not restored");
	}
	bounded("mappings that came and went", SLACK);
}

/* Blocks that come and go, each larger than those before. */
static void blocks(void)
{
	begun = taken() + begun;
	if (mve_checkpoint_open() == 0) {
		for (int n = 1; n <= BLOCK; n++) {
			free(filled(n * MIB));
			bounded("blocks that come and go", BLOCK + SLACK);
		}
		mve_checkpoint_restore();
		must(0, "not restored");
	}
	bounded("blocks that came and went", SLACK);
}

/* Gigabytes of new blocks need no copy. */
static void fresh(void)
{
	begun = taken() + begun;
	if (mve_checkpoint_open() == 0) {
		for (int n = 0; n < LARGE / BLOCK; n++)
			filled(BLOCK * MIB);
		bounded("new blocks", LARGE + SLACK);
		mve_checkpoint_restore();
		must(0, "not restored");
	}
	bounded("new blocks that were taken back", SLACK);
}

/* Small blocks that are free, and all round the one that is not. */
static void trimmed(void)
{
	enum { BLOCKS = BLOCK * MIB / 1000 };
	static char *at[BLOCKS];

	begun = taken() + begun;
	for (int n = 0; n < BLOCKS; n++)
		at[n] = filled(1000);
	for (int n = 0; n < BLOCKS; n++)
		if (n != BLOCKS / 2)
			free(at[n]);
	malloc_trim(0);
	bounded("small blocks, trimmed", 2);
	must(all_are(at[BLOCKS / 2], 1000, 1), "a block that was not free");
	for (int n = 0; n < BLOCKS; n++)
		if (n != BLOCKS / 2)
			at[n] = filled(n % 7 * 300 + 1);
	for (int n = 0; n < BLOCKS; n++)
		free(at[n]);
	malloc_trim(0);
	bounded("small blocks, again", 2);
}

/* More than the log can hold. */
static void beyond(void)
{
	char *at = filled(LARGE * MIB);

	begun = taken() + begun;
	must(mve_checkpoint_open() == 0, "not opened");
	fill(at, 2, LARGE * MIB);
	bounded("more than the log can hold", LOG + SLACK);
	must(mve_checkpoint_restore() == -ENOSPC, "restored");
	must(!strcmp(mve_checkpoint_why(), "more was written than the log can hold"), "said");
	must(all_are(at, LARGE * MIB, 2), "half of it was restored");
	if (mve_checkpoint_open() == 0) {
		bounded("and at the next checkpoint", SLACK);
		at[0] = 3;
		mve_checkpoint_restore();
		must(0, "not restored");
	}
	must(at[0] == 2, "the next one");
	free(at);
}

int main(void)
{
	if (told("/proc/meminfo", "MemAvailable:") < 4 * LARGE) {
		puts("not enough memory here");
		return 77;
	}
	again();
	mapped();
	blocks();
	fresh();
	trimmed();
	beyond();
	puts("bound: ok");
	return 0;
}
