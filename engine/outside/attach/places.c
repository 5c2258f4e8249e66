/*
 * Where threads are in the program's code, and where they come back to: what lies on their
 * stacks from where they stand, and looks like a place in code.  One in a handler has such a
 * place in its signal frame, which may be between any two instructions.
 */
#include <errno.h>
#include <stdlib.h>

#include "engine/core/must.h"
#include "engine/outside/attach/attach_parts.h"
#include "engine/outside/session/memory.h"

/*
 * Limit (programs): bytes of a thread's stack that mve attach looks at. Beyond: a handler so
 * far up that was interrupted in front of a call is not known.
 */
#define STACK_LOOK	(256u << 10)

static const struct map *map_of(const struct maps *maps, uint64_t at)
{
	size_t from = 0, to = maps->n;

	while (from < to) {
		size_t half = from + (to - from) / 2;

		if (maps->map[half].end <= at)
			from = half + 1;
		else
			to = half;
	}
	return from < maps->n && maps->map[from].start <= at ? &maps->map[from] : NULL;
}

static int place_add(struct places *p, uint64_t at)
{
	if (p->n == p->room) {
		size_t room = p->room ? 2 * p->room : 256;
		uint64_t *more = realloc(p->at, room * sizeof(*more));

		if (!more)
			return -ENOMEM;
		p->at = more;
		p->room = room;
	}
	p->at[p->n++] = at;
	return 0;
}

static int stack_look(const struct guest *g, const struct maps *maps, uint64_t sp,
		      struct places *p)
{
	static uint64_t word[STACK_LOOK / sizeof(uint64_t)];
	const struct map *m = map_of(maps, sp);
	uint64_t from = sp & ~7ull, len = m ? m->end - from : 0;
	int result;

	len = len < sizeof(word) ? len : sizeof(word);
	result = len ? memory_read(g->memory, from, word, len) : 0;
	for (uint64_t i = 0; !result && i < len / sizeof(*word); i++) {
		const struct map *code = word[i] < 4096 ? NULL : map_of(maps, word[i]);

		if (code && code->exec)
			result = place_add(p, word[i]);
	}
	return result;
}

static int in_order(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

int places_find(const struct guest *g, const struct maps *maps, struct places *p)
{
	int result = 0;

	MUST(g->crowd.n);
	*p = (struct places){ 0 };
	for (unsigned i = 0; i < g->crowd.n && !result; i++) {
		const struct user_regs_struct *r = &g->crowd.stander[i].regs;

		result = place_add(p, r->rip);
		if (!result && g->crowd.stander[i].again)	/* it comes back behind its call */
			result = place_add(p, r->rip + CALL_LEN);
		if (!result)
			result = stack_look(g, maps, r->rsp, p);
	}
	if (!result)
		qsort(p->at, p->n, sizeof(*p->at), in_order);
	return result;
}
