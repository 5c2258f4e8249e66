/*
 * The table of system calls: the rows of engine/abi/syscalls.def laid out as
 * constant data, and the three ways to look one up.
 *
 * Nothing here is ever written, and nothing is a pointer: the object needs no
 * relocation, so it may be linked anywhere, the inside included.  This file
 * must not include a header that defines constants (<fcntl.h> and the like):
 * the names of variants are taken from the rows as they stand.
 */
#include "engine/abi/table.h"

static const struct call_desc calls[CALL_MAX] = {
#define SYSCALL(nr, name, class, ...) [nr] = CALL_ROW(nr, name, class, __VA_ARGS__),
#include "engine/abi/syscalls.def"
};

/* Variants are found by key first: the keys of all rows fit a few cache lines. */
static const struct variant_key {
	uint16_t nr;
	uint16_t arg;
	uint64_t mask;
	uint64_t value;
} variant_keys[] = {
#define VARIANT(nr, arg, mask, value, name, class, ...) { nr, arg, mask, value },
#include "engine/abi/syscalls.def"
};

static const struct call_desc variants[] = {
#define VARIANT(nr, arg, mask, value, name, class, ...) CALL_ROW(nr, name, class, __VA_ARGS__),
#include "engine/abi/syscalls.def"
};

#define VARIANTS (sizeof(variants) / sizeof(variants[0]))

/* A row of its own for most numbers: only these are searched for. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Woverride-init"
static const uint8_t has_variants[CALL_MAX] = {
#define VARIANT(nr, ...) [nr] = 1,
#include "engine/abi/syscalls.def"
};
#pragma GCC diagnostic pop

static const char class_names[CLASS_COUNT][8] = {
	"local", "effect", "input", "query", "soft", "both", "life",
};

const struct call_desc *call_find(long nr)
{
	if (nr < 0 || nr >= CALL_MAX || !calls[nr].name[0])
		return 0;
	return &calls[nr];
}

const struct call_desc *call_find_variant(long nr, const uint64_t args[CALL_ARGS])
{
	for (unsigned i = 0; nr >= 0 && nr < CALL_MAX && has_variants[nr] && i < VARIANTS; i++) {
		const struct variant_key *k = &variant_keys[i];

		if (k->nr == nr && (args[k->arg] & k->mask) == k->value)
			return &variants[i];
	}
	return call_find(nr);
}

int call_has_variants(long nr)
{
	return nr >= 0 && nr < CALL_MAX && has_variants[nr];
}

uint32_t call_traits(long nr)
{
	const struct call_desc *row = call_find(nr);
	uint32_t traits = row ? row->traits : 0;

	for (unsigned i = 0; call_has_variants(nr) && i < VARIANTS; i++)
		if (variant_keys[i].nr == nr)
			traits |= variants[i].traits;
	return traits;
}

static int asks_of_process(const struct call_desc *row)
{
	for (unsigned i = 0; i < row->nargs; i++)
		if (row->args[i].kind == KIND_PID)
			return 1;
	return 0;
}

int call_is_local(long nr)
{
	if (nr < 0 || nr >= CALL_MAX || calls[nr].class != CLASS_LOCAL ||
	    asks_of_process(&calls[nr]))
		return 0;
	for (unsigned i = 0; has_variants[nr] && i < VARIANTS; i++)
		if (variant_keys[i].nr == nr && variants[i].class != CLASS_LOCAL)
			return 0;
	return 1;
}

static int same(const char *a, const char *b)
{
	while (*a && *a == *b)
		a++, b++;
	return *a == *b;
}

long call_number(const char *name)
{
	for (long nr = 0; nr < CALL_MAX; nr++)
		if (calls[nr].name[0] && same(calls[nr].name, name))
			return nr;
	return -1;
}

const char *class_name(enum call_class class)
{
	return class < CLASS_COUNT ? class_names[class] : "?";
}

unsigned layout_size(enum layout_id layout)
{
	return layout_bytes(layout);
}
