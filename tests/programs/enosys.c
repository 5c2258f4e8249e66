/* Numbers that name no call, x32 numbers and negative ones: ENOSYS. */
#include "check.h"

int main(void)
{
	static const long numbers[] = {
		-1, -2, 9999, 512, 547, 600, 4096, 0x40000000 | 39,
		0x40000000 | 520, 0x7fffffff, 0x80000000, 0xffffffff,
		337, 400, 1000000,
	};

	for (size_t i = 0; i < COUNT(numbers); i++)
		for (int j = 0; j < 10; j++) {
			CHECK_EQ(raw0(numbers[i]), -ENOSYS);
			CHECK_FAILS(syscall(numbers[i]), ENOSYS);
		}
	/* Only the low half of rax is the number. */
	CHECK_EQ(raw0(0xabcdef0100000000 | SYS_getpid), getpid());
	CHECK_EQ(raw0(0xffffffff00000000 | SYS_getppid), getppid());
	return passed("enosys");
}
