/*
 * A server with nothing to do but some calls, for tests that look at a session:
 * writes a byte 200 times a second until it is told to end, or for a minute.
 */
#include <fcntl.h>
#include <signal.h>
#include <time.h>

#include "check.h"

static volatile sig_atomic_t over;

static void end(int sig)
{
	(void)sig;
	over = 1;
}

int main(void)
{
	struct timespec pause = { 0, 5000000 };
	int fd = open("/dev/null", O_WRONLY);

	signal(SIGTERM, end);
	CHECK(fd >= 0);
	for (int i = 0; i < 60 * 200 && !over; i++) {
		CHECK(write(fd, "x", 1) == 1);
		nanosleep(&pause, NULL);
	}
	return passed("ticks");
}
