/*
 * Lengths as programs get them wrong, and as they say them where they know better: one below 0
 * faults and goes back, with nothing lost; one that only bounds what is written may be any number;
 * and who runs over the end of all that the program has comes to the runtime's own, and goes back;
 * a handler that stands there does no harm.
 */
#include <limits.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>
#include <mve/checkpoint.h>

#define CHECK(cond)	do { \
	if (!(cond)) { \
		printf("line %d: %s: %s\n", __LINE__, #cond, mve_checkpoint_why()); \
		exit(1); \
	} } while (0)

#define ROOM	65536

static unsigned char data[ROOM], was[ROOM], initialised[ROOM] = { 1 };
static unsigned char *heap, *mapping;
static volatile size_t length;
static unsigned char *volatile at;

static void on_fault(int sig)
{
	(void)sig;
	mve_checkpoint_restore();
	printf("not restored: %s\n", mve_checkpoint_why());
	fflush(stdout);
	_exit(1);
}

/* A function is to fail, and all is as it was. */
static __attribute__((noinline)) void fails(void (*function)(void), unsigned char *place)
{
	int got;

	for (int n = 0; n < ROOM; n++)
		place[n] = (unsigned char)(n % 251 + 1);
	memcpy(was, place, ROOM);
	at = place + ROOM / 2;
	got = mve_checkpoint_open();
	CHECK(got >= 0);
	if (got == 0) {
		place[ROOM / 2] = 'x';
		function();
		CHECK(!"it did not fail");
	}
	CHECK(!memcmp(was, place, ROOM));
}

static void zeroes(void)
{
	memset(at, 0, length);
}

static void sets(void)
{
	memset(at, 7, length);
}

static void copies(void)
{
	memcpy(at, data + 999, length);
}

static void moves_down(void)
{
	memmove(at, at + 200, length);
}

static void moves_up(void)
{
	memmove(at, at - 200, length);
}

static void pads(void)
{
	strncpy((char *)at, "abc", length);
}

static void runs_over(void)
{
	for (unsigned char *to = at;; to++)
		*(volatile unsigned char *)to = 'o';
}

static void (*const wrong[])(void) = { zeroes, sets, copies, moves_down, moves_up, pads };

static void are_none(void)
{
	static const size_t lengths[] = { -1ul, -1000ul, -1ul / 2, 1ul << 46 };
	unsigned char *const places[] = { data, heap, mapping };

	for (size_t n = 0; n < sizeof(lengths) / sizeof(lengths[0]); n++)
		for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
			for (size_t k = 0; k < sizeof(places) / sizeof(places[0]); k++) {
				length = lengths[n];
				fails(wrong[i], places[k]);
			}
	fails(runs_over, data);
	fails(runs_over, initialised);
}

/* What they say is more than there is, and what they write is little. */
static void say_much(char *to)
{
	struct sockaddr_storage own;
	socklen_t size = (socklen_t)length;
	size_t much = length < INT_MAX ? length : INT_MAX;	/* the kernel takes no more */
	struct tm noon = { .tm_hour = 12 };
	int fd = socket(AF_UNIX, SOCK_DGRAM, 0), pair[2];

	CHECK(snprintf(to, length, "%d", 12345) == 5);
	CHECK(strftime(to + 10, length, "%H", &noon) == 2);
	CHECK(memccpy(to + 20, "a:b", ':', length) == to + 22);
	CHECK(getcwd(to + 30, much) == to + 30);
	CHECK(getsockname(fd, (void *)&own, &size) == 0 || (int)length < 0);
	CHECK(pipe(pair) == 0 && write(pair[1], "abc", 3) == 3);
	CHECK(read(pair[0], to + 5000, much) == 3);
	close(pair[0]);
	close(pair[1]);
	close(fd);
}

static __attribute__((noinline)) void bounds_only(unsigned char *to)
{
	int got;

	memset(to, 'b', 8192);
	memcpy(was, to, 8192);
	got = mve_checkpoint_open();
	CHECK(got >= 0);
	if (got == 0) {
		say_much((char *)to);
		CHECK(!strcmp((char *)to, "12345") && !strcmp((char *)to + 10, "12"));
		mve_checkpoint_restore();
	}
	CHECK(!memcmp(was, to, 8192));
}

static void bound(void)
{
	static const size_t lengths[] = { 40000, INT_MAX, UINT_MAX, LONG_MAX, SIZE_MAX };
	unsigned char frame[16384];

	for (size_t n = 0; n < sizeof(lengths) / sizeof(lengths[0]); n++) {
		length = lengths[n];
		bounds_only(data);
		bounds_only(initialised);
		bounds_only(heap);
		bounds_only(frame);
		if (n)
			bounds_only(mapping + ROOM - 8192);
	}
}

static volatile unsigned came;

/* It may come while memory goes back, on the stack where that runs. */
static void on_time(int sig)
{
	unsigned char frame[6000];

	memset(frame, sig, sizeof(frame));
	came += frame[came % sizeof(frame)] == sig;
}

static __attribute__((noinline)) void goes_back(void)
{
	int got = mve_checkpoint_open();

	CHECK(got >= 0);
	if (got == 0) {
		memset(heap, 'g', ROOM);
		mve_checkpoint_restore();
	}
}

static void interrupted(void)
{
	const struct itimerval often = { { 0, 100 }, { 0, 100 } }, never = { 0 };

	signal(SIGALRM, on_time);
	setitimer(ITIMER_REAL, &often, NULL);
	for (int n = 0; n < 3000; n++)
		goes_back();
	setitimer(ITIMER_REAL, &never, NULL);
	CHECK(came);
}

int main(void)
{
	static char stack[65536];
	const stack_t place = { .ss_sp = stack, .ss_size = sizeof(stack) };
	struct sigaction action = { .sa_handler = on_fault, .sa_flags = SA_NODEFER | SA_ONSTACK };

	sigaltstack(&place, NULL);
	sigaction(SIGSEGV, &action, NULL);
	sigaction(SIGBUS, &action, NULL);
	heap = malloc(ROOM);
	mapping = mmap(NULL, ROOM + 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	munmap(mapping + ROOM, 4096);
	are_none();
	bound();
	interrupted();
	puts("lengths: ok");
}
