/*
 * malloc and its like as libraries call them that were not built with the pass: libc's heap,
 * but for blocks that are ours (a line that getline() makes longer, what is freed for us).
 * The program's own calls do not come here: the pass has named them otherwise.  Functions of libc
 * that write nothing else of their own (library.h) do.
 *
 * libc's heap must not unmap what it is given back under a checkpoint: going back writes there.  So
 * its large blocks lie among the others, and what is free at its end stays.  The break goes back
 * (maps.c), for libc knows it from the beginning.
 *
 * A thread that a library has begun is in libraries without a call of the program's.
 */
#include <dlfcn.h>
#include <errno.h>
#include <malloc.h>
#include <stdlib.h>
#include <unistd.h>
#include "engine/checkpoint/mve/checkpoint.h"
#include "engine/checkpoint/runtime/heap.h"
#include "engine/checkpoint/runtime/library.h"
#include "engine/checkpoint/runtime/maps.h"
#include "engine/checkpoint/runtime/stacks.h"
#include "engine/checkpoint/ways/pages.h"

void *__libc_calloc(size_t number, size_t size);
void *__libc_realloc(void *at, size_t size);

void libc_keeps(void)
{
	mallopt(M_MMAP_MAX, 0);
	mallopt(M_TRIM_THRESHOLD, -1);
	sbrk(0);
}

/* One from before that (glibc's malloc.c has it in the word before a block). */
static void unmaps(const void *at)
{
	if (at && ((const size_t *)at)[-1] & 2)
		maps_lose("libc unmapped a block");
}

void libc_free(void *at)
{
	unmaps(at);
	__libc_free(at);
}

void *libc_realloc(void *at, size_t size)
{
	unmaps(at);
	return __libc_realloc(at, size);
}

/* It has no other name, and the pass gives the heap's own calls of this one to the heap. */
size_t libc_usable_size(void *at)
{
	return malloc_usable_size(at);
}

/* Where libc's heap lies must be known. */
static void *look(void *got)
{
	if (got)
		pages_look((uintptr_t)got);
	return got;
}

void *malloc(size_t size)
{
	library_called();
	return look(__libc_malloc(size));
}

void *calloc(size_t number, size_t size)
{
	library_called();
	return look(__libc_calloc(number, size));
}

void free(void *at)
{
	int error = errno;

	library_called();
	if (heap_rest(at))
		mve_heap_free(at);
	else
		libc_free(at);
	errno = error;
}

/* By whatever name the program has it, dlsym()'s too. */
int malloc_trim(size_t pad)
{
	int (*libc)(size_t) = dlsym(RTLD_NEXT, "malloc_trim");

	if (mve_checkpoint_depth())
		return 0;
	mve_heap_trim();
	return libc(pad);
}

void *realloc(void *at, size_t size)
{
	library_called();
	return at && heap_rest(at) ? mve_heap_realloc(at, size) : look(libc_realloc(at, size));
}

int thread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*function)(void *),
		  void *argument)
{
	int (*libc)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *) =
		dlsym(RTLD_NEXT, "pthread_create");

	return libc(thread, attr, function, argument);
}

int pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*function)(void *),
		   void *argument)
{
	library_strange();
	return thread_create(thread, attr, function, argument);
}
