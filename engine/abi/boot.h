/*
 * What the monitor writes into a fresh inside image before it starts it: the
 * only thing that the inside learns from outside, besides the session area.
 * It stands at the symbol `boot` of the image.
 */
#ifndef MVE_ABI_BOOT_H
#define MVE_ABI_BOOT_H

#define BOOT_VDSO	96	/* offset of `vdso`, for assembly */

#ifndef __ASSEMBLER__
#include <stddef.h>
#include <stdint.h>

#define BOOT_MAGIC	0x746f6f62u	/* "boot" */

/* The kernel's own vDSO functions, in this order; 0 where it has none. */
enum vdso_function {
	VDSO_CLOCK_GETTIME, VDSO_GETTIMEOFDAY, VDSO_TIME, VDSO_CLOCK_GETRES,
	VDSO_GETCPU, VDSO_FUNCTIONS,
};

/* What the program believes of SIGSYS, which the kernel must not know. */
enum sigsys_bits { SIGSYS_BLOCKED = 1, SIGSYS_IGNORED = 2 };

struct boot {
	uint32_t magic;
	uint32_t image;			/* row in the area's table of images */
	uint32_t tier;
	uint32_t role;
	uint64_t area;			/* where the session area is mapped */
	uint64_t text, text_len;	/* the inside's code: calls pass here */
	uint64_t boards, boards_len;	/* room for boards near the libraries */
	uint64_t boards_used;		/* bytes of it taken */
	uint64_t block;			/* the first thread's block */
	uint64_t entry, stack;		/* where the program begins */
	uint32_t sigsys;		/* enum sigsys_bits: kept over execve */
	uint32_t pad;
	uint64_t vdso[VDSO_FUNCTIONS];
};

_Static_assert(offsetof(struct boot, vdso) == BOOT_VDSO, "BOOT_VDSO");

#endif
#endif
