/*
 * Calls of libraries that were not built with the pass.  They may write memory that nobody
 * checks, so before the first of them under a checkpoint that memory is looked at (ways/pages.c).
 * A request that makes none costs nothing of the kind.
 *
 * Each such call of the program comes by a thunk (thunks.S), which library.c puts into the
 * program's table of addresses before it begins; a pointer that leads out of the program is
 * given one where it is called (pass/outside.cc).  Functions that write nothing of their library's
 * own have a row ONLY in pass/known.def, and no thunk.
 */
#ifndef MVE_CHECKPOINT_LIBRARY_H
#define MVE_CHECKPOINT_LIBRARY_H

/* Limit (Checkpoints): functions of libraries that a program calls.  Beyond: libraries' memory is
 * looked at for each checkpoint. */
#define LIBRARY_FUNCTIONS	2048

/* Limit (Checkpoints): calls of libraries within one another (a library that calls the program,
 * which calls a library) in one thread.  Beyond: as above. */
#define LIBRARY_CALLS		64

/* Bytes.  They are in a process' memory with what lies near, so they lie close. */
#define LIBRARY_THUNK		12

#ifndef __ASSEMBLER__

#include <stddef.h>
#include <stdint.h>
#include "engine/checkpoint/runtime/save.h"
#include "engine/checkpoint/runtime/state.h"

/*
 * Calls of a thread that may not have returned, the outermost first: where each one's return
 * address lies, and what it is.  One that has returned goes when another is made from above it.
 * A handler may come at any point: thunks.S.
 */
struct library_calls {
	uint64_t top;		/* bytes into `call` */
	struct {
		uintptr_t at, to;
	} call[LIBRARY_CALLS];	/* the first one is none: above all stacks */
};

extern __thread struct library_calls library_calls
	__attribute__((tls_model("local-exec"), visibility("hidden")));

/* Whether this thread is in a library's function that has called the program, at a place of its
 * stack; or another one is in any. */
int library_stands(uintptr_t sp);

/* A library is about to write, and this checkpoint has not looked yet. */
SAVES void library_look(void);

/* This is a new child. */
void library_child(void);

static inline void library_called(void)
{
	if (state->watch)
		library_look();
}

/* Makes room among this thread's calls. */
SAVES void library_full(void);

/* This is not the thread's own stack: a handler's, a coroutine's. */
SAVES void library_foreign(void);

/* Libraries write, and calls do not show it: look each time. */
SAVES void library_strange(void);

/* The same function by way of a thunk. */
__attribute__((preserve_most)) void *mve_checkpoint_callee(void *function);

/* The program's code: begin and size. */
extern uintptr_t mve_checkpoint_text[2];

#endif
#endif
