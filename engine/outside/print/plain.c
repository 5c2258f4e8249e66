/*
 * See plain.h.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/outside/print/plain.h"

#define WORST	4	/* bytes that one becomes: \xNN */
#define ROOM	1024

/* The character at the beginning of a text and its bytes; 0 bytes: it is not UTF-8. */
static unsigned char_take(const unsigned char *at, size_t len, uint32_t *c)
{
	static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
	unsigned n = *at < 0x80 ? 1 : *at >> 5 == 6 ? 2 : *at >> 4 == 14 ? 3 :
		     *at >> 3 == 30 ? 4 : 0;

	if (!n || n > len)
		return 0;
	*c = n == 1 ? *at : *at & (0x7fu >> n);
	for (unsigned i = 1; i < n; i++) {
		if (at[i] >> 6 != 2)
			return 0;
		*c = *c << 6 | (at[i] & 0x3f);
	}
	return *c < least[n] || *c > 0x10ffff || *c >> 11 == 0x1b ? 0 : n;
}

static bool is_shown(uint32_t c, bool lines)
{
	static const struct { uint32_t from, to; } obeyed[] = {
		{ 0, 0x1f }, { 0x7f, 0x9f },	/* controls */
		{ 0x61c, 0x61c }, { 0x200e, 0x200f }, { 0x2028, 0x202e }, { 0x2066, 0x2069 },
	};

	if ((c == '\n' || c == '\t') && lines)
		return true;
	for (size_t i = 0; i < sizeof(obeyed) / sizeof(obeyed[0]); i++)
		if (c >= obeyed[i].from && c <= obeyed[i].to)
			return false;
	return true;
}

size_t plain_text(const char *text, size_t len, bool lines, char *to, size_t size)
{
	const unsigned char *at = (const unsigned char *)text;
	size_t out = 0;

	for (size_t i = 0; i < len;) {
		uint32_t c;
		unsigned n = char_take(at + i, len - i, &c);
		bool shown = n && is_shown(c, lines);

		n = n ? n : 1;
		if (out + n * WORST >= size)
			break;
		for (unsigned k = 0; k < n; k++, i++) {
			if (shown)
				to[out++] = text[i];
			else
				out += (size_t)snprintf(to + out, WORST + 1, "\\x%02x", at[i]);
		}
	}
	to[out] = 0;
	return out;
}

static void string_plain(json_t *j, bool lines)
{
	size_t len = json_string_length(j);
	char *to = malloc(len * WORST + WORST + 1);

	/* Without memory it is not shown at all. */
	if (to)
		plain_text(json_string_value(j), len, lines, to, len * WORST + WORST + 1);
	json_string_set_nocheck(j, to ? to : "");
	free(to);
}

/* Keys come from programs, too: what they open, what they are called. */
static void object_plain(json_t *j, bool lines)
{
	json_t *value, *made = json_object();
	const char *key;

	json_object_foreach(j, key, value)
		json_object_set_nocheck(made, plain(key), plain_json(value, lines));
	json_object_clear(j);
	json_object_update(j, made);
	json_decref(made);
}

json_t *plain_json(json_t *j, bool lines)
{
	json_t *value;
	size_t i;

	if (json_is_string(j))
		string_plain(j, lines);
	else if (json_is_object(j))
		object_plain(j, lines);
	json_array_foreach(j, i, value)
		plain_json(value, lines);
	return j;
}

const char *plain(const char *text)
{
	static char room[4][ROOM];
	static unsigned turn;
	char *to = room[turn++ % 4];

	plain_text(text, strlen(text), false, to, ROOM);
	return to;
}
