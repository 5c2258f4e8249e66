/*
 * Places in the program's own sources, for messages: each source becomes one of the unit's,
 * read if it still is where the compiler saw it, else as many empty lines as are needed.
 */
#include <string.h>

#include "engine/core/must.h"
#include "engine/xform/builds.h"

#define BLANK_LINES	65536

static const char *blank(struct unit *u, size_t *len)
{
	char *text = arena_alloc(u->arena, BLANK_LINES + 1);

	memset(text, '\n', BLANK_LINES);
	*len = BLANK_LINES;
	return text;
}

static unsigned source_of(struct unit *u, const char *path)
{
	struct source *s;

	for (unsigned i = 0; i < u->nsources; i++)
		if (!strcmp(u->sources[i].path, path))
			return i;
	if (u->nsources == SOURCES_MAX)
		return u->nsources - 1;
	s = &u->sources[u->nsources];
	s->path = path;
	s->text = file_read(u->arena, path, &s->len);
	if (!s->text)
		s->text = blank(u, &s->len);
	return u->nsources++;
}

struct loc place_loc(struct unit *u, struct place_in place)
{
	unsigned file = source_of(u, place.file ? place.file : "(no source)"), line = 1;
	const struct source *s = &u->sources[file];
	uint32_t at = 0;

	for (; at < s->len && line < place.line; at++)
		line += s->text[at] == '\n';
	for (unsigned i = 1; i < place.column && at < s->len && s->text[at] != '\n'; i++)
		at++;
	MUST(file < u->nsources && at <= s->len);
	return (struct loc){ file, at, at + 1 };
}
