/*
 * The server's heap: libc's, and what is known of it: where each allocation begins, and its
 * size to the byte.
 */
#ifndef MVE_UPDATE_HEAP_H
#define MVE_UPDATE_HEAP_H

#include <stdbool.h>
#include <stddef.h>

/* The live allocation that `at` points into, or just behind; NULL: none. */
char *heap_base(const void *at, size_t *size);
/* Each live allocation; nobody may allocate or free meanwhile. */
void heap_each(void (*look)(void *arg, char *at, size_t size), void *arg);

#endif
