/*
 * Patching the code of a process: plans, boards and jumps, written through its
 * memory file while no thread of it can be in the code concerned.
 */
#ifndef MVE_OUTSIDE_PATCH_H
#define MVE_OUTSIDE_PATCH_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "engine/abi/area.h"
#include "engine/abi/boot.h"
#include "engine/outside/kernel/maps.h"

struct patch_sum {
	bool twins;		/* given: instructions that ask the machine are marked, too */
	/* Given, of a program that runs: places where threads are, or that they may come back
	   to, in order; no jump is laid over one. */
	const uint64_t *stood;
	size_t stoods;
	unsigned patched;	/* sites that jump to a board now */
	unsigned trapped;	/* sites left to the net */
	bool vsyscall;		/* the file may call the vsyscall page */
	bool unclean;		/* calls may stand there that were not found */
	unsigned guards;	/* pages with bytes that nothing explains */
	uint64_t guard[SLOT_GUARDS];
};

struct plan;
struct plan_site;

#define SHELF_MOVES	BOOT_MOVES

/* What a process has of the shelf (patch/shelf.h), and what of it is to take a mapping's place. */
struct shelf_view {
	uint64_t len;		/* so much of it is mapped */
	uint64_t moved;		/* parts that are no longer where it is, as bits */
	unsigned moves;		/* new: the process has to make them before the code is run */
	struct code_move move[SHELF_MOVES];
};

/* The plan of what is mapped, to be given to plan_free(); as planner_plan() has it. */
int patch_plan(pid_t pid, int memory, const struct map *m, struct plan **out);

/* Bytes of board room that the mapping may need; 0 when it has no sites. */
uint64_t patch_room_needed(const struct plan *p, const struct map *m);

/*
 * Patches the sites that lie in one executable mapping of a file (or of the vDSO).  Adds
 * to *sum.  What could not be patched is left to the net, and the code is whole in every
 * case.  Without room every call only gets its mark: what a program may copy, its own code
 * above all, must not hold jumps that lead from one place only.  A room that a process names
 * is asked of board_room_fits() before, here and below.
 */
void patch_planned(pid_t pid, int memory, const struct map *m, struct plan *p,
		   struct board_room *room, struct patch_sum *sum, struct shelf_view *shelf);

/* Marks instructions that ask the machine, in code that runs. */
void patch_marks(int memory, const struct map *m, const struct plan *p);

/* What is to be written for one mapping. */
struct patch_batch {
	uint8_t *code;		/* a copy of the mapping, where it has sites */
	uint8_t *boards;	/* the new boards, from room->used on */
	uint8_t *touched;	/* per page of the mapping */
	uint32_t *end;		/* per board: where it holds the address behind its site */
	unsigned ends;
	uint64_t len;
	uint64_t boards_len;
};

/*
 * What the same comes to, made of the file alone (fd; -1: of the vDSO); `whole`: `code` is
 * the whole mapping's.  0 or a negative errno; the batch is to be freed in each case.
 */
int patch_copy(struct plan *p, int fd, const struct map *m, const struct board_room *room,
	       bool whole, struct patch_batch *b, struct patch_sum *sum);
void patch_batch_free(struct patch_batch *b);

/* Patches one site that was only marked; the process has one thread. */
int patch_site(pid_t pid, int memory, uint64_t site, struct board_room *room);

/*
 * undo.c.  Before a mapping of a file is patched: what it is changed in is kept.  0 or a negative
 * errno; one that has no plan is not patched.
 */
int patch_keep(pid_t pid, int memory, const struct map *m);
bool patch_kept(const struct map *m);
/* The session may be left: bytes that are written over beside sites are kept, too. */
void patch_keeps(void);
void patch_keep_bytes(const struct map *m, uint64_t at, const uint8_t *was, unsigned len);
/*
 * All that may have been written into one executable mapping is as it was; of the vDSO, as ours
 * is.  0 or a negative errno.
 */
int patch_undo(pid_t pid, int memory, const struct map *m);

/* For it: of the mapping; where a site is in memory, if its whole window lies in the mapping. */
bool patch_is_vdso(const struct map *m);
bool patch_site_in(const struct plan_site *s, const struct map *m, uint64_t *at);
/* What lies behind the file's end is zero, as the kernel maps it. */
int patch_file_read(int fd, uint64_t offset, uint8_t *to, uint64_t len);

/* Opens the file that is mapped, where that does not wait; a descriptor or a negative errno. */
int patch_open(pid_t pid, const struct map *m);

/*
 * Why the call at this address of an executable mapping is left to the net, in words: of
 * what the planner knows of it, or of how it came to be called before it was patched.
 */
const char *patch_why_not(pid_t pid, const struct map *m, uint64_t address);

#endif
