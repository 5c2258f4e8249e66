/*
 * Many mappings of code: each costs what the first one did.  Where it grew with the number
 * of those that are there, so many took minutes.
 */
#include "check.h"

#define MAPPINGS 8000

int main(void)
{
	int fd = open("/proc/self/exe", O_RDONLY);

	CHECK(fd >= 0);
	for (int i = 0; i < MAPPINGS; i++) {
		CHECK(mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0) != MAP_FAILED);
		/* Between them something else, or they are one. */
		CHECK(mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) !=
		      MAP_FAILED);
	}
	return passed("mappings");
}
