/*
 * The kernel's signal frame on x86-64, as the inside reads and builds it.
 */
#ifndef MVE_INSIDE_UCONTEXT_H
#define MVE_INSIDE_UCONTEXT_H

#include <stdint.h>

#include "engine/inside/gate/thread.h"

struct gregs {
	uint64_t r8, r9, r10, r11, r12, r13, r14, r15;
	uint64_t rdi, rsi, rbp, rbx, rdx, rax, rcx, rsp, rip, flags;
	uint16_t cs, gs, fs, ss;
	uint64_t err, trapno, oldmask, cr2;
};

struct ucontext_raw {
	uint64_t flags, link;
	struct altstack stack;
	struct gregs regs;
	uint64_t fpstate;
	uint64_t reserved[8];
	uint64_t mask;
};

#define SIGINFO_SIZE	128

struct rt_frame {
	uint64_t restorer;
	struct ucontext_raw uc;
	uint8_t info[SIGINFO_SIZE];
};

/* Where in the saved FPU state its true size stands, and what says so. */
#define FP_PLAIN_SIZE	512
#define FP_MAGIC_AT	464
#define FP_SIZE_AT	468
#define FP_MAGIC1	0x46505853u

_Static_assert(sizeof(struct gregs) == 184, "sigcontext without fpstate");
_Static_assert(sizeof(struct ucontext_raw) == 304, "ucontext");
_Static_assert(offsetof(struct ucontext_raw, mask) == 296, "and its mask, the last of it");
_Static_assert(offsetof(struct rt_frame, info) == 8 + sizeof(struct ucontext_raw), "rt_sigframe");

/* Offsets inside siginfo. */
#define INFO_SIGNO	0
#define INFO_ERRNO	4	/* of a seccomp trap: the filter's own word */
#define INFO_CODE	8
#define INFO_ADDR	16	/* of a fault */
#define INFO_PID	16	/* of a sender, or of SIGCHLD's child */
#define INFO_STATUS	24	/* of SIGCHLD's child: status or signal */
#define INFO_CALL_ADDR	16
#define INFO_CALL	24
#define INFO_ARCH	28

static inline int32_t info_int(const uint8_t *info, unsigned at)
{
	return *(const int32_t *)(info + at);
}

static inline uint64_t info_long(const uint8_t *info, unsigned at)
{
	return *(const uint64_t *)(info + at);
}

#endif
