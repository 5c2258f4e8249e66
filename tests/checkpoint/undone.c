/*
 * What is undone beside stores: malloc and free, mmap and munmap, the break, the stack, and what
 * libc writes for the program.  Each case changes, goes back, and looks.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
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

/* Runs a function under a checkpoint and takes it back. */
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

static char *blocks[64];

static void allocate(void)
{
	for (int i = 0; i < 64; i++) {
		blocks[i] = malloc(16 + 37 * i * i);
		memset(blocks[i], 'x', 16 + 37 * i * i);
	}
	for (int i = 0; i < 64; i += 3)
		free(blocks[i]);
}

/* One that the compiler does not do without. */
static __attribute__((noinline)) char *kept_block(size_t size)
{
	char *volatile block = malloc(size);

	return block;
}

/* The same requests find the same places, as if the first had never been. */
static void heap(void)
{
	char *first, *old = malloc(300), *again;

	strcpy(old, "kept");
	first = kept_block(100);
	free(first);
	for (int i = 0; i < 100; i++) {
		taken_back(allocate);
		CHECK(blocks[7] == NULL && !strcmp(old, "kept"));
	}
	again = kept_block(100);
	CHECK(again == first);
	free(again);
	free(old);
}

static char *given;

static void give_back(void)
{
	memset(given, 'y', 200);
	free(given);
	for (int i = 0; i < 50; i++)
		memset(malloc(200), 'z', 200);
}

static void freed(void)
{
	given = malloc(200);
	memset(given, 'a', 200);
	taken_back(give_back);
	for (int i = 0; i < 200; i++)
		CHECK(given[i] == 'a');
	free(given);
}

struct record {
	long word[25];
};

static struct record *volatile latest;

/* Who writes what was just allocated, and was another's. */
static void allocate_again(void)
{
	free(given);
	for (int i = 0; i < 50; i++) {
		struct record *new = malloc(sizeof(*new));

		new->word[1] = new->word[20] = new->word[24] = i;
		latest = new;
	}
}

static void reused(void)
{
	given = malloc(sizeof(struct record));
	memset(given, 'r', sizeof(struct record));
	taken_back(allocate_again);
	for (size_t i = 0; i < sizeof(struct record); i++)
		CHECK(given[i] == 'r');
	free(given);
}

static char *mapping, *other;
static int told[2];

static void maps(void)
{
	char *got = mmap(NULL, 1 << 16, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	CHECK(got != MAP_FAILED);
	got[5] = 'n';
	CHECK(write(told[1], &got, sizeof(got)) == sizeof(got));
	mapping[0] = 'q';
	munmap(mapping, 4096);
	sbrk(8192);
}

static int is_mapped(const char *at)
{
	return write(told[1], at, 1) == 1;
}

static void mappings(void)
{
	void *end = sbrk(0);

	CHECK(pipe(told) == 0);
	mapping = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	mapping[0] = 'p';
	taken_back(maps);
	CHECK(read(told[0], &other, sizeof(other)) == sizeof(other));
	CHECK(mapping[0] == 'p' && !is_mapped(other) && sbrk(0) == end);
	CHECK(mve_checkpoint_open() == 0);
	munmap(mapping, 4096);
	CHECK(is_mapped(mapping));
	mve_checkpoint_drop();
	CHECK(!is_mapped(mapping));
}

static char text[64] = "before", more[64] = "more";

static void by_libc(void)
{
	int zero = open("/dev/zero", O_RDONLY);

	CHECK(read(zero, text, 40) == 40);
	snprintf(more, sizeof(more), "%d %s", 5, "words");
	strcpy(more + 20, "further");
	close(zero);
}

static void libc(void)
{
	taken_back(by_libc);
	CHECK(!strcmp(text, "before") && !strcmp(more, "more") && !more[20]);
}

static void by_itself(void)
{
	int n = rand();

	CHECK(write(told[1], &n, sizeof(n)) == sizeof(n));
	free(strdup("of libc's heap"));
	fputs("said in a request that was taken back\n", stdout);
	strtok(NULL, ",");
}

/* What libc keeps itself: its numbers, its heap, what waits to be written, where it stands. */
static void libraries(void)
{
	char words[] = "one,two,three";
	int first, next;

	CHECK(pipe(told) == 0);
	srand(3);
	strtok(words, ",");
	for (int i = 0; i < 3; i++) {
		taken_back(by_itself);
		CHECK(read(told[0], &next, sizeof(next)) == sizeof(next));
		CHECK(i == 0 || next == first);
		first = next;
	}
	CHECK(rand() == first && !strcmp(strtok(NULL, ","), "two"));
	CHECK(mve_checkpoint_open() == 0);
	rand();
	taken_back(by_itself);
	CHECK(read(told[0], &next, sizeof(next)) == sizeof(next));
	CHECK(rand() == next);
	mve_checkpoint_drop();
}

static void crash(void)
{
	strcpy(text, "in the middle");
	*(volatile int *)8 = 1;
}

static char *volatile sealed;

static void crash_sealed(void)
{
	strcpy(text, "in the middle");
	*sealed = 1;
}

static void on_fault(int sig)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, sig);
	sigprocmask(SIG_UNBLOCK, &set, NULL);
	mve_checkpoint_restore();
	_exit(9);
}

static void fault(void)
{
	signal(SIGSEGV, on_fault);
	for (int i = 0; i < 10; i++) {
		taken_back(crash);
		CHECK(!strcmp(text, "before"));
	}
	sealed = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	taken_back(crash_sealed);
	CHECK(!strcmp(text, "before"));
	signal(SIGSEGV, SIG_DFL);
}

static void standing_stack(void)
{
	char frame[1000];
	volatile int here = 5;
	int got;

	memset(frame, 'f', sizeof(frame));
	got = mve_checkpoint_open();
	CHECK(got >= 0);
	if (got == 0) {
		here = 6;
		memset(frame, 'g', sizeof(frame));
		mve_checkpoint_restore();
	}
	CHECK(here == 5 && frame[0] == 'f' && frame[999] == 'f');
}

static void depth(void)
{
	CHECK(mve_checkpoint_drop() == -ENOENT && mve_checkpoint_restore() == -ENOENT);
	for (int i = 0; i < MVE_CHECKPOINT_DEPTH; i++)
		CHECK(mve_checkpoint_open() == 0);
	CHECK(mve_checkpoint_open() == -EMFILE);
	for (int i = 0; i < MVE_CHECKPOINT_DEPTH; i++)
		CHECK(mve_checkpoint_drop() == 0);
	CHECK(mve_checkpoint_depth() == 0);
}

/* What cannot be undone is said when it is asked for, and the program goes on. */
static void lost(void)
{
	char *at = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	CHECK(mve_checkpoint_open() == 0);
	CHECK(mmap(at, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == at);
	CHECK(mve_checkpoint_restore() == -ENOTSUP);
	CHECK(strstr(mve_checkpoint_why(), "fixed place") && mve_checkpoint_depth() == 0);
	munmap(at, 8192);
}

/* So are rights and contents of what was there before; of what is new both go. */
static void lost_in_part(int (*change)(void *, size_t, int), int how, const char *words)
{
	char *at = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	memset(at, 'k', 8192);
	CHECK(mve_checkpoint_open() == 0);
	CHECK(change(at + 4096, 4096, how) == 0);
	CHECK(mve_checkpoint_restore() == -ENOTSUP && strstr(mve_checkpoint_why(), words));
	munmap(at, 8192);
}

static void change_new(void)
{
	char *at = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	CHECK(mprotect(at, 4096, PROT_NONE) == 0);
	CHECK(madvise(at + 4096, 4096, MADV_DONTNEED) == 0);
}

/* Six arguments in registers, and some words in a frame that no call would need: what a check that
 * fails calls leaves all of them as they were. */
static char far[8][1024];

static __attribute__((noinline)) unsigned long leaf(unsigned long a, unsigned long b,
						    unsigned long c, unsigned long d, char *to,
						    size_t size)
{
	volatile unsigned long kept[4] = { a, b, c, d };

	*(int *)(to + 508) = 1;
	memset(to, 'l', size);
	to[1023] = 'l';
	return kept[0] + 10 * kept[1] + 100 * kept[2] + 1000 * kept[3] + a + b + c + d + size;
}

static void leaves(void)
{
	for (size_t n = 0; n < 8; n++)
		CHECK(leaf(1, 2, 3, 4, far[n], 100 * n) == 4321 + 10 + 100 * n);
	for (size_t n = 1; n < 8; n++)
		CHECK(far[n][0] == 'l' && far[n][100 * n - 1] == 'l');
}

static void registers(void)
{
	for (int i = 0; i < 600; i++) {
		taken_back(leaves);
		for (size_t n = 0; n < sizeof(far); n++)
			CHECK(!far[0][n]);
	}
}

/* Memory that is zero and becomes zero is not saved, so what is stored there behind that is. */
static char zeros[64 << 10];

static __attribute__((noinline)) void zero(char *at, size_t size, char *one)
{
	memset(at, 0, size);
	*one = 'o';
	at[1] = 'a';
}

static void zero_all(void)
{
	memset(zeros, 0, sizeof(zeros));
	zeros[3] = 'c';
	zero(zeros, sizeof(zeros), zeros + 5000);
	zero(zeros + 777, 100, zeros + 776);
}

static void zeroed(void)
{
	struct mve_checkpoint_counts before, after;

	taken_back(zero_all);
	for (size_t n = 0; n < sizeof(zeros); n++)
		CHECK(!zeros[n]);
	memset(zeros + 20000, 'z', 3000);
	mve_checkpoint_counts(&before);
	taken_back(zero_all);
	mve_checkpoint_counts(&after);
	CHECK(after.regions - before.regions < 3000 / 32 + 64);
	for (size_t n = 0; n < sizeof(zeros); n++)
		CHECK(zeros[n] == (n - 20000 < 3000 ? 'z' : 0));
}

int main(void)
{
	zeroed();
	registers();
	heap();
	freed();
	reused();
	mappings();
	libc();
	libraries();
	fault();
	standing_stack();
	depth();
	lost();
	lost_in_part(mprotect, PROT_READ, "rights");
	lost_in_part(madvise, MADV_DONTNEED, "thrown away");
	taken_back(change_new);
	puts("undone: ok");
}
