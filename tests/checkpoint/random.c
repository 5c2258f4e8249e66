/*
 * Writes at random under a checkpoint and takes it back: every byte is as it was.
 *
 *	random ROUNDS [THREADS [DEPTH [alone]]]
 *
 * What is written: the data segment, the heap, a thread-local, an array of main's frame, and a
 * block of libc's heap; by stores of each width, atomics, memset, and copies that overlap regions;
 * by main alone, or by threads as well, while main waits. In libc's block is also what random()
 * keeps, so that libc writes between what the program does (alone: it does not). With a depth
 * checkpoints lie in one another, and each is dropped or restored by chance.
 *
 * A copy of all is made before. What is counted beyond a restore is written into a pipe, for
 * nothing in memory would stay.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <mve/checkpoint.h>

#define DATA	16384
#define TLS	512
#define FRAME	2048
#define LIBC	8192
#define PLACES	5
#define DEEPEST	4
#define THREADS_MAX	8

/* At any address. */
typedef uint16_t u16 __attribute__((aligned(1)));
typedef uint32_t u32 __attribute__((aligned(1)));
typedef uint64_t u64 __attribute__((aligned(1)));
typedef __int128 u128 __attribute__((aligned(1)));
typedef double f64 __attribute__((aligned(1)));
typedef long long v4 __attribute__((vector_size(32), aligned(1)));

static unsigned char data[DATA];
static unsigned char *heap;
static __thread unsigned char tls[TLS];

struct place {
	unsigned char *at;
	size_t size;
};

static struct place places[PLACES];
static unsigned char *copies[DEEPEST + 1];
static int told[2];
static int threads, depth_most = 1, libraries = 1;
static int begin[2], end[2];

static uint64_t next(uint64_t *seed)
{
	*seed ^= *seed << 13;
	*seed ^= *seed >> 7;
	*seed ^= *seed << 17;
	return *seed;
}

static void copy_all(unsigned char *to)
{
	for (int i = 0; i < PLACES; to += places[i++].size)
		memcpy(to, places[i].at, places[i].size);
}

static size_t differs(const unsigned char *from)
{
	for (int i = 0; i < PLACES; from += places[i++].size)
		for (size_t n = 0; n < places[i].size; n++)
			if (places[i].at[n] != from[n])
				return 1 + i * 100000 + n;
	return 0;
}

static int same(const unsigned char *from)
{
	for (int i = 0; i < PLACES; from += places[i++].size)
		if (memcmp(places[i].at, from, places[i].size))
			return 0;
	return 1;
}

static void write_run(unsigned char *at, size_t room, uint64_t r)
{
	size_t size = r % 700 % room, from = (r >> 20) % (room - size + 1);

	if (!(r >> 60 & 1))
		memmove(at + from, at + (r >> 40) % (room - size + 1), size);
	else if (r >> 61 & 1)
		memset(at + from, (int)(r >> 30), size);
	else
		memset(at + from, 0, size);
}

static void write_atomic(unsigned char *at, uint64_t r)
{
	uint64_t was = r;

	at -= (uintptr_t)at % 8;
	switch (r >> 50 & 3) {
	case 0:
		atomic_fetch_add((_Atomic uint32_t *)at, (uint32_t)r);
		break;
	case 1:
		atomic_exchange((_Atomic uint64_t *)at, r);
		break;
	case 2:
		atomic_compare_exchange_strong((_Atomic uint64_t *)at, &was, ~r);
		break;
	default:
		atomic_fetch_xor((_Atomic uint8_t *)at, (uint8_t)r | 1);
	}
}

static void write_width(unsigned char *at, uint64_t r)
{
	switch (r >> 40 & 7) {
	case 0:
		*at = (unsigned char)r;
		break;
	case 1:
		*(u16 *)at = (uint16_t)r;
		break;
	case 2:
		*(u32 *)at = (uint32_t)r;
		break;
	case 3:
		*(u64 *)at = r;
		break;
	case 4:
		*(u128 *)at = (__int128)r << 60;
		break;
	case 5:
		*(f64 *)at = (double)r;
		break;
	case 6:
		*(v4 *)at = (v4){ (long long)r, 1, 2, 3 };
		break;
	default:
		*(long double *)((uintptr_t)at & -16ul) = (long double)r;
	}
}

/* An unaligned loop, a structure, and a value kept over two stores. */
static void write_shapes(unsigned char *at, size_t room, uint64_t r)
{
	struct shape { uint64_t a; uint32_t b, c; char d[48]; } *s = (void *)at;

	if (r & 1 && room >= 80) {
		s->a = r;
		s->c = (uint32_t)r;
		s->d[47] = (char)r;
		s->a += s->c;
		return;
	}
	for (size_t n = 0; n < (r >> 8) % room; n++)
		at[n] ^= (unsigned char)(r >> 16);
}

static void write_by_libc(uint64_t r)
{
	for (uint64_t n = 0; libraries && n < r % 20; n++)
		random();
}

static void write_one(const struct place *p, uint64_t *seed)
{
	uint64_t r = next(seed);
	size_t from = (r >> 3) % (p->size - 64);

	switch (next(seed) % (p == &places[PLACES - 1] ? 5 : 4)) {
	case 0:
		write_run(p->at, p->size, next(seed));
		break;
	case 1:
		write_atomic(p->at + from + 16, next(seed));
		break;
	case 2:
		write_width(p->at + from + 16, next(seed));
		break;
	case 4:
		write_by_libc(r);
		break;
	default:
		write_shapes(p->at + from, p->size - from, next(seed));
	}
}

/* Threads write what they share: data and heap. */
static void write_some(int shared, uint64_t *seed)
{
	int n = next(seed) % 24;

	for (int i = 0; i < n; i++)
		write_one(&places[next(seed) % (shared ? 2 : PLACES)], seed);
}

static void send(int fd, char byte)
{
	if (write(fd, &byte, 1) != 1)
		exit(3);
}

static char receive(int fd)
{
	char byte;

	if (read(fd, &byte, 1) != 1)
		exit(3);
	return byte;
}

static void *writer(void *number)
{
	uint64_t seed;

	send(end[1], 'b');
	for (long round = 1; receive(begin[0]) == 'w'; round++) {
		seed = 77 * (uintptr_t)number + 13 * round;
		write_some(1, &seed);
		send(end[1], 'd');
	}
	return NULL;
}

/* Says a byte to all threads. */
static void tell(char byte)
{
	for (int i = 0; i < threads; i++)
		send(begin[1], byte);
}

/* Memory changes; it must, or nothing is shown. */
static void change(uint64_t *seed, const unsigned char *before)
{
	tell('w');
	write_some(0, seed);
	for (int i = 0; i < threads; i++)
		receive(end[0]);
	if (!same(before))
		send(told[1], 'c');
}

static void wrong(const char *what, int depth)
{
	printf("%s at depth %d: place %zu: %s\n", what, depth, differs(copies[depth]),
	       mve_checkpoint_why());
	exit(1);
}

/* A checkpoint at this depth, perhaps others within it, and back. */
static __attribute__((noinline)) void level(int depth, uint64_t *seed)
{
	int keep = depth && next(seed) % 3 == 0, got;

	copy_all(copies[depth]);
	got = mve_checkpoint_open();
	if (got < 0)
		wrong("not opened", depth);
	if (got == 1) {
		if (!same(copies[depth]))
			wrong("not as it was", depth);
		return;
	}
	change(seed, copies[depth]);
	if (depth + 1 < depth_most && next(seed) % 2)
		level(depth + 1, seed);
	change(seed, copies[depth]);
	if (keep)
		mve_checkpoint_drop();
	else
		mve_checkpoint_restore();
	if (!keep)
		wrong("not restored", depth);
}

static long counted(void)
{
	char bytes[4096];
	ssize_t n = read(told[0], bytes, sizeof(bytes));

	return n < 0 ? 0 : n;
}

static void rounds(long all, unsigned char *frame)
{
	long changed = 0;
	uint64_t seed;

	(void)frame;
	for (long n = 1; n <= all; n++) {
		seed = 0x9E3779B97F4A7C15ul * n;
		level(0, &seed);
		send(told[1], 'e');
		changed += counted() - 1;
		if (n % 16 == 0) {	/* it is not always the same that is changed */
			seed = n;
			write_some(0, &seed);
		}
	}
	if (changed < all / 2) {
		printf("only %ld changes in %ld rounds\n", changed, all);
		exit(1);
	}
}

/* A block that libc has allocated, with random()'s numbers in the middle of it. */
static unsigned char *libc_block(void)
{
	char text[LIBC];
	char *block;

	memset(text, 'l', LIBC);
	text[LIBC - 1] = '\0';
	block = strdup(text);
	initstate(5, block + LIBC / 2 + 40, 256);
	return (unsigned char *)block;
}

static void say(void)
{
	struct mve_checkpoint_counts c;

	mve_checkpoint_counts(&c);
	fprintf(stderr, "opened %lu restored %lu dropped %lu regions %lu wipes %lu looks %lu\n",
		c.opened, c.restored, c.dropped, c.regions, c.wipes, c.looks);
}

int main(int argc, char **argv)
{
	unsigned char frame[FRAME] __attribute__((aligned(32)));
	pthread_t made[THREADS_MAX];

	threads = argc > 2 ? atoi(argv[2]) : 0;
	depth_most = argc > 3 ? atoi(argv[3]) : 1;
	libraries = argc <= 4;
	heap = malloc(DATA);
	places[0] = (struct place){ data, DATA };
	places[1] = (struct place){ heap, DATA };
	places[2] = (struct place){ tls, TLS };
	places[3] = (struct place){ frame, FRAME };
	places[4] = (struct place){ libc_block(), LIBC };
	memset(frame, 1, FRAME);
	for (int i = 0; i <= DEEPEST; i++)
		copies[i] = malloc(2 * DATA + TLS + FRAME + LIBC);
	if (pipe(told) || pipe(begin) || pipe(end))
		return 3;
	for (long i = 0; i < threads; i++)
		pthread_create(&made[i], NULL, writer, (void *)(i + 1));
	for (int i = 0; i < threads; i++)	/* none is just beginning in libc */
		receive(end[0]);
	rounds(argc > 1 ? atol(argv[1]) : 1000, frame);
	say();
	tell('e');
	for (int i = 0; i < threads; i++)
		pthread_join(made[i], NULL);
	puts("random: ok");
}
