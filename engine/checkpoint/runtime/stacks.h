/*
 * Copies of standing stacks lie one behind the other, in an area of their own.
 */
#ifndef MVE_CHECKPOINT_STACKS_H
#define MVE_CHECKPOINT_STACKS_H

#include <pthread.h>
#include <stddef.h>
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

#endif
