/*
 * Coroutines keep things in their frames.  What they have done there under a checkpoint goes back,
 * too, whoever went on to them, and what one has done that was made anew meanwhile.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <mve/checkpoint.h>

#define NUMBER	6
#define ROUNDS	300
#define STACK	(64 << 10)
#define TOLD	5

static ucontext_t loop, routine[NUMBER];
static char room[NUMBER][STACK];
static long told[NUMBER], answer[NUMBER];

#define CHECK(cond)	do { \
	if (!(cond)) { \
		printf("line %d: %s: %s\n", __LINE__, #cond, mve_checkpoint_why()); \
		exit(1); \
	} } while (0)

static __attribute__((noinline)) long sum_of(const char *text, size_t size)
{
	long sum = 0;

	while (size-- > 0)
		sum = sum * 3 + text[size];
	return sum;
}

static void body(int which)
{
	char kept[200] = "", array[6000];
	long sum = 0;

	memset(array, which, sizeof(array));
	for (;;) {
		sum += told[which];
		kept[sum % 200] = (char)sum;
		array[sum % 6000]++;
		answer[which] = sum + sum_of(kept, sizeof(kept)) + sum_of(array, sizeof(array));
		if (told[which] % 3 == 0 && which + 1 < NUMBER) {
			told[which + 1] = told[which] + 7;
			swapcontext(&routine[which], &routine[which + 1]);
		} else {
			swapcontext(&routine[which], &loop);
		}
	}
}

static void make(int which)
{
	getcontext(&routine[which]);
	routine[which].uc_stack.ss_sp = room[which];
	routine[which].uc_stack.ss_size = STACK;
	makecontext(&routine[which], (void (*)(void))body, 1, which);
}

static void tell(int which, long what)
{
	told[which] = what;
	swapcontext(&loop, &routine[which]);
}

static void tell_all(int n, long *said)
{
	for (int k = 0; k < TOLD; k++) {
		tell((n + k) % NUMBER, n * k);
		said[k] = answer[(n + k) % NUMBER];
	}
}

/* Told the same again they say the same.  What they said under the checkpoint lies in memory that
 * stays as it is. */
static void round_of(int n, long *said)
{
	long again[TOLD];

	switch (mve_checkpoint_open()) {
	case 0:
		if (n % 50 == 0)
			make(n % NUMBER);
		tell_all(n, said);
		mve_checkpoint_restore();
		CHECK(!"restored");
		break;
	case 1:
		break;
	default:
		CHECK(!"opened");
	}
	if (n % 50 == 0)
		make(n % NUMBER);
	tell_all(n, again);
	CHECK(memcmp(said, again, sizeof(again)) == 0);
}

int main(void)
{
	long *said = mmap(NULL, TOLD * sizeof(*said), PROT_READ | PROT_WRITE,
			  MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	CHECK(said != MAP_FAILED);
	for (int which = 0; which < NUMBER; which++)
		make(which);
	for (int n = 0; n < ROUNDS; n++)
		round_of(n, said);
	puts("contexts: ok");
	return 0;
}
