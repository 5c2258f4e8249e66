/*
 * The ways of keeping memory.  Tags and the log are ours; the others are there to be compared with
 * it, behind the same header.  MVE_CHECKPOINT_WAY, as the program begins, chooses:
 *
 *	tags		checks, tags and the log; libraries' memory by pages
 *	undo		each store is logged: the program was built with -mve-undo
 *	scan		all by pages: the kernel protects them, and says which were written
 *	mprotect	all by pages: a write faults, and a handler copies the page
 *	fork		a child for each checkpoint, that goes on in the place of its parent
 *
 * With the last three the program is built with -mve-no-checks.
 */
#ifndef MVE_CHECKPOINT_WAYS_H
#define MVE_CHECKPOINT_WAYS_H

#include "engine/checkpoint/runtime/state.h"

struct way {
	const char *name;
	int (*begin)(void);			/* once; a negative errno: it cannot be had */
	int (*open)(struct level *level);	/* the same */
	void (*restore)(const struct level *level);
	void (*drop)(const struct level *level);
	int all;		/* by pages: all memory; else that of libraries */
	size_t unit;		/* bytes of the log that its head counts in */
	int hot;		/* regions may be saved ahead */
};

extern const struct way *way __attribute__((visibility("hidden")));

int way_choose(void);

/* pages.c */
int pages_begin(void);
int pages_open(struct level *level);
int tags_open(struct level *level);
void pages_restore(const struct level *level);
void tags_restore(const struct level *level);

/* way_mprotect.c */
int protect_begin(void);
void protect_own(void);
int protect_open(struct level *level);
void protect_restore(const struct level *level);
void protect_drop(const struct level *level);

/* way_fork.c */
int fork_open(struct level *level);
_Noreturn void fork_restore(const struct level *level);
void fork_drop(const struct level *level);

/* way_undo.c */
int undo_begin(void);
int undo_open(struct level *level);
void undo_restore(const struct level *level);

#endif
