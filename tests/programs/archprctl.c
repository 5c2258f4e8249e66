/*
 * The segment bases: FS may be read, moved and moved back; GS is the
 * program's own (0 at first), kept across calls and inherited by fork.
 */
#include <asm/prctl.h>
#include "check.h"

static unsigned long base(int code)
{
	unsigned long value = 1;

	CHECK_EQ(raw3(SYS_arch_prctl, code, &value, 0), 0);
	return value;
}

static unsigned long self(void)
{
	unsigned long value;

	asm("mov %%fs:0, %0" : "=r"(value));
	return value;
}

/* FS elsewhere: no libc until it is back. */
__attribute__((optimize("no-stack-protector")))
static long with_other_fs(unsigned long *block, unsigned long old)
{
	unsigned long seen = 0;

	block[0] = (unsigned long)block;
	long ret = raw3(SYS_arch_prctl, ARCH_SET_FS, block, 0);
	long pid = raw0(SYS_getpid);
	raw3(SYS_arch_prctl, ARCH_GET_FS, &seen, 0);
	unsigned long read_back = self();
	ret |= raw3(SYS_arch_prctl, ARCH_SET_FS, old, 0);
	if (seen != (unsigned long)block || read_back != seen)
		return -1;
	return ret ? ret : pid;
}

int main(void)
{
	unsigned long old = base(ARCH_GET_FS);
	unsigned long block[8] = { 0 };

	CHECK_EQ(old, self());
	for (int i = 0; i < 100; i++)
		CHECK_EQ(with_other_fs(block, old), getpid());
	CHECK_EQ(base(ARCH_GET_FS), old);
	CHECK_EQ(base(ARCH_GET_GS), 0);
	CHECK_EQ(raw3(SYS_arch_prctl, ARCH_GET_FS, 8, 0), -EFAULT);
	CHECK_EQ(raw3(SYS_arch_prctl, ARCH_SET_FS, ~0ul, 0), -EPERM);
	CHECK_EQ(raw3(SYS_arch_prctl, 0x7777, 0, 0), -EINVAL);
	return passed("archprctl");
}
