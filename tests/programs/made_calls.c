/*
 * For status.py, and by itself: 2000 calls from code that is made at run time, then
 * (with an argument) a call each 10 ms until it is ended.
 */
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tests/programs/check.h"

#define CALLS	2000

/* getppid; ret */
static const unsigned char code[] = { 0xb8, SYS_getppid, 0, 0, 0, 0x0f, 0x05, 0xc3 };

int main(int argc, char **argv)
{
	void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int (*made)(void) = (int (*)(void))page;

	(void)argv;
	CHECK(page != MAP_FAILED);
	memcpy(page, code, sizeof(code));
	CHECK_EQ(mprotect(page, 4096, PROT_READ | PROT_EXEC), 0);
	for (int i = 0; i < CALLS; i++)
		CHECK_EQ(made(), getppid());
	while (argc > 1) {
		getppid();
		usleep(10000);
	}
	return passed("made_calls");
}
