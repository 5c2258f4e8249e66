/* Numbers of which only the low bits are those of a call are no call's. */
#include "check.h"

int main(void)
{
	char byte = 0;

	for (int i = 0; i < 3000; i++) {
		CHECK_EQ(raw6(SYS_getppid, 0, 0, 0, 0, 0, 0), getppid());
		CHECK_EQ(raw6(0x10000 | SYS_getppid, 0, 0, 0, 0, 0, 0), -ENOSYS);
		CHECK_EQ(raw6(0x7fff0000 | SYS_write, 1, (long)"no", 2, 0, 0, 0), -ENOSYS);
		CHECK_EQ(raw6(0x20000 | SYS_read, 0, (long)&byte, 1, 0, 0, 0), -ENOSYS);
	}
	/* The kernel looks at 32 of the 64 bits. */
	CHECK_EQ(raw6(0x100000000 | SYS_getppid, 0, 0, 0, 0, 0, 0), getppid());
	return passed("odd_numbers");
}
