/*
 * The system-call table by name: what a call in a rule means, which arguments
 * are memory, what the leader records, and what a follower may do by itself.
 *
 * Numbers, names and kinds come from engine/abi/syscalls.def and its variants.
 * What a follower may do by itself say the class of a row, and its traits RULE_*.
 */
#include <stdlib.h>
#include <string.h>

#include "engine/core/must.h"
#include "rulec/rulec.h"

static const struct call_name table[] = {
#define SYSCALL(nr, name, class, ...) \
	{ #name, CALL_ROW(nr, name, class, __VA_ARGS__), nr, 0, 0, 0, 0 },
#define VARIANT(nr, arg, mask, value, name, class, ...) \
	{ #name, CALL_ROW(nr, name, class, __VA_ARGS__), nr, 1, arg, mask, value },
#include "engine/abi/syscalls.def"
};

#define NAMES (sizeof(table) / sizeof(table[0]))

const struct call_name *name_table(unsigned *n)
{
	*n = NAMES;
	return table;
}

const struct call_name *name_find(const char *name, bool *many)
{
	const struct call_name *found = NULL;

	*many = false;
	for (unsigned i = 0; i < NAMES; i++) {
		if (strcmp(table[i].name, name))
			continue;
		*many = found != NULL;
		found = &table[i];
	}
	return found;
}

/* --- did you mean ---------------------------------------------------------- */

#define NAME_LEN_MAX	40

static unsigned least(unsigned a, unsigned b)
{
	return a < b ? a : b;
}

/* How many letters must be added, taken, changed or swapped. */
static unsigned distance(const char *a, const char *b)
{
	size_t n = strlen(a), m = strlen(b);
	unsigned row[3][NAME_LEN_MAX + 1];

	if (n > NAME_LEN_MAX || m > NAME_LEN_MAX)
		return NAME_LEN_MAX;
	MUST(n <= NAME_LEN_MAX && m <= NAME_LEN_MAX);
	for (unsigned j = 0; j <= m; j++)
		row[0][j] = j;
	for (unsigned i = 1; i <= n; i++) {
		unsigned *now = row[i % 3], *last = row[(i + 2) % 3], *older = row[(i + 1) % 3];

		now[0] = i;
		for (unsigned j = 1; j <= m; j++) {
			now[j] = least(last[j - 1] + (a[i - 1] != b[j - 1]),
				least(last[j], now[j - 1]) + 1);
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
				now[j] = least(now[j], older[j - 2] + 1);
		}
	}
	return row[n % 3][m];
}

/* So few that the one was surely meant as the other. */
static unsigned distance_most(const char *name)
{
	size_t len = strlen(name);

	return len <= 2 ? 0 : len <= 4 ? 1 : len <= 7 ? 2 : 3;
}

const char *nearest_of(const char *name, const char *const *names, unsigned n)
{
	unsigned best = distance_most(name) + 1;
	const char *found = NULL;

	for (unsigned i = 0; i < n; i++) {
		unsigned d = distance(name, names[i]);

		if (d < best) {
			best = d;
			found = names[i];
		}
	}
	return found;
}

const char *name_nearest(const struct unit *u, const char *name)
{
	const char *names[NAMES + 256];
	unsigned n = 0;

	for (const struct group *g = u->groups; g && n < 256; g = g->next)
		names[n++] = g->name;
	for (unsigned i = 0; i < NAMES; i++)
		names[n++] = table[i].name;
	MUST(n <= sizeof(names) / sizeof(names[0]));
	return nearest_of(name, names, n);
}

/* --- what a follower may do by itself -------------------------------------- */

int name_effect(const struct call_name *row)
{
	const struct call_desc *d = &row->desc;

	if (call_has(d, TRAIT_RULE_GUARDED))
		return NAME_GUARDED | RULES_OUT_PRIVATE;
	if (call_has(d, TRAIT_RULE_PRIVATE))
		return RULES_OUT_PRIVATE;
	if (call_has(d, TRAIT_RULE_FREE))
		return (d->result == KIND_FD ? RULES_OUT_OPENS : 0) |
		       (call_has(d, TRAIT_OPENS) ? RULES_OUT_READS : 0);
	return class_is_harmless(d->class) ? 0 : -1;
}

/* --- arguments ------------------------------------------------------------- */

bool arg_is_memory(const struct arg_desc *arg)
{
	return arg->kind >= KIND_VALUES;
}

bool arg_is_recorded(const struct call_name *row, unsigned arg)
{
	return arg_is_memory(&row->desc.args[arg]) && row->desc.class != CLASS_LOCAL;
}

int arg_counts_result_of(const struct call_name *row, unsigned arg)
{
	for (unsigned i = 0; i < row->desc.nargs; i++) {
		const struct arg_desc *a = &row->desc.args[i];

		if (a->len_rule == LEN_RULE_RESULT && a->len_arg == arg)
			return (int)i;
	}
	return -1;
}
