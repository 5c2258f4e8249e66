/*
 * Where a follower's thread comes to stand for an image of its process: see stand.c.
 */
#ifndef MVE_INSIDE_STAND_H
#define MVE_INSIDE_STAND_H

#include "engine/inside/gate/request.h"
#include "engine/inside/gate/thread.h"
#include "engine/inside/lanes/sleep.h"

/* Registers that C code relies on, and where it goes on. */
struct context {
	uint64_t rip, rsp, rbx, rbp, r12, r13, r14, r15;
};

/* What the kernel keeps of a thread, of which a copy of its memory knows nothing. */
struct stance {
	struct context context;
	uint64_t fs, robust, robust_len, clear_tid;
	char name[16];
	bool anew;		/* the thread is made anew, in an image that goes on */
};

/* context.S: false; and true in the thread that is made of it. */
bool context_save(struct context *c) __attribute__((returns_twice));
/* Makes a thread that goes on there, with this block; its id, or -errno. */
long context_clone(const struct context *c, uint64_t flags, uint64_t fs, struct thread *block);

/*
 * A child by vfork makes a copy of the process by these flags, writes its id or -errno to *made,
 * and ends: that child's id, or -errno; 0 in the copy.
 */
long copy_away(uint64_t flags, int32_t *made);

/* By the thread's block; NULL: it does not stand. */
extern struct stance *stances[AREA_THREADS];

static inline const struct images *images(void)
{
	return &brief()->images;
}

static inline bool stand_wanted(void)
{
	return __builtin_expect(__atomic_load_n(&images()->stand, __ATOMIC_RELAXED), 0);
}

/* Who sleeps looks for a stand when it is wanted: a knock may come just before the sleep. */
static inline struct word stand_word(void)
{
	return (struct word){ &images()->stand, 0 };
}

bool stand_come(struct thread *t);
/* The knock that found it in our code is its own. */
bool stand_comes(const struct thread *t);

/*
 * A place where a follower's thread waits for others, and may be made anew; true: it has
 * stood, and what it knows of the time is old.
 */
static inline bool stand_look(struct thread *t)
{
	return stand_wanted() && stand_come(t);
}

/* In the handler of a knock: stands until the image is taken, or given up. */
void stand(struct thread *t);

#endif
