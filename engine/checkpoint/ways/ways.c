/* The ways as a table. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "engine/checkpoint/ways/ways.h"

#define LOG_UNIT	(REGION + 16)
#define PAGE_UNIT	(4096 + 8)

static void nothing(const struct level *level)
{
	(void)level;
}

static int ready(void)
{
	return 0;
}

static const struct way ways[] = {
	{ "tags", pages_begin, tags_open, tags_restore, nothing, 0, LOG_UNIT, 1 },
	{ "undo", undo_begin, undo_open, undo_restore, nothing, 0, 1, 0 },
	{ "scan", pages_begin, pages_open, pages_restore, nothing, 1, 1, 0 },
	{ "mprotect", protect_begin, protect_open, protect_restore, protect_drop, 1, PAGE_UNIT, 0 },
	{ "fork", ready, fork_open, fork_restore, fork_drop, 1, 1, 0 },
};

const struct way *way;

/* As the program begins: nginx' workers have no environment. */
__attribute__((constructor(101))) static void way_find(void)
{
	const char *name = getenv("MVE_CHECKPOINT_WAY");

	for (size_t n = 0; n < sizeof(ways) / sizeof(ways[0]); n++)
		if (!strcmp(ways[n].name, name ? name : "tags"))
			way = &ways[n];
}

int way_choose(void)
{
	return way ? way->begin() : fail(EINVAL, "MVE_CHECKPOINT_WAY: no such way");
}
