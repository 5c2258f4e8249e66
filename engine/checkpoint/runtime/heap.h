/*
 * The program's heap.  heap.c is built with the pass, as the program is: what it keeps is
 * taken back as the rest is, and no free, no malloc of a request needs to be undone.
 *
 * Functions of libraries that were not built with it have libc's heap (interpose.c).  A block
 * of one may be given back to the other.
 */
#ifndef MVE_CHECKPOINT_HEAP_H
#define MVE_CHECKPOINT_HEAP_H

#include <stddef.h>
#include <stdint.h>
#include "engine/checkpoint/runtime/stacks.h"

void *mve_heap_malloc(size_t size);
void *mve_heap_calloc(size_t number, size_t size);
void *mve_heap_realloc(void *at, size_t size);
void mve_heap_free(void *at);
void *mve_heap_memalign(size_t align, size_t size);
void *mve_heap_aligned_alloc(size_t align, size_t size);
int mve_heap_posix_memalign(void **at, size_t align, size_t size);
size_t mve_heap_usable_size(void *at);
char *mve_heap_strdup(const char *text);
char *mve_heap_strndup(const char *text, size_t most);

/* interpose.c: of libc's heap. */
void libc_keeps(void);
void libc_free(void *at);
void *libc_realloc(void *at, size_t size);
size_t libc_usable_size(void *at);

/* malloc_trim: all that is free, in whole pages, is given back to the kernel. */
void mve_heap_trim(void);

/* Which of the threads this is, for what each has of its own; 0: none that is known. */
#define HEAP_PLACES	(THREADS_MAX + 2)
extern __thread unsigned heap_place
	__attribute__((tls_model("local-exec"), visibility("hidden")));

/* The reservation, and up to where there may be anything in it. */
void heap_bounds(uintptr_t *begin, uintptr_t *used, uintptr_t *end);
uintptr_t heap_used(void);

/* It is to have no more than so much. */
void heap_bound(size_t bytes);
size_t heap_room(void);

/* No checkpoint is open: what is free at the heap's end, of what was used up to here as well, is
 * given back to the kernel. */
void heap_trim(uintptr_t used);

/* From a pointer to the end of its block; 0: not of this heap. */
uint64_t heap_rest(const void *at);

#endif
