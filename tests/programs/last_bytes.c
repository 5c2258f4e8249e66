/* ld: -static -no-pie -Wl,--section-start=.last_bytes=0x10000000 -Wl,-e,begin_last */
/*
 * A program whose first instruction is the last of what is mapped there: it is held like
 * others, and begins with the signal mask that it was given.
 */
#include <signal.h>

#include "check.h"

asm(".section .last_bytes,\"ax\",@progbits\n"
    ".skip 4091,0xcc\n"
    ".globl begin_last\n"
    "begin_last:\n"
    "	jmp _start\n"
    ".text\n");

int main(void)
{
	sigset_t mask;

	sigprocmask(SIG_SETMASK, NULL, &mask);
	for (int sig = 1; sig < 32; sig++)
		if (sigismember(&mask, sig))
			printf("signal %d is blocked\n", sig);
	printf("pid of its own: %d\n", getpid() > 0);
	return passed("last_bytes");
}
