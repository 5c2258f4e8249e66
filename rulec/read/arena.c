/*
 * Memory that is freed all at once, and text that grows.
 *
 * A compilation allocates little and keeps everything to its end, so nodes have
 * no owner but the arena.  Running out of memory ends the program: there is
 * nothing useful to say then, and no output has been written yet.
 */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "engine/core/must.h"
#include "rulec/rulec.h"

#define CHUNK_SIZE	65536

struct chunk {
	struct chunk *next;
	size_t used, size;
	max_align_t data[];
};

struct arena {
	struct chunk *chunks;
};

static void *take(void *at)
{
	if (!at) {
		fputs("rulec: out of memory\n", stderr);
		exit(EXIT_SYSTEM);
	}
	return at;
}

struct arena *arena_new(void)
{
	return take(calloc(1, sizeof(struct arena)));
}

void arena_free(struct arena *arena)
{
	while (arena->chunks) {
		struct chunk *next = arena->chunks->next;

		free(arena->chunks);
		arena->chunks = next;
	}
	free(arena);
}

void *arena_alloc(struct arena *arena, size_t size)
{
	struct chunk *c = arena->chunks;
	void *at;

	MUST(size && (!c || c->used <= c->size));
	size = (size + sizeof(max_align_t) - 1) / sizeof(max_align_t) * sizeof(max_align_t);
	if (!c || c->size - c->used < size) {
		size_t room = size > CHUNK_SIZE ? size : CHUNK_SIZE;

		c = take(calloc(1, sizeof(*c) + room));
		c->size = room;
		c->next = arena->chunks;
		arena->chunks = c;
	}
	at = (char *)c->data + c->used;
	c->used += size;
	return at;
}

char *arena_copy(struct arena *arena, const char *text, size_t len)
{
	char *copy = arena_alloc(arena, len + 1);

	memcpy(copy, text, len);
	return copy;
}

static char *format_list(struct arena *arena, const char *format, va_list list)
{
	va_list again;
	char *text;
	int len;

	va_copy(again, list);
	len = vsnprintf(NULL, 0, format, list);
	text = arena_alloc(arena, (size_t)len + 1);
	vsnprintf(text, (size_t)len + 1, format, again);
	va_end(again);
	return text;
}

char *arena_format(struct arena *arena, const char *format, ...)
{
	va_list list;
	char *text;

	va_start(list, format);
	text = format_list(arena, format, list);
	va_end(list);
	return text;
}

void buffer_add(struct buffer *b, const char *text, size_t len)
{
	if (b->size - b->len <= len) {
		b->size = (b->size + len + 64) * 2;
		b->at = take(realloc(b->at, b->size));
	}
	MUST(b->len + len < b->size);
	memcpy(b->at + b->len, text, len);
	b->len += len;
	b->at[b->len] = 0;
}

void buffer_print(struct buffer *b, const char *format, ...)
{
	char small[512], *large;
	va_list list, again;
	int len;

	va_start(list, format);
	va_copy(again, list);
	len = vsnprintf(small, sizeof(small), format, list);
	if ((size_t)len < sizeof(small)) {
		buffer_add(b, small, (size_t)len);
	} else {
		large = take(malloc((size_t)len + 1));
		vsnprintf(large, (size_t)len + 1, format, again);
		buffer_add(b, large, (size_t)len);
		free(large);
	}
	va_end(again);
	va_end(list);
}
