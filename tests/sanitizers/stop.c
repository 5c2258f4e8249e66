/*
 * Ends on SIGTERM.  With UndefinedBehaviorSanitizer it reports something then, and
 * computes for a long time before it is gone.
 */
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static void ends(int sig)
{
	volatile int most = INT_MAX;

	(void)sig;
	most++;
#ifdef SLOW
	for (;;)
		;
#endif
	exit(0);
}

int main(void)
{
	signal(SIGTERM, ends);
	puts("ready");
	fflush(stdout);
	for (;;)
		pause();
}
