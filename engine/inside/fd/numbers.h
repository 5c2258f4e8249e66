/*
 * Numbers of descriptors: which a call gives up, copies and gives.  What is kept of them, and
 * what becomes of that, is in kept.def.
 */
#ifndef MVE_INSIDE_NUMBERS_H
#define MVE_INSIDE_NUMBERS_H

#include "engine/core/walk.h"
#include "engine/inside/gate/thread.h"

/* Calls of such a row may give some up. */
#define TRAITS_GONE	(TRAIT_CLOSES | TRAIT_CLOSES_RANGE | TRAIT_REPLACES)

struct numbers {
	int64_t first, last;	/* and all between them */
};

/*
 * The numbers that the call gives up where it succeeds, by its arguments; false: none.  Only
 * one that REPLACES can fail and leave them open: a close that fails had none to close.
 */
bool numbers_gone(const struct walk *w, struct numbers *n);
/* The call was made: it has put a copy of its first argument under the number that it gives. */
bool numbers_copied(const struct walk *w);
/* Where a message is received, which may bring some. */
static INLINE bool arg_is_message(const struct arg_desc *a)
{
	return a->kind == KIND_MEM && a->dir & DIR_OUT &&
	       (a->what == LAYOUT_msghdr || a->what == LAYOUT_mmsghdr);
}
/* Runs `on` for each number under which the call has put a descriptor. */
void numbers_given(const struct walk *w, void (*on)(void *what, int32_t fd), void *what);
/* A call of the row may give some: as its result, as a pair, in a message. */
static INLINE bool numbers_may_be_given(const struct call_desc *d)
{
	return d->result == KIND_FD || call_has(d, TRAIT_INNER) ||
	       (d->nargs > 1 && arg_is_message(&d->args[1]));
}

static inline void nothing_gone(struct thread *t, struct numbers n)
{
	(void)t, (void)n;
}

static inline void nothing_copied(int64_t from, int64_t to)
{
	(void)from, (void)to;
}

#endif
