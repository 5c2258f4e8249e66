/*
 * Splitting a command as a shell would, without expanding anything: ' keeps all,
 * " keeps all but \" and \\, a backslash keeps the next character.
 */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "engine/mve/words.h"
#include "engine/outside/monitor/say.h"

static bool is_space(char c)
{
	return c == ' ' || c == '\t' || c == '\n';
}

/* Copies what is quoted; the character behind it, or NULL. */
static const char *quoted_copy(const char *at, char quote, char **to)
{
	for (; *at != quote; at++) {
		if (quote == '"' && *at == '\\' && (at[1] == '"' || at[1] == '\\'))
			at++;
		if (!*at)
			return NULL;
		*(*to)++ = *at;
	}
	return at + 1;
}

/* Copies one word; the character behind it, or NULL. */
static const char *word_copy(const char *at, char **to)
{
	while (at && *at && !is_space(*at)) {
		if (*at == '\'' || *at == '"') {
			at = quoted_copy(at + 1, *at, to);
			continue;
		}
		if (*at == '\\' && !*++at)
			return NULL;
		*(*to)++ = *at++;
	}
	*(*to)++ = 0;
	return at;
}

char **words_split(const char *text)
{
	size_t len = strlen(text), n = 0;
	char **words = calloc(len / 2 + 2, sizeof(*words)), *to = malloc(len + 2);

	MUST(words && to);
	for (;;) {
		while (is_space(*text))
			text++;
		if (!*text)
			break;
		words[n++] = to;
		text = word_copy(text, &to);
		if (!text)
			return NULL;
	}
	return n ? words : NULL;
}
