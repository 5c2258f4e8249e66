/*
 * What libraries keep goes back, and is looked at only for a checkpoint under which the program
 * has called one: by a name, by a pointer in its data, by one that dlsym() gave; where a library
 * has called the program and goes on once a checkpoint is open; where another thread is in one.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <malloc.h>
#include <netdb.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <sys/xattr.h>
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

typedef long number_function(void);

static number_function *kept = lrand48;
static number_function *found;
static number_function *const *which;

static void one_number(void)
{
	long n = (*which)();

	CHECK(write(told[1], &n, sizeof(n)) == sizeof(n));
}

static long told_number(void)
{
	long n;

	CHECK(read(told[0], &n, sizeof(n)) == sizeof(n));
	return n;
}

/* However the function is reached, it goes back, and one look is enough. */
static void by_pointer(number_function *const *pointer)
{
	unsigned long before = looks();
	long first;

	which = pointer;
	srand48(7);
	taken_back(one_number);
	first = told_number();
	for (int n = 0; n < 5; n++) {
		taken_back(one_number);
		CHECK(told_number() == first);
	}
	CHECK(lrand48() == first && looks() == before + 6);
}

static void pointers(void)
{
	static number_function *copied;
	number_function *const named = lrand48;

	by_pointer(&named);
	by_pointer(&kept);
	memcpy(&copied, &kept, sizeof(kept));
	by_pointer(&copied);
	found = (number_function *)dlsym(RTLD_DEFAULT, "lrand48");
	by_pointer(&found);
}

static char *blocks[8];

/* As a library calls it; the program's own has a block of its heap. */
static char *(*libc_strdup)(const char *);

/* Blocks of libc's lie beside one another; its words about them lie between. */
static void neighbours(void)
{
	strcpy(blocks[1], "one");
	free(blocks[2]);
	strcpy(blocks[3], "three");
	free(blocks[4]);
	blocks[2] = libc_strdup("this is larger than it was");
	strcpy(blocks[5], "five");
	free(blocks[3]);
	for (int n = 0; n < 20; n++)
		memset(libc_strdup("twenty of them"), 'x', 14);
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
	large = libc_strdup(words);
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
	libc_strdup = (char *(*)(const char *))dlsym(RTLD_DEFAULT, "strdup");
	for (int n = 0; n < 8; n++)
		blocks[n] = libc_strdup("as it was");
	CHECK(malloc_usable_size(blocks[0]) >= sizeof("as it was"));
	for (int round = 0; round < 50; round++) {
		taken_back(neighbours);
		for (int n = 0; n < 8; n++)
			CHECK(!strcmp(blocks[n], "as it was"));
	}
	for (int n = 0; n < 8; n++)
		free(blocks[n]);
	for (int n = 0; n < 100; n++)
		CHECK(libc_strdup("all is well"));
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
	static number_function *seldom;

	/* libc's own, and not what the program has in its place. */
	*(void **)&seldom = dlsym(RTLD_NEXT, "random");
	CHECK(seldom != random);
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

/* The numbers are libc's, without a seed and with one. */
static void libc_numbers(long (*libc)(void), void (*seed)(unsigned))
{
	for (int n = 0; n < 100; n++)
		CHECK(random() == libc());
	for (unsigned from = 0; from < 5; from++) {
		srandom(from);
		seed(from);
		for (int n = 0; n < 100; n++)
			CHECK(rand() == libc());
	}
}

static char tables[2][256];
static const size_t sizes[] = { 8, 32, 64, 128, 256 };
static size_t size;

static void other_table(void)
{
	CHECK(initstate(3, tables[1], size));
	for (int n = 0; n < 50; n++)
		random();
	CHECK(setstate(tables[0]) == tables[1]);
	random();
}

/* A table that the program has given goes back, and which of them it is. */
static void tables_go_back(void)
{
	char *first = initstate(4, tables[0], sizeof(tables[0])), before[2][256];
	long next;

	for (int n = 0; n < 5; n++) {
		size = sizes[n];
		random();
		memcpy(before, tables, sizeof(before));
		taken_back(other_table);
		CHECK(!memcmp(before, tables, sizeof(before)));
		CHECK(setstate(first) == tables[0] && setstate(tables[0]) == first);
	}
	setstate(first);
	srandom(8);
	next = random();
	srandom(8);
	taken_back(other_table);
	CHECK(setstate(first) == first && random() == next);
}

static void one_random(void)
{
	int n = rand();

	CHECK(write(told[1], &n, sizeof(n)) == sizeof(n));
}

static void numbers(void)
{
	int (*const named)(void) = rand;
	int got;

	CHECK(dlsym(RTLD_DEFAULT, "rand") == (void *)named);
	for (int n = 0; n < 100; n++) {
		taken_back(one_random);
		CHECK(read(told[0], &got, sizeof(got)) == sizeof(got) && got == named());
	}
	tables_go_back();
}

static void handler(int sig)
{
	(void)sig;
}

#pragma clang diagnostic ignored "-Wdeprecated-declarations"

static void interrupts(void)
{
	CHECK(siginterrupt(SIGUSR1, 1) == 0);
}

static int restarts(void)
{
	struct sigaction action;

	CHECK(signal(SIGUSR1, handler) != SIG_ERR && !sigaction(SIGUSR1, NULL, &action));
	CHECK(action.sa_handler == handler && sigismember(&action.sa_mask, SIGUSR1));
	return (action.sa_flags & SA_RESTART) != 0;
}

static void signals(void)
{
	CHECK(restarts());
	taken_back(interrupts);
	CHECK(restarts());
	interrupts();
	CHECK(!restarts() && siginterrupt(SIGUSR1, 0) == 0 && restarts());
	CHECK(siginterrupt(1000, 1) < 0 && signal(1000, handler) == SIG_ERR);
	CHECK(signal(SIGUSR1, SIG_ERR) == SIG_ERR);
}

static char host[100] = "before", service[10];

static int named(const void *of, size_t bytes, int flags)
{
	return getnameinfo(of, (socklen_t)bytes, host, sizeof(host), service, sizeof(service),
			   flags);
}

#define NUMERIC		(NI_NUMERICHOST | NI_NUMERICSERV)

static void in_numbers(void)
{
	struct sockaddr_in in = { .sin_family = AF_INET, .sin_port = htons(7777) };
	struct sockaddr_in6 in6 = { .sin6_family = AF_INET6, .sin6_port = htons(1) };

	inet_pton(AF_INET, "10.1.2.3", &in.sin_addr);
	inet_pton(AF_INET6, "2001:db8::7", &in6.sin6_addr);
	CHECK(named(&in, sizeof(in), NUMERIC) == 0);
	CHECK(!strcmp(host, "10.1.2.3") && !strcmp(service, "7777"));
	CHECK(named(&in6, sizeof(in6), NUMERIC | NI_DGRAM) == 0);
	CHECK(!strcmp(host, "2001:db8::7") && !strcmp(service, "1"));
	in.sin_port = htons(9);
	CHECK(getnameinfo((void *)&in, sizeof(in), NULL, 0, service, 2, NI_NUMERICSERV) == 0);
	CHECK(getnameinfo((void *)&in, sizeof(in), host, 9, NULL, 0, NI_NUMERICHOST) == 0);
	CHECK(!strcmp(service, "9") && !strcmp(host, "10.1.2.3"));
}

/* What is asked for is a name, or what libc says in its own words. */
static void in_words(void)
{
	struct sockaddr_in in = { .sin_family = AF_INET, .sin_port = htons(7777) };
	struct sockaddr_in6 in6 = { .sin6_family = AF_INET6, .sin6_scope_id = 1 };

	CHECK(named(&in, sizeof(in), NI_NUMERICHOST) == 0);
	CHECK(named(&in6, sizeof(in6), NUMERIC) == 0 && named(&in, 3, NUMERIC) == EAI_FAMILY);
	CHECK(getnameinfo((void *)&in, sizeof(in), host, 4, NULL, 0, NUMERIC) == EAI_OVERFLOW);
	CHECK(named(&in, sizeof(in), NUMERIC | NI_NAMEREQD) == EAI_NONAME);
}

static void names(void)
{
	unsigned long before = looks();

	taken_back(in_numbers);
	CHECK(!strcmp(host, "before") && looks() == before);
	taken_back(in_words);
	CHECK(!strcmp(host, "before") && looks() == before + 1);
}

/* What only the kernel writes. */
static struct written {
	struct statfs64 files, file;
	siginfo_t info;
	int status;
	char attributes[3][100];
	unsigned seed;
} written, was;

static pid_t child[2];

static void by_the_kernel(void)
{
	struct iovec part = { "x", 1 };

	CHECK(waitid(P_PID, child[0], &written.info, WEXITED) == 0);
	CHECK(wait(&written.status) == child[1] && WEXITSTATUS(written.status) == 7);
	CHECK(!statfs64("/", &written.files) && !fstatfs64(told[1], &written.file));
	setxattr(".", "user.x", "y", 1, 0);
	getxattr(".", "user.x", written.attributes[0], 100);
	lgetxattr(".", "user.x", written.attributes[1], 100);
	listxattr(".", written.attributes[2], 100);
	llistxattr(".", written.attributes[2], 100);
	removexattr(".", "user.x");
	lsetxattr(".", "user.x", "y", 1, 0);
	lremovexattr(".", "user.x");
	fsetxattr(told[1], "user.x", "y", 1, 0);
	fgetxattr(told[1], "user.x", written.attributes[0], 100);
	flistxattr(told[1], written.attributes[2], 100);
	fremovexattr(told[1], "user.x");
	CHECK(truncate64("/", 0) < 0 && pwritev64(told[1], &part, 1, 0) < 0);
	CHECK(posix_fadvise64(told[1], 0, 0, POSIX_FADV_NORMAL) != 0);
	CHECK(difftime(5, 3) == 2 && fileno(stdin) == 0 && rand_r(&written.seed) >= 0);
}

static char *copies[2];

static void copied(void)
{
	free(copies[0]);
	copies[0] = strdup("longer than it was, by far");
	copies[1] = strndup("some words", 4);
	CHECK(!strcmp(copies[1], "some"));
	strcpy(copies[0], "other");
}

static void copies_go_back(void)
{
	copies[0] = strdup("as it was");
	taken_back(copied);
	CHECK(!strcmp(copies[0], "as it was") && !copies[1]);
	free(copies[0]);
}

/* What libc would keep of these the program does. */
static void no_looks(void)
{
	unsigned long before = looks();

	numbers();
	signals();
	copies_go_back();
	for (int n = 0; n < 2; n++)
		if (!(child[n] = fork()))
			_exit(7);
	taken_back(by_the_kernel);
	CHECK(!memcmp(&written, &was, sizeof(was)));
	CHECK(looks() == before);
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
	libc_numbers((long (*)(void))dlsym(RTLD_NEXT, "random"),
		     (void (*)(unsigned))dlsym(RTLD_NEXT, "srandom"));
	libc_break();
	no_looks();
	names();
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
