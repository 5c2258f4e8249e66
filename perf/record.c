/*
 * The loops that a leader records and a follower replays: perf/bench tells on
 * standard input what is to be called how often, and reads on standard output
 * how long each batch took.
 *
 *	in	OP CALLS BATCHES
 *	out	ns per call of each batch, in one line
 *
 * With an argument it has a second thread, which sleeps.
 *
 * Everything goes through libc, as in servers.  A follower gets the leader's
 * clock, so that it computes and prints the same.
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define BYTES		512
#define BATCHES_MAX	1000

static int zero_fd, null_fd;
static char buf[BYTES];

static int do_close(void)
{
	return close(-1) == -1;
}

static int do_write(void)
{
	return write(null_fd, buf, BYTES) == BYTES;
}

static int do_read(void)
{
	return read(zero_fd, buf, BYTES) == BYTES;
}

static int do_open(void)
{
	const int fd = open("/dev/null", O_RDONLY);

	return fd >= 0 && !close(fd);
}

static int do_clock(void)
{
	struct timespec ts;

	return !clock_gettime(CLOCK_MONOTONIC, &ts);
}

static int do_getppid(void)
{
	return getppid() >= 0;
}

static int do_lock(void)
{
	static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

	return !pthread_mutex_lock(&mutex) && !pthread_mutex_unlock(&mutex);
}

static const struct op {
	const char *name;
	int (*call)(void);
} ops[] = {
	{ "close", do_close }, { "write", do_write }, { "read", do_read },
	{ "open+close", do_open }, { "clock_gettime", do_clock }, { "getppid", do_getppid },
	{ "lock", do_lock },
};

static double now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec * 1e9 + (double)ts.tv_nsec;
}

static double time_batch(const struct op *op, long calls)
{
	const double start = now_ns();
	long good = 0;

	for (long i = 0; i < calls; i++)
		good += op->call();
	if (good != calls) {
		fprintf(stderr, "record: %s: %ld of %ld failed\n", op->name, calls - good, calls);
		exit(3);
	}
	return (now_ns() - start) / (double)calls;
}

static int serve(const char *name, long calls, int batches)
{
	static double ns[BATCHES_MAX];
	const struct op *op = NULL;

	for (size_t i = 0; i < sizeof(ops) / sizeof(ops[0]); i++)
		if (!strcmp(name, ops[i].name))
			op = &ops[i];
	if (!op || calls < 1 || batches < 1 || batches > BATCHES_MAX)
		return 2;
	for (int i = 0; i < batches; i++)
		ns[i] = time_batch(op, calls);
	for (int i = 0; i < batches; i++)
		printf("%.2f ", ns[i]);
	printf("\n");
	fflush(stdout);
	return 0;
}

static void *sleeper(void *nothing)
{
	for (;;)
		pause();
	return nothing;
}

int main(int argc, char **argv)
{
	char line[200], name[40];
	pthread_t second;
	long calls;
	int batches, status;

	(void)argv;
	if (argc > 1 && pthread_create(&second, NULL, sleeper, NULL))
		return 3;

	zero_fd = open("/dev/zero", O_RDONLY);
	null_fd = open("/dev/null", O_WRONLY);
	if (zero_fd < 0 || null_fd < 0)
		return 3;
	while (fgets(line, sizeof(line), stdin)) {
		status = sscanf(line, "%39s %ld %d", name, &calls, &batches) == 3 ?
			 serve(name, calls, batches) : 2;
		if (status)
			return status;
	}
	return 0;
}
