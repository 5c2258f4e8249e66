/*
 * What the monitor writes into a fresh inside image before it starts it: the
 * only thing that the inside learns from outside, besides the session area.
 * It stands at the symbol `boot` of the image.
 */
#ifndef MVE_ABI_BOOT_H
#define MVE_ABI_BOOT_H

#define BOOT_VDSO	120	/* offsets, for assembly */
#define BOOT_STREAMS	168
#define BOOT_LOCAL	192

#ifndef __ASSEMBLER__
#include <stddef.h>
#include <stdint.h>

#include "engine/abi/layout.h"

#define BOOT_MAGIC	0x746f6f62u	/* "boot" */

/* The kernel's own vDSO functions, in this order; 0 where it has none. */
enum vdso_function {
	VDSO_CLOCK_GETTIME, VDSO_GETTIMEOFDAY, VDSO_TIME, VDSO_CLOCK_GETRES,
	VDSO_GETCPU, VDSO_GETRANDOM, VDSO_FUNCTIONS,
};

/*
 * What takes the place of a call that is not patched: an undefined instruction
 * as long as the call, so that SIGILL finds it.  No compiler makes these two.
 */
#define MARK_SYSCALL	0xff0f	/* ud0, as its bytes are read */
#define MARK_COMPAT	0xb90f	/* ud1: for int 0x80 and sysenter */
#define MARK_INSN	0x27	/* no instruction any more: for the first byte of rdtsc, rdrand */

/*
 * What the program believes of SIGSYS, SIGILL, SIGSEGV and SIGBUS, which are never
 * blocked nor ignored while mve stands on them: two bits each, kept over execve.
 */
enum hidden_bits {
	SIGSYS_BLOCKED = 1, SIGSYS_IGNORED = 2, SIGILL_BLOCKED = 4, SIGILL_IGNORED = 8,
	SIGSEGV_BLOCKED = 16, SIGSEGV_IGNORED = 32, SIGBUS_BLOCKED = 64, SIGBUS_IGNORED = 128,
	HIDDEN_FOLLOWS = 256,	/* of REQ_EXEC: the thread follows, and so will the program */
	HIDDEN_SPACE = 1024,	/* RLIMIT_AS is wider than the program believes: state/space.c */
	HIDDEN_DATA = 2048,	/* so is RLIMIT_DATA */
	HIDDEN_MOVES = 512,	/* the program begins in another lane than its execve was told in */
};

#define BOOT_LOCALS	8
#define BOOT_PARTS	8
#define BOOT_ROOMS	8

/* Code by whose unwind tables callers are found: see inside/runtime/callers.c. */
enum code_kind { PART_LIBC, PART_RUNTIME, PART_ALLOCATOR };

struct code_part {
	uint64_t from, to;
	uint64_t unwind;	/* its file's eh_frame_hdr; or 0 */
	uint32_t kind;		/* enum code_kind */
	uint32_t pad;
};

#define BOOT_MOVES	8

/* Patched code that lies on the shelf, and whose place it is to take. */
struct code_move {
	uint64_t from;		/* on the shelf */
	uint64_t to, len;
};

/* So far below the inside's code what it maps for itself ends: servers with more are rare. */
#define OWN_BELOW	(64ull << 30)
#define OWN_SPAN	(16ull << 30)	/* of it no more is needed: blocks, tables, rules */

/* Whole: no unpatched call is left (GLOSSARY).  While it breaks, threads are being armed. */
enum seal { SEAL_BROKEN, SEAL_WHOLE, SEAL_BREAKING };

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
	uint32_t sealed;		/* enum seal */
	uint32_t hidden;		/* HIDDEN_BLOCKED, HIDDEN_IGNORED */
	struct board_room {		/* room for boards near the program itself */
		uint64_t at, len, used;
	} near_program;
	uint64_t vdso[VDSO_FUNCTIONS];
	uint64_t streams;		/* where they are mapped; 0: no followers */
	uint32_t version;		/* our row of them */
	uint32_t lane;			/* of the first thread */
	int32_t vpid;			/* of a follower: the leader's pid; else 0 */
	uint32_t locals;		/* rows used of `local` */
	struct code_range_at {		/* code whose calls are never compared: ld.so, */
		uint64_t from, to;	/* an allocator */
	} local[BOOT_LOCALS];
	struct layout layout;		/* of a leader with followers: this program's */
	uint32_t parts;			/* rows used of `part` */
	uint32_t runtimes;		/* of those, sanitizers' */
	struct code_part part[BOOT_PARTS];
	uint64_t sigaction;		/* TSan's, which knows the program's handlers; or 0 */
	uint64_t brief;			/* where it is mapped */
	uint32_t realm;			/* whose sections are mapped, and where `lane` is */
	uint32_t pad;
	uint64_t key;			/* by which the monitor knows the version's requests */
	uint64_t shelf, shelf_len;	/* patched code that can be moved (calls/shelf.c); or 0 */
	uint64_t shelf_moved;		/* its parts that have been, as bits */
	uint64_t moves;			/* rows used of `move` */
	struct code_move move[BOOT_MOVES];	/* before the program begins */
	uint32_t attached;	/* the program has the kernel's vDSO, and can be left */
	uint32_t leaving;	/* the monitor's, a futex: threads stand where calls end */
	uint32_t between;	/* the monitor's: signals come here, and handlers may end past us */
	uint32_t filtered;	/* a seccomp filter of ours is there, which stays */
	uint64_t rooms;		/* rows used of `room`, and those that there was none for */
	struct board_room room[BOOT_ROOMS];	/* for boards, near other files */
	uint64_t rollback;	/* the program's struct rollback; 0: requests are not taken back */
};

_Static_assert(offsetof(struct boot, vdso) == BOOT_VDSO, "BOOT_VDSO");
_Static_assert(offsetof(struct boot, streams) == BOOT_STREAMS, "BOOT_STREAMS");
_Static_assert(offsetof(struct boot, local) == BOOT_LOCAL, "BOOT_LOCAL");

#endif
#endif
