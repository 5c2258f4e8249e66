/*
 * Two threads, of which one is told to work by bytes of standard input.  behind WHO: where WHO is
 * `slow` each stretch of the other's work takes long.
 *
 *	'c'	it holds a mutex, and computes until somebody writes into `over`
 *	'm'	it makes many calls, and computes a little before each
 *	'q'	it makes them when the first thread has asked something that nobody else asks
 *
 * The first thread's next call comes behind all of that.
 */
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CALLS	600
#define LITTLE	4000000

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
volatile char over, asked;
static int slow, orders[2], done[2], null;

static void call(void)
{
	if (write(null, "x", 1) != 1)
		abort();
}

static void compute(void)
{
	for (volatile int i = 0; i < LITTLE; i++)
		;
}

static void *work(void *arg)
{
	char what;

	while (read(orders[0], &what, 1) == 1) {
		pthread_mutex_lock(&mutex);
		while (slow && what == 'c' && !over)
			;
		pthread_mutex_unlock(&mutex);
		while (slow && what == 'q' && !asked)
			;
		for (int i = 0; i < CALLS && what != 'c'; i++) {
			if (slow && what == 'm')
				compute();
			call();
		}
		if (what == 'c' && write(done[1], &what, 1) != 1)
			abort();
	}
	return arg;
}

/* That it is done the first thread does not ask: it comes later by far. */
static void order(char what)
{
	if (write(orders[1], &what, 1) != 1)
		abort();
	if (what == 'c' && read(done[0], &what, 1) != 1)
		abort();
	if (slow && what == 'q') {
		getppid();
		asked = 1;
	}
	if (what != 'c')
		poll(NULL, 0, 500);
	pthread_mutex_lock(&mutex);
	pthread_mutex_unlock(&mutex);
	for (int i = 0; i < 8; i++)
		call();
}

int main(int argc, char **argv)
{
	pthread_t t;
	char what;

	null = open("/dev/null", O_WRONLY);
	slow = argc > 1 && !strcmp(argv[1], "slow");
	if (null < 0 || pipe(orders) || pipe(done) || pthread_create(&t, NULL, work, NULL))
		return 1;
	while (read(0, &what, 1) == 1)
		order(what);
	return 0;
}
