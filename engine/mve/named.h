/* What a word of a process' memory is to its program: a symbol's, and of which type. */
#ifndef MVE_NAMED_H
#define MVE_NAMED_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

void word_name(pid_t pid, uint64_t at, char *text, size_t size);

#endif
