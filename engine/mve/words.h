/*
 * Splitting a command as a shell would.
 */
#ifndef MVE_WORDS_H
#define MVE_WORDS_H

/*
 * Words by spaces, quotes and backslashes; nothing is expanded.  NULL: a quote
 * has no end, or there is no word.  The array ends with NULL and is kept.
 */
char **words_split(const char *text);

#endif
