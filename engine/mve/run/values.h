/* Values of options: words and numbers, or -1 after a message. */
#ifndef MVE_RUN_VALUES_H
#define MVE_RUN_VALUES_H

#include <stdint.h>

/* One of some words; its place among them. */
int word_take(const char *option, const char *text, const char *const words[], int n);
/* A number with K, M or G behind it. */
int64_t size_take(const char *option, const char *text, int64_t least, int64_t most,
		  const char *hint);

#endif
