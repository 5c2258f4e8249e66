/*
 * Coming to a server that runs, and leaving it: what the monitor asks of each thread, which it
 * holds by ptrace meanwhile, and what the thread is told.  The monitor writes all of it; it
 * lies in memory of the program's that is there as long as that lasts.
 */
#ifndef MVE_ABI_ATTACH_H
#define MVE_ABI_ATTACH_H

/*
 * Offsets in a thread's block: the registers that it goes back to by itself if the monitor
 * is no more.  On the end of the inside's stack, which is not so deep there.
 */
#define ATTACH_BACK	0x1000
#define BACK_RAX	(ATTACH_BACK + 0x00)
#define BACK_RBX	(ATTACH_BACK + 0x08)
#define BACK_RCX	(ATTACH_BACK + 0x10)
#define BACK_RDX	(ATTACH_BACK + 0x18)
#define BACK_RSI	(ATTACH_BACK + 0x20)
#define BACK_RDI	(ATTACH_BACK + 0x28)
#define BACK_RBP	(ATTACH_BACK + 0x30)
#define BACK_RSP	(ATTACH_BACK + 0x38)
#define BACK_R8		(ATTACH_BACK + 0x40)
#define BACK_R9		(ATTACH_BACK + 0x48)
#define BACK_R10	(ATTACH_BACK + 0x50)
#define BACK_R11	(ATTACH_BACK + 0x58)
#define BACK_R12	(ATTACH_BACK + 0x60)
#define BACK_R13	(ATTACH_BACK + 0x68)
#define BACK_R14	(ATTACH_BACK + 0x70)
#define BACK_R15	(ATTACH_BACK + 0x78)
#define BACK_FLAGS	(ATTACH_BACK + 0x80)
#define BACK_RIP	(ATTACH_BACK + 0x88)
#define BACK_MASK	(ATTACH_BACK + 0x90)

#ifndef __ASSEMBLER__
#include <stddef.h>
#include <stdint.h>

#include "engine/abi/request.h"

struct attach_back {
	uint64_t rax, rbx, rcx, rdx, rsi, rdi, rbp, rsp;
	uint64_t r8, r9, r10, r11, r12, r13, r14, r15;
	uint64_t flags, rip, mask;
	uint64_t stands;	/* of one that was in C code when we leave: 0, or its id, and it
				   stands where its call is done, or is to be made again */
};

_Static_assert(ATTACH_BACK + offsetof(struct attach_back, r8) == BACK_R8, "BACK_R8");
_Static_assert(ATTACH_BACK + offsetof(struct attach_back, rip) == BACK_RIP, "BACK_RIP");
_Static_assert(ATTACH_BACK + offsetof(struct attach_back, mask) == BACK_MASK, "BACK_MASK");

/* What a thread is sent to do (inside/roles/attach.c). */
enum attach_step {
	ATTACH_BEGIN,	/* one thread: what the process has once, and a block for each */
	ATTACH_THREAD,	/* each: its slot, its alternate stack */
	ATTACH_ACTIONS,	/* one: signals come to us from here on */
	ATTACH_WATCH,	/* one: pages with bytes that nothing explains */
	ATTACH_ARM,	/* each, where calls may stand that were not found */
	DETACH_LEAVE,	/* each: out of the gate and the boards, into `regs` */
	DETACH_DISARM,	/* each: no call comes to us */
	DETACH_ACTIONS,	/* one: signals come to the program from here on */
	DETACH_THREAD,	/* each: its alternate stack; `mask`: hidden signals that it blocks */
	ATTACH_STEPS,
};

struct attach_row {
	int32_t tid, pad;
	uint64_t block;		/* filled by ATTACH_BEGIN; 0: there is none */
	uint64_t mask;		/* of its signals: what the program believes */
	uint64_t rseq;		/* that it has registered; 0: none */
	uint32_t rseq_len, rseq_sign;
};

/* As the kernel's struct sigcontext begins: of DETACH_LEAVE. */
struct attach_regs {
	uint64_t r8, r9, r10, r11, r12, r13, r14, r15;
	uint64_t rdi, rsi, rbp, rbx, rdx, rax, rcx, rsp, rip, flags;
};

struct attach {
	uint32_t threads, row;	/* how many there are; which one is asked */
	struct attach_regs regs;
	uint32_t guards, unwatched;	/* pages that are to be watched, and that could not be */
	uint64_t guard[SLOT_GUARDS];
	struct attach_row thread[];
};

#endif
#endif
