/*
 * What the files of an injection share: the process that stands still, and what has been
 * put into it.
 */
#ifndef MVE_OUTSIDE_INJECT_PARTS_H
#define MVE_OUTSIDE_INJECT_PARTS_H

#include <stdbool.h>
#include <sys/mman.h>

#include "engine/abi/boot.h"
#include "engine/outside/kernel/maps.h"
#include "engine/outside/kernel/remote.h"
#include "engine/outside/patch/mapped.h"
#include "engine/outside/patch/patch.h"
#include "engine/outside/start/auxv.h"
#include "engine/outside/start/inject.h"
#include "engine/outside/start/layout.h"

#define BLOCK_BYTES	0x10000ull	/* BLOCK_SIZE of the inside */
#define BLOCK_STACK	0x7000ull	/* BLOCK_STACK_TOP */
#define ANON		(MAP_PRIVATE | MAP_ANONYMOUS)

struct injection {
	struct remote r;
	const struct inject_want *want;
	struct maps maps;
	uint64_t base, boards, block, area, streams;
	struct shelf_view shelf;	/* mapped at boot.shelf */
	struct board_room libraries;
	struct boot boot;
	struct patch_sum sum;
	struct layout_moves moved;
	uint64_t auxv, auxv_len;	/* the auxiliary vector, in memory */
	struct auxv_told told;	/* to the kernel, as it is to be, */
	struct batch_call auxv_call;	/* by this call, */
	long auxv_result;	/* which came to this */
	struct { uint64_t at, was; } vdso;	/* the kernel's in it */
	struct batch_call call[BATCH_MAX];	/* see inject_map.c */
	unsigned calls;
	uint64_t stack_page;	/* that `stack` has a copy of; 0: none */
	uint8_t stack[4096];
	struct program_file {	/* what is executed */
		uint64_t inode;
		char interpreter[INTERPRETER_MAX];
		bool dynamic;	/* it names one */
	} program;
};

static inline bool failed(long result)
{
	return result < 0 && result > -4096;
}

/* inject_map.c: maps what is ours; 0 or a negative errno. */
int shared_map(struct injection *in);

/*
 * inject.c, of a program that runs (attach/): what is ours is mapped, and boot written; then,
 * when its threads know of us, its code is patched.  0 or a negative errno.
 */
int inject_running(struct injection *in);
int inject_patch(struct injection *in);
/* boot is written again, as it has been changed. */
int inject_boot(struct injection *in);

/* vdso.c: calls through the vsyscall page come to us. */
void vsyscall_catch(struct injection *in);

/* Our vDSO in the vector, and with followers random bytes that twins have in common. */
void auxv_change(struct injection *in);

#endif
