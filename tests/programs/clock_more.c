/*
 * Reads the monotonic clock once, then the time of day; with an argument, the
 * monotonic clock again: half a second must have gone by on it, too.  A leader
 * without the argument and a follower with it write the same.
 */
#include <stdio.h>
#include <sys/time.h>
#include <time.h>

#include "check.h"

int main(int argc, char **argv)
{
	struct timespec from, to, pause = { 0, 500000000 };
	struct timeval day;
	double gone = 0.5;

	(void)argv;
	CHECK(!clock_gettime(CLOCK_MONOTONIC, &from));
	CHECK(!gettimeofday(&day, NULL));
	CHECK(!nanosleep(&pause, NULL));
	CHECK(!gettimeofday(&day, NULL));
	if (argc > 1) {
		CHECK(!clock_gettime(CLOCK_MONOTONIC, &to));
		gone = (double)(to.tv_sec - from.tv_sec) + (double)(to.tv_nsec - from.tv_nsec) / 1e9;
	}
	puts(gone > 0.45 && gone < 5 ? "the clock goes" : "the clock stands still");
	return passed("clock_more");
}
