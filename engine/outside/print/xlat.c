/*
 * Sets of named constants.  xlat.def is read three times here: once for the
 * values, once for the sets, and once (through the list in syscalls.def) for
 * the index by id, so that a row naming a set that does not exist fails to
 * compile.
 */
#include <string.h>
#include "engine/core/must.h"
#include "engine/outside/print/xlat.h"

#define XLAT(name, unknown) static const struct xlat_value values_##name[] = {
#define V(value, name) { value, #name },
#define END { 0, 0 } };
#include "engine/outside/print/xlat.def"
#undef XLAT
#undef V
#undef END

#define XLAT(name, unknown) const struct xlat xlat_##name = { \
	unknown, sizeof(values_##name) / sizeof(values_##name[0]) - 1, values_##name };
#define V(value, name)
#define END
#include "engine/outside/print/xlat.def"
#undef XLAT
#undef V
#undef END

static const struct xlat *const by_id[XLAT_COUNT] = {
#define XLAT(name) [XLAT_##name] = &xlat_##name,
#include "engine/abi/syscalls.def"
};

const struct xlat *xlat_find(enum xlat_id id)
{
	MUST(id >= XLAT_COUNT || by_id[id]);
	return id < XLAT_COUNT ? by_id[id] : &xlat_none;
}

const char *xlat_name(const struct xlat *set, uint64_t value)
{
	for (unsigned i = 0; i < set->count; i++)
		if (set->values[i].value == value)
			return set->values[i].name;
	return NULL;
}

int xlat_value(const struct xlat *set, const char *name, uint64_t *value)
{
	for (unsigned i = 0; i < set->count; i++) {
		if (strcmp(set->values[i].name, name))
			continue;
		*value = set->values[i].value;
		return 1;
	}
	return 0;
}
