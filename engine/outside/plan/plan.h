/*
 * The patch planner: which system-call instructions an ELF file has, and how
 * each may be turned into a jump to a board.  plan.c tells how it goes about
 * it, plan_window.c why a window is safe.
 *
 * A plan is about the file: addresses are those of its program headers, and
 * the caller adds the load bias.  A plan never changes once it is made, and is
 * counted: every successful call below gives the caller one reference, to be
 * returned with plan_free().
 */
#ifndef MVE_OUTSIDE_PLAN_H
#define MVE_OUTSIDE_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#define PLAN_BUILD_ID_MAX	32
/*
 * Limit (programs): system calls in the code of one file. Beyond: the file is not patched:
 * all its calls trap, which is slower.
 */
#define PLAN_SITES_MAX		65536

enum site_kind {
	SITE_TRAP,	/* a real syscall instruction, left to the net */
	SITE_BEFORE,	/* the jump lies wholly before the two bytes of `syscall` */
	SITE_AROUND,	/* the jump overwrites the syscall, perhaps what follows */
	SITE_INT80,	/* noted only: never patched */
	SITE_SYSENTER,	/* noted only: never patched */
	SITE_INSN,	/* no call: rdtsc, rdtscp, rdrand or rdseed; marked for twins */
};

/*
 * SITE_SLOW: a branch of the function enters between the jump and the end of
 * the site: it works, but those calls are served by the net.
 * SITE_END_LOST: the jump overwrites bytes at or after the site's end.  Code
 * that goes back there by address (a signal frame, a new thread) must be sent
 * to the board's resume instead; and no thread may stand there when the site
 * is patched.  Without this flag the bytes from the end on are the program's.
 * SITE_UNKNOWN: the bytes of a call, but nobody knows whether it is one: data
 * among code, most likely.  Not to be touched.
 */
#define SITE_SLOW	0x01
#define SITE_END_LOST	0x02
#define SITE_UNKNOWN	0x04

struct plan_site {
	uint64_t offset;	/* of the syscall instruction in the file */
	uint64_t vaddr;		/* of the same by the program headers */
	int32_t nr;		/* the call it makes, or -1: not seen */
	uint8_t kind;		/* enum site_kind */
	uint8_t flags;
	uint8_t before, after;	/* window bytes on each side of the syscall */
};

#define SITE_BYTES		2	/* the length of syscall, int80, sysenter */
#define SITE_JUMP		5	/* the length of the jump */
#define SITE_WINDOW_MAX		64	/* before + SITE_BYTES + after never exceeds it */

struct plan {
	unsigned refs;
	unsigned unknown_pairs;	/* 0f05, 0f34, cd80 in code that nothing explains */
	unsigned n;
	uint8_t vsyscall;	/* the file holds an address of the vsyscall page */
	uint8_t go;		/* it is Go's: a program that copies none of its code */
	uint8_t build_id_len;	/* 0: the file has none */
	uint8_t build_id[PLAN_BUILD_ID_MAX];
	struct plan_site sites[];	/* in order of vaddr */
};

/* Does this kind get a board? */
static inline int site_is_patched(const struct plan_site *s)
{
	return s->kind == SITE_BEFORE || s->kind == SITE_AROUND;
}

/* The whole window, which board_emit() wants to see as it was. */
static inline unsigned site_window(const struct plan_site *s)
{
	return s->before + SITE_BYTES + s->after;
}

/*
 * Plans an ELF64 x86-64 file (executable or shared object).  0 and *out, or a
 * negative errno: -ENOEXEC for anything else or damaged beyond use, -EFBIG and
 * -E2BIG beyond the planner's limits, or what reading it gave.
 */
int plan_file(int fd, struct plan **out);

/* The same for an ELF file that lies in memory, such as the vDSO. */
int plan_image(const void *bytes, size_t size, struct plan **out);

/*
 * plan_file() behind two caches: this process's, by the file's identity, and
 * the user's on disk, by build id.  Trouble with a cache is never an error.
 */
int plan_cached(int fd, struct plan **out);

/*
 * What the first of the caches knows of the file: 0, why it has no plan, or -EAGAIN: it has
 * yet to be planned.
 */
int plan_known(const struct stat *st, struct plan **out);

/* What it is to know: a plan, of which it takes a reference, or an error. */
void plan_learn(const struct stat *st, struct plan *p, int error);

/* Device, inode, size and time of change are the same. */
bool plan_same_file(const struct stat *a, const struct stat *b);

/*
 * Every row can be one of a file of this size: who patches relies on it.  Asked of a plan
 * that comes from elsewhere: from disk, from a child.
 */
bool plan_fits(const struct plan *p, uint64_t file_size);

/* Gives a reference back; NULL is fine. */
void plan_free(struct plan *p);

#endif
