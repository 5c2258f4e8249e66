/*
 * malloc and its like as libraries call them that were not built with the pass: libc's heap,
 * but for blocks that are ours (a line that getline() makes longer, what is freed for us).
 * The program's own calls do not come here: the pass has named them otherwise.
 */
#include <errno.h>
#include "engine/checkpoint/runtime/heap.h"

void __libc_free(void *at);
void *__libc_realloc(void *at, size_t size);
void free(void *at);
void *realloc(void *at, size_t size);

void free(void *at)
{
	int error = errno;

	if (heap_rest(at))
		mve_heap_free(at);
	else
		__libc_free(at);
	errno = error;
}

void *realloc(void *at, size_t size)
{
	return at && heap_rest(at) ? mve_heap_realloc(at, size) : __libc_realloc(at, size);
}
