/*
 * What the runtime knows.  It has pages of its own: no region or page of the program's is
 * among them, so going back never changes it.  Written by whoever opens, drops or restores;
 * the log's head by all that save.
 *
 * Each process of a server has such pages to itself, once it has written to them.  So what all
 * write lies in one, with what the seam has and what mve and we tell each other; and in tables what
 * is used comes together, where a request comes, or lies in pages that nobody touches.
 */
#ifndef MVE_CHECKPOINT_STATE_H
#define MVE_CHECKPOINT_STATE_H

#include <stddef.h>
#include <stdint.h>
#include "engine/checkpoint/mve/checkpoint.h"
#include "engine/checkpoint/runtime/layout.h"
#include "engine/checkpoint/runtime/save.h"
#include "engine/checkpoint/runtime/stacks.h"
#include "engine/checkpoint/seam/seam.h"

/* What a function must find as it was, as jump.S writes and reads it. */
struct jump {
	uint64_t rbx, rbp, r12, r13, r14, r15, rsp, rip;
	uint32_t mxcsr;
	uint16_t x87, pad;
};

_Static_assert(offsetof(struct jump, rip) == 56 && sizeof(struct jump) == 72, "jump.S");

enum change_kind { CHANGE_MAPPED, CHANGE_SHARED, CHANGE_UNMAPPED, CHANGE_BREAK };

struct change {
	void *at;
	size_t size;
	enum change_kind kind;
};

/* Limit (Checkpoints): changes of mappings while a checkpoint is open.  Beyond: it is lost:
 * restoring says so, the program goes on. */
#define CHANGES_MAX	1024

/* Limit (Checkpoints): pages of tags that are wiped in place when epochs run over.  Beyond: the
 * tags are given back to the kernel. */
#define TAG_PAGES	1024
#define TAG_PAGES_NEAR	64

/* Limit (Checkpoints): mappings that processes share.  Beyond: no checkpoint is opened. */
#define SHARED_MAX	64

#define EPOCH_LAST	255

/* Places for how many checkpoints running have saved a region (ahead.c); a power of two. */
#define RUNS		1024

struct run {
	uint32_t name;
	uint8_t epoch, number;
	uint16_t pad;
};

struct level {
	struct jump jump;
	size_t mark;		/* the log's head when it was opened */
	size_t changed;		/* the number of changes of mappings then */
	uintptr_t heap_new;	/* of the heap what was not used yet */
	size_t heap_room;
	uintptr_t stack;	/* the standing stack: from here */
	size_t stack_size;
	size_t stack_mark;	/* its copy among the stacks */
	void *frames_top;	/* its arrays */
	uintptr_t frames_low, frames_live;	/* the latter before it was opened */
	uint8_t epoch;
	uint8_t looked;		/* pages.c: libraries' memory was looked at since, */
	size_t looked_mark;	/* with the log's head here */
	size_t aside;		/* and so much had been put aside */
	int error;		/* errno */
	int child, wakes;	/* way_fork.c */
};

struct state {
	uint8_t epoch;		/* of the newest checkpoint; 0: none is open */
	uint8_t last;		/* the greatest that was given since the tags were wiped */
	uint8_t ready;
	uint8_t undo;		/* the way of an undo log: there are no entries and tags */
	uint8_t lost;		/* what is open cannot be restored: an errno */
	uint8_t watch;		/* thunks.S: the newest checkpoint has not looked */
	uint8_t strange;	/* libraries may write without a call that is known */
	uint8_t called;		/* library.h: since the seam has put it out */
	uint8_t forgets;	/* what is saved ahead: it cannot be read */
	uint8_t doubts;		/* what is hot: the tags were wiped under the last checkpoint */
	uint8_t hotter;		/* something has become hot under the last checkpoint */
	uint8_t plain;		/* seam/bodies.c: why functions' plain bodies run: an errno */
	int depth;
	uint64_t serial;	/* of what the log holds now: older entries are none */
	size_t head;		/* entries of the log; past its end when it is full */
	size_t ahead;		/* entries of it that are saved ahead, the first ones; */
	size_t hot;		/* of these, the first ones, what is hot */
	uint32_t whose;		/* the next checkpoint is opened for: a connection, and 1; */
	uint32_t habit;		/* the last one has this habit (ahead.c) */
	uint32_t forgotten;	/* ahead.c: how often */
	uint32_t habits;	/* places of theirs up to the last that was used */
	uint64_t turn;		/* of the log: how often a mark was set in it, or gone back to */
	uintptr_t stack_low;	/* the stack of who opened the outermost one */
	size_t stack_room;
	size_t stacks;		/* bytes of the stacks' copies */
	uintptr_t heap_new;	/* the newest one's */
	size_t heap_room;
	uintptr_t frames_place;	/* frames.c: of who opened the outermost one; */
	uintptr_t frames_live;	/* what is below stood at none of those that are open */
	const char *why, *lost_why, *plain_why;
	size_t reserved;	/* bytes of address space that we have, but for the heap's */
	int stacks_known;
	int stacks_most;
	int tag_pages_more;	/* a page with tags has found its places taken */
	size_t changed;
	size_t changed_old;	/* before the newest was opened */
	struct mve_checkpoint_counts counts;
	uint32_t tag_page[TAG_PAGES_NEAR];	/* with tags; 0: none; beside those of the tables */
	size_t shared;		/* of these places so many had something; more: it is too much */
	struct {
		uintptr_t begin, end;			/* 0: free */
	} share[SHARED_MAX];	/* mappings that processes share */
};

struct state_tables {
	struct run run[RUNS];
	struct level levels[MVE_CHECKPOINT_DEPTH];
	struct change changes[CHANGES_MAX];
	uint32_t tag_page[TAG_PAGES];	/* with tags: each in one of two places; 0: none */
	struct {
		uintptr_t begin, end;			/* 0: free */
		const struct library_calls *calls;
	} stack[THREADS_MAX];	/* of threads */
};

_Static_assert(offsetof(struct state, watch) == 5 && offsetof(struct state, called) == 7,
	       "thunks.S");

#define ROLLBACK_OFFSET	2048
#define SEAM_OFFSET	2560

extern union own_pages {
	struct {
		struct state state;
		struct rollback rollback __attribute__((aligned(ROLLBACK_OFFSET)));
		struct seam seam __attribute__((aligned(512)));
	};
	char pages[3 * 4096];
} checkpoint_own __attribute__((visibility("hidden")));

_Static_assert(offsetof(union own_pages, rollback) == ROLLBACK_OFFSET &&
	       offsetof(union own_pages, seam) == SEAM_OFFSET, "levels.c gives them names");
_Static_assert(sizeof(union own_pages) == 3 * 4096, "pages of its own");

extern union tables_pages {
	struct state_tables t;
	char pages[16 * 4096];
} checkpoint_tables __attribute__((visibility("hidden")));

_Static_assert(sizeof(struct state_tables) <= sizeof(union tables_pages) &&
	       sizeof(union tables_pages) % 4096 == 0, "pages of its own");

#define state		(&checkpoint_own.state)
#define state_tables	(&checkpoint_tables.t)
#define seam		(&checkpoint_own.seam)
#define back		(&checkpoint_own.rollback)

/* The program has accepted it. */
static inline int is_connection(int fd)
{
	return fd >= 0 && fd < SEAM_FDS && seam->accepted[fd / 64] >> fd % 64 & 1;
}

/* Empty in a child, whoever has made it: libc's handlers of fork hear of libc's own only. */
extern union process_page {
	struct process {
		int has_pages;	/* pages.c has asked the kernel for its notes of them */
		int has_seam;	/* seam.c knows whose requests there are */
	} p;
	char page[4096];
} checkpoint_process __attribute__((visibility("hidden")));

#define process		(&checkpoint_process.p)

/* A call of the runtime failed: what to say of it.  Returns the negative errno. */
static inline int fail(int error, const char *why)
{
	state->why = why;
	return -error;
}

/* Nothing more is saved: what is open cannot be restored. */
static inline void lost(int error, const char *why)
{
	state->lost = error;
	state->lost_why = why;
	state->epoch = 0;
	state->watch = 0;
}

/* setup.c: maps tags and log as the program begins, and once chooses the way.  A negative errno
 * where they do not fit, or it cannot be had. */
int tags_begin(void);
int setup(void);

/* stack.c: the calling thread's stack: its upper end.  0: this is not a stack it knows. */
uintptr_t stack_end(uintptr_t sp, uintptr_t *low);
int stack_save(struct level *level);
void stack_restore(const struct level *level);

/* log.c */
void log_begin(void);
void log_trim(void);	/* the log is empty, and its pages go back to the kernel */
void log_stack(uintptr_t low, uintptr_t sp, uintptr_t end);
void log_undo(size_t mark, void (*also)(uintptr_t at, const void *bytes));

/* The first byte from here on, in the program's data, that is none of the program's: the runtime's
 * own, or the end. */
SAVES uintptr_t own_next(uintptr_t at);

/* The program's data. */
extern char __data_start __attribute__((visibility("hidden")));
extern char _end __attribute__((visibility("hidden")));
extern char checkpoint_stack[65536] __attribute__((visibility("hidden")));

static inline int is_data(uintptr_t at)
{
	return at - (uintptr_t)&__data_start < (size_t)(&_end - &__data_start);
}

/* ahead.c: how many entries are to be saved ahead, whose addresses it writes into the log; they are
 * saved; this can no longer be read. */
size_t ahead_choose(void);
void ahead_save(void);
void ahead_forget(const void *at, size_t size);

/* known.c: of so many bytes at most, how many there are that may be written. */
SAVES size_t known_most(uintptr_t at, size_t size);

/* All tags are of no epoch. */
void tags_wipe(void);

/* seam/bodies.c, before anything of the program runs: whether checked bodies of functions run. */
int bodies_begin(void);

/* levels.c, for jump.S */
__attribute__((visibility("hidden"))) int checkpoint_open(const struct jump *jump);
__attribute__((visibility("hidden"))) int checkpoint_restore(void);

/* jump.S: takes up where the jump was written, with a value. */
_Noreturn void checkpoint_jump(const struct jump *jump, int value);

#endif
