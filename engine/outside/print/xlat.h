/*
 * Sets of named constants: one `struct xlat` for each XLAT of xlat.def, under
 * the name xlat_<set>.  xlat_find() gives the set that a row of the call table
 * names by id.
 */
#ifndef MVE_OUTSIDE_XLAT_H
#define MVE_OUTSIDE_XLAT_H

#include <stdint.h>
#include "engine/abi/table.h"

struct xlat_value {
	uint64_t value;
	const char *name;
};

struct xlat {
	const char *unknown;	/* said in a comment beside an unknown value */
	unsigned count;
	const struct xlat_value *values;
};

#define XLAT(name, unknown) extern const struct xlat xlat_##name;
#define V(value, name)
#define END
#include "engine/outside/print/xlat.def"
#undef XLAT
#undef V
#undef END

const struct xlat *xlat_find(enum xlat_id id);

/* The name of a value; NULL when the set has none. */
const char *xlat_name(const struct xlat *set, uint64_t value);

/* The value of a name: true and *value when the set has it. */
int xlat_value(const struct xlat *set, const char *name, uint64_t *value);

#endif
