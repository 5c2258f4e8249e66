/*
 * Copies of standing stacks lie one behind the other, in an area of their own.
 */
#ifndef MVE_CHECKPOINT_STACKS_H
#define MVE_CHECKPOINT_STACKS_H

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include "engine/checkpoint/runtime/layout.h"

#define STACKS_AT	(LOG_AT + LOG_MAX + 4096)

/* Limit (Checkpoints): bytes of the stacks that stand when checkpoints are opened.  Beyond:
 * opening one is refused with -ENOSPC. */
#define STACKS_MAX	(64ul << 20)

/* Limit (Checkpoints): threads at one time.  Beyond: pthread_create() fails, EAGAIN. */
#define THREADS_MAX	512

/* The calling thread's; no room: not known yet. */
struct own_stack {
	uintptr_t low;
	size_t room;
};

extern __thread struct own_stack own_stack
	__attribute__((tls_model("local-exec"), visibility("hidden")));

int mve_thread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*function)(void *),
		      void *argument);

/* libc's pthread_create(). */
int thread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*function)(void *),
		  void *argument);

/* Before anything of the program runs: its first thread's. */
void own_first(void);

/* Whether a mapping holds a thread's stack. */
int stack_within(uintptr_t begin, uintptr_t end);

/* libc's own heap. */
void *__libc_malloc(size_t size);
void __libc_free(void *at);

/*
 * Large arrays of the program's frames lie on a second stack of each thread (frames.c,
 * pass/frames.cc), whose stores are checked as those to other memory are.  So the stack that is
 * copied as a checkpoint is opened stays small.
 */

/* Limit (Checkpoints): bytes of large arrays in frames of a thread.  Beyond: they lie on its
 * ordinary stack, which is copied whole. */
#define FRAMES_ROOM	(1ul << 20)

#define FRAMES_AT	0x2000000000ul		/* 128 GiB */
#define FRAMES_END	(FRAMES_AT + (THREADS_MAX + 1) * FRAMES_ROOM)

/* A function begins, with its frame there: its place for so many bytes.  Null: it has to use
 * its own frame. */
void *mve_checkpoint_frame(const void *here, size_t size);

/* It returns, with its value in registers.  What it was given may be null. */
__attribute__((preserve_most)) void mve_checkpoint_frame_end(void *given);

/* A thread's is made, or ends.  The first thread's has place 0. */
void frames_begin(int place);
void frames_end(void);

/* The calling thread opens the outermost one. */
void frames_opener(void);

/* The newest checkpoint's, for who opens it, and goes back to it. */
struct level;
void frames_save(struct level *level);
void frames_restore(const struct level *level);

/* What lies below all that stands of the calling thread's goes back to the kernel. */
void frames_trim(void);

/* Whether a byte here need not be saved: it lies below all that stands, or another thread's. */
__attribute__((preserve_all)) int frames_dead(uintptr_t at);

static inline int frames_have(uintptr_t at)
{
	return at - FRAMES_AT < FRAMES_END - FRAMES_AT;
}

#endif
