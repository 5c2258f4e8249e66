/*
 * malloc and its like as libraries call them that were not built with the pass: libc's heap,
 * but for blocks that are ours (a line that getline() makes longer, what is freed for us).
 * The program's own calls do not come here: the pass has named them otherwise.  Functions of libc
 * that write nothing else of their own (library.h) do.
 *
 * A thread that a library has begun is in libraries without a call of the program's.
 */
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include "engine/checkpoint/runtime/heap.h"
#include "engine/checkpoint/runtime/library.h"
#include "engine/checkpoint/runtime/stacks.h"
#include "engine/checkpoint/ways/pages.h"

void *__libc_calloc(size_t number, size_t size);
void *__libc_realloc(void *at, size_t size);

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
		__libc_free(at);
	errno = error;
}

void *realloc(void *at, size_t size)
{
	library_called();
	return at && heap_rest(at) ? mve_heap_realloc(at, size) : look(__libc_realloc(at, size));
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
