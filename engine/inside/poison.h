/*
 * What no source of the inside may name: there is no libc behind it, no heap, no errno, no
 * storage of libc's for each thread, and a name that happens to be found elsewhere would be
 * another program's.  The Makefile puts this in front of each of them, and of what of core/
 * the inside is built with; the linker's word (tools/check-inside) would come too late for
 * what the compiler knows how to do by itself.
 *
 * memory.h has what stands in their place.  The calls of the kernel keep their names: the
 * tables are full of them.
 */
#ifndef MVE_INSIDE_POISON_H
#define MVE_INSIDE_POISON_H

#pragma GCC poison memcpy memmove memset memcmp memchr mempcpy bcopy bzero bcmp
#pragma GCC poison strlen strnlen strcmp strncmp strcpy strncpy stpcpy strcat strchr strrchr strstr
#pragma GCC poison strtol strtoul atoi strerror strdup
#pragma GCC poison printf fprintf dprintf sprintf snprintf vsnprintf puts perror stdin stdout stderr
#pragma GCC poison malloc calloc realloc free posix_memalign aligned_alloc alloca
#pragma GCC poison errno __errno_location __thread _Thread_local thread_local
#pragma GCC poison abort atexit assert setjmp longjmp getenv environ
#pragma GCC poison pthread_self dlsym
#pragma GCC poison __builtin_memcpy __builtin_memmove __builtin_memset __builtin_memcmp
#pragma GCC poison __builtin_alloca __builtin_trap __builtin_abort

#endif
