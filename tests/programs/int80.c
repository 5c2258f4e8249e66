/*
 * The 32-bit entry.  Natively it works (where the kernel has it); under mve
 * it is refused with ENOSYS.  Both are right; going down is not, nor is any
 * other register that changes.  (int 0x80 clears no more than rax.)
 */
#include "check.h"

#define NR32_GETPID 20
#define NR32_CLOSE 6

static long call32(long nr, long ebx)
{
	long ret, b = ebx;
	register long r12 asm("r12") = 0x123456789abcdef;
	register long r15 asm("r15") = 0xfedcba987654321;

	asm volatile("int $0x80" : "=a"(ret), "+b"(b), "+r"(r12), "+r"(r15)
		     : "0"(nr) : "memory", "r8", "r9", "r10", "r11");
	CHECK_EQ(b, ebx);
	CHECK_EQ(r12, 0x123456789abcdef);
	CHECK_EQ(r15, 0xfedcba987654321);
	return ret;
}

static void probe(void)
{
	call32(NR32_GETPID, 0);
}

int main(void)
{
	if (WIFSIGNALED(child_status(probe)))
		skip("the kernel has no 32-bit entry");
	for (int i = 0; i < 100; i++) {
		long pid = call32(NR32_GETPID, 0);
		CHECK(pid == getpid() || (int)pid == -ENOSYS);
		long bad = call32(NR32_CLOSE, -1);
		CHECK((int)bad == -EBADF || (int)bad == -ENOSYS);
		CHECK((pid == getpid()) == ((int)bad == -EBADF));
	}
	CHECK_EQ(getppid(), syscall(SYS_getppid));
	return passed("int80");
}
