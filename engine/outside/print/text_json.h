/*
 * Text of others as JSON: any bytes, where JSON wants UTF-8.
 */
#ifndef MVE_OUTSIDE_TEXT_JSON_H
#define MVE_OUTSIDE_TEXT_JSON_H

#include <jansson.h>

/* A string; bytes that are no UTF-8 become U+FFFD each. */
json_t *text_json(const char *text);
/* An array of the words of a command; NULL: an empty one. */
json_t *words_json(char *const *words);

#endif
