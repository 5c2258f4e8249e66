/*
 * Changes of mappings while a checkpoint is open, so that they are undone with it.
 */
#ifndef MVE_CHECKPOINT_MAPS_H
#define MVE_CHECKPOINT_MAPS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/types.h>
#include "engine/checkpoint/runtime/save.h"

/* What the program calls in the place of mmap and the like (pass/known.def). */
void *mve_map_mmap(void *at, size_t size, int prot, int flags, int fd, off_t offset);
int mve_map_munmap(void *at, size_t size);
void *mve_map_mremap(void *at, size_t old, size_t size, int flags, ...);
int mve_map_mprotect(void *at, size_t size, int prot);
int mve_map_madvise(void *at, size_t size, int advice);
void *mve_map_sbrk(intptr_t more);
int mve_map_brk(void *end);

/* seam/rights.c; of a program that takes no checkpoints, too: it has the heap. */
int mve_heap_setrlimit(__rlimit_resource_t what, const struct rlimit *limit);
int mve_heap_getrlimit(__rlimit_resource_t what, struct rlimit *limit);

/* The break, as libc knows it. */
extern void *__curbrk;

/* What cannot be undone is about to be done. */
void maps_lose(const char *why);

/* Whether it was mapped, as private memory, since the newest checkpoint was opened. */
SAVES int maps_new(uintptr_t at, size_t size);

/* Whether processes share it. */
SAVES int maps_shared(uintptr_t at);

/* What the pass calls before an atomic store. */
SAVES void mve_checkpoint_atomic(const void *at);

/* Takes back all since a number of changes. */
void maps_undo(size_t mark);

/* The outermost checkpoint is dropped: what was put off is done. */
void maps_commit(void);

#endif
