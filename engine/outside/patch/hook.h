/*
 * Hooks: jumps at the beginning of libc's lock functions, so that their order is
 * recorded and kept (engine/abi/locks.h).  Only in sessions with followers.
 */
#ifndef MVE_OUTSIDE_HOOK_H
#define MVE_OUTSIDE_HOOK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "engine/abi/boot.h"
#include "engine/abi/locks.h"
#include "engine/outside/kernel/maps.h"

/*
 * Limit (programs): functions of locks and conditions that are hooked in one file. Beyond:
 * locks by a further one are not ordered, followers may differ there.
 */
#define HOOKS_MAX	64
#define HOOK_JUMP	5
#define HOOK_SHORT	2	/* the length of a short one */
#define HOOK_BYTES_MAX	64	/* of a function that is copied whole */
#define HOOK_BOARD_MAX	192	/* no entry board is longer */
#define HOOKS_ROOM	((HOOKS_MAX * HOOK_BOARD_MAX + 0xfff) & ~0xfffull)

/* One function; addresses are those of the file's program headers. */
struct hook {
	const char *name;
	const char *why;	/* it cannot be hooked; NULL: it can */
	uint64_t vaddr, size;	/* of the function */
	uint64_t at, offset;	/* what goes to the board: there and in the file */
	uint64_t pad;		/* padding with the jump, where a short one leads; or 0 */
	uint8_t kind;		/* enum lock_kind; LOCK_NONE: a request begins here */
	uint8_t len;		/* bytes that go to the board */
	bool whole;		/* all of the function: it comes back to its entry */
	bool sets_errno;
	uint8_t bytes[HOOK_BYTES_MAX];
	uint8_t pad_bytes[HOOK_JUMP];
};

struct hook_plan {
	unsigned n;
	struct hook hook[HOOKS_MAX];
	uint64_t undo[LOCK_KINDS];	/* functions; 0: none */
	uint64_t error;			/* __errno_location, or 0 */
};

enum hook_source {
	HOOKS_DYNAMIC,		/* a library's dynamic symbols */
	HOOKS_STATIC,		/* a static program's symbols, if it has them */
};

/* What of a file can be hooked.  0, or a negative errno. */
int hook_plan_file(int fd, enum hook_source source, struct hook_plan *p);

/* Where a function of the program's own can be hooked; -ENOENT: there is none. */
int hook_plan_function(int fd, const char *name, struct hook *h);

/* Does a library of this name hold such functions? */
bool hook_is_library(const char *path);

/*
 * Hooks what lies in one executable mapping: of a library that is known to hold
 * locks, or of a static program.  Nobody may be running it.  What cannot be hooked
 * is left alone, with a word in the log.
 */
enum hook_file {
	HOOK_LIBRARY,
	HOOK_STATIC,		/* a static program */
	HOOK_RUNTIME,		/* a program with a sanitizer's runtime in it */
};
struct stat;
/* What can be hooked there is known; else somebody is finding it out from now on. */
bool hook_planned(pid_t pid, const struct map *m, enum hook_file file);
/* Which functions are left alone, and why. */
void hook_log(const char *path, const struct hook_plan *p);
/* What was found out of a file. */
void hook_learn(const struct stat *st, const struct hook_plan *p);
/* Each hook is one that hook_plan_file() can have made: hook_learn takes no others. */
bool hook_plan_fits(const struct hook_plan *p);
void hook_map(pid_t pid, int memory, const struct map *m, enum hook_file file,
	      struct board_room *room);

/* The same with one function, if the mapping holds it. */
void hook_function(pid_t pid, int memory, const struct map *m, const char *name,
		   struct board_room *room);

/* A thread at this address would find itself within what hooks change there. */
bool hook_holds(pid_t pid, const struct map *m, enum hook_file file, uint64_t at);

/*
 * The board of a hook, for run-time addresses: `at` where the jump goes, helper[]
 * as HOOK_RELOCK, HOOK_UNDO, HOOK_ERROR name them.  Its size, or -ERANGE, -ENOSPC,
 * -EINVAL as for board_emit().
 */
long hook_emit(const struct hook *h, uint64_t at, uint64_t board, const uint64_t helper[3],
	       uint8_t *out, size_t cap);
int hook_jump(uint64_t at, uint64_t board, uint8_t jump[HOOK_JUMP]);

/* From the start of the board to the function without its hook. */
#define HOOK_ORIGINAL	44

#endif
