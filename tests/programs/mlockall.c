/*
 * A program that has all of its memory locked, and all that it will have: it goes on, and takes
 * no more memory than it has use for.
 */
#include "check.h"

#define MIB		(1ul << 20)
#define MOST_KIB	(512 * 1024)	/* with all that mve maps without followers */

static unsigned long resident_kib(void)
{
	unsigned long kib = 0;
	char line[100];
	FILE *f = fopen("/proc/self/status", "re");

	CHECK(f);
	while (!kib && fgets(line, sizeof(line), f))
		sscanf(line, "VmRSS: %lu", &kib);
	fclose(f);
	return kib;
}

/* mlockall serve: until it is killed. */
int main(int argc, char **argv)
{
	char *at;

	(void)argv;
	CHECK(!mlockall(MCL_CURRENT | MCL_FUTURE));
	while (argc > 1)
		usleep(10000);
	at = mmap(NULL, MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(at != MAP_FAILED);
	memset(at, 1, MIB);
	CHECK(resident_kib() < MOST_KIB);
	CHECK(!munlockall());
	return passed("mlockall");
}
