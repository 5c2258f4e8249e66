/*
 * Text of others as JSON.
 */
#include <stdlib.h>
#include <string.h>

#include "engine/outside/monitor/say.h"
#include "engine/outside/print/text_json.h"

#define UTF8_MAX	4	/* bytes of a character */
#define NO_CHARACTER	"\xef\xbf\xbd"

/* How many bytes the character here has; 0: it is none. */
static size_t character(const char *at)
{
	for (size_t n = 1; n <= UTF8_MAX && at[n - 1]; n++) {
		json_t *j = json_stringn(at, n);

		json_decref(j);
		if (j)
			return n;
	}
	return 0;
}

json_t *text_json(const char *text)
{
	json_t *j = json_string(text);
	char *clean, *to;

	if (j)
		return j;
	to = clean = malloc(strlen(text) * strlen(NO_CHARACTER) + 1);
	MUST(clean);
	while (*text) {
		size_t n = character(text);

		memcpy(to, n ? text : NO_CHARACTER, n ? n : strlen(NO_CHARACTER));
		to += n ? n : strlen(NO_CHARACTER);
		text += n ? n : 1;
	}
	*to = 0;
	j = json_string(clean);
	free(clean);
	return j;
}

json_t *words_json(char *const *words)
{
	json_t *list = json_array();

	for (; words && *words; words++)
		json_array_append_new(list, text_json(*words));
	return list;
}
