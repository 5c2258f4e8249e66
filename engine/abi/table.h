/*
 * The table of system calls as data.  syscalls.def holds the rows; this header
 * says what a row means to a program, and call_find() finds one.
 *
 * Names are arrays in the row, not pointers, so that the table needs no
 * relocation and can be linked into the inside as well.
 */
#ifndef MVE_ABI_TABLE_H
#define MVE_ABI_TABLE_H

#include <stdint.h>

/* What happens to a call on the leader and on a follower; see docs/design/record.md. */
enum call_class {
	CLASS_LOCAL,		/* each version runs its own; no event */
	CLASS_EFFECT,		/* leader runs; content compared; follower answered */
	CLASS_INPUT,		/* leader runs; follower answered with the data */
	CLASS_QUERY,		/* answered if the stream has it; compared loosely */
	CLASS_SOFT,		/* clocks: small events, interpolated */
	CLASS_BOTH,		/* both run it; arguments compared */
	CLASS_LIFE,		/* both run their own twin: clone, exec, exit */
	CLASS_COUNT
};

/* What an argument, or a result, is.  Above KIND_VALUES it is an address. */
enum arg_kind {
	KIND_NONE, KIND_INT, KIND_UINT, KIND_LONG, KIND_SIZE, KIND_OFF, KIND_HEX,
	KIND_XINT, KIND_OCT, KIND_FD, KIND_DIRFD, KIND_PID, KIND_UID, KIND_GID,
	KIND_SIG, KIND_MODE, KIND_DEV, KIND_PTR, KIND_SKIP, KIND_ENUM, KIND_FLAGS,
	KIND_WAIT,		/* milliseconds to wait at most: told, and never compared */
	KIND_VALUES,
	KIND_PATH = KIND_VALUES, KIND_STR, KIND_MEM
};

enum arg_dir { DIR_VALUE = 0, DIR_IN = 1, DIR_OUT = 2, DIR_IO = 3 };

/* How long the memory behind an address is; `len_arg` names the argument. */
enum len_rule {
	LEN_NONE,
	LEN_RULE_ONE,		/* one element */
	LEN_RULE_COUNT,		/* elements: the argument */
	LEN_RULE_RESULT,	/* elements: the result, at most the argument */
	LEN_RULE_AT,		/* bytes: the u32 that the argument points to */
	LEN_RULE_AT64,		/* bytes: the u64 that the argument points to */
	LEN_RULE_BITS,		/* bits: the argument, rounded up to longs */
	LEN_RULE_PAGES,		/* one per page of as many bytes as the argument says */
	LEN_RULE_SELF,		/* the object's head says */
	LEN_RULE_ZERO,		/* up to a zero element */
	LEN_RULE_IOC,		/* bytes: as the argument, an ioctl's number, says */
	LEN_RULE_HOST,		/* bytes: as the host has found out before the call */
};

enum layout_id {
#define LAYOUT(name, size) LAYOUT_##name,
#include "engine/abi/syscalls.def"
	LAYOUT_COUNT
};

enum xlat_id {
#define XLAT(name) XLAT_##name,
#include "engine/abi/syscalls.def"
	XLAT_COUNT
};

enum trait_id {
#define TRAIT(name) TRAIT_BIT_##name,
#include "engine/abi/syscalls.def"
	TRAIT_COUNT
};

/* What calls have in common beyond class and arguments; syscalls.def says what each means. */
enum call_trait {
	TRAIT_NONE = 0,
#define TRAIT(name) TRAIT_##name = 1 << TRAIT_BIT_##name,
#include "engine/abi/syscalls.def"
};

/* CALL_read and so on: for the few calls that have code of their own. */
enum call_nr {
#define SYSCALL(nr, name, class, ...) CALL_##name = nr,
#include "engine/abi/syscalls.def"
	CALL_LAST_ROW
};

#define CALL_MAX	CALL_LAST_ROW	/* one more than the largest number */
#define CALL_ARGS	6

struct arg_desc {
	char name[11];
	uint8_t kind;		/* enum arg_kind */
	uint8_t dir;		/* enum arg_dir */
	uint8_t len_rule;	/* enum len_rule */
	uint8_t len_arg;	/* which argument the rule reads */
	uint8_t what;		/* enum layout_id, or enum xlat_id for values */
};

struct call_desc {
	char name[32];
	int16_t nr;
	uint8_t class;		/* enum call_class */
	uint8_t nargs;
	uint8_t result;		/* enum arg_kind */
	uint8_t result_xlat;	/* enum xlat_id */
	uint8_t pad[2];
	uint32_t traits;	/* enum call_trait */
	struct arg_desc args[CALL_ARGS];
};

_Static_assert(sizeof(struct arg_desc) == 16, "rows are packed");
_Static_assert(TRAIT_COUNT < 32, "traits fit a word");
_Static_assert(LAYOUT_COUNT < 256 && XLAT_COUNT < 256, "ids fit a byte");

/* The row of a number; 0 when there is no such call. */
const struct call_desc *call_find(long nr);

/* The same, but a variant's row when the arguments choose one. */
const struct call_desc *call_find_variant(long nr, const uint64_t args[CALL_ARGS]);

/* The traits of a number's row and of all its variants: what a call of it may have. */
uint32_t call_traits(long nr);

/* One of these. */
static inline int call_has(const struct call_desc *row, uint32_t traits)
{
	return row && row->traits & traits;
}

/* The first path among its arguments; -1: none. */
static inline int call_path_arg(const struct call_desc *row)
{
	for (unsigned i = 0; i < row->nargs; i++)
		if (row->args[i].kind == KIND_PATH)
			return (int)i;
	return -1;
}

/* It names a process or thread. */
static inline int call_has_ids(const struct call_desc *row)
{
	for (unsigned i = 0; row && i < row->nargs; i++)
		if (row->args[i].kind == KIND_PID)
			return 1;
	return row && row->result == KIND_PID;
}

/* Calls of class life: one makes a task, one ends it, the others begin a program. */
static inline int call_bears(const struct call_desc *row)
{
	return row && row->class == CLASS_LIFE && row->result == KIND_PID;
}

static inline int call_ends(const struct call_desc *row)
{
	return row && row->class == CLASS_LIFE && row->result == KIND_NONE;
}

/* A follower may make such a call for itself: nobody but it will know. */
static inline int class_is_harmless(enum call_class class)
{
	return class == CLASS_LOCAL || class == CLASS_QUERY || class == CLASS_SOFT ||
	       class == CLASS_BOTH;
}

/* Whether a call's arguments choose its row. */
int call_has_variants(long nr);

/* Whether a call is local whatever its arguments are, and names no process: ids differ. */
int call_is_local(long nr);

/* The number of a call; -1 when there is no such name. */
long call_number(const char *name);

const char *class_name(enum call_class class);

/* Bytes of one element of a layout. */
unsigned layout_size(enum layout_id layout);

/* The same, a constant where the layout is one. */
static inline unsigned layout_bytes(enum layout_id layout)
{
	switch (layout) {
#define LAYOUT(name, size) case LAYOUT_##name: return size;
#include "engine/abi/syscalls.def"
	default: return 0;
	}
}

/*
 * How the macros of syscalls.def turn into data: CALL_ARG_<KIND>(name, ...) is
 * the initializer of one argument, CALL_ARG_LIST(...) of all of a row.
 */
#define LEN_ONE		LEN_RULE_ONE, 0
#define LEN_COUNT(a)	LEN_RULE_COUNT, a
#define LEN_RESULT(a)	LEN_RULE_RESULT, a
#define LEN_AT(a)	LEN_RULE_AT, a
#define LEN_AT64(a)	LEN_RULE_AT64, a
#define LEN_BITS(a)	LEN_RULE_BITS, a
#define LEN_PAGES(a)	LEN_RULE_PAGES, a
#define LEN_SELF	LEN_RULE_SELF, 0
#define LEN_ZERO	LEN_RULE_ZERO, 0
#define LEN_IOC(a)	LEN_RULE_IOC, a
#define LEN_HOST	LEN_RULE_HOST, 0

#define CALL_VALUE(n, kind)	{ #n, kind, DIR_VALUE, LEN_NONE, 0, 0 }
#define CALL_ARG_INT(n)		CALL_VALUE(n, KIND_INT)
#define CALL_ARG_UINT(n)	CALL_VALUE(n, KIND_UINT)
#define CALL_ARG_LONG(n)	CALL_VALUE(n, KIND_LONG)
#define CALL_ARG_SIZE(n)	CALL_VALUE(n, KIND_SIZE)
#define CALL_ARG_OFF(n)		CALL_VALUE(n, KIND_OFF)
#define CALL_ARG_HEX(n)		CALL_VALUE(n, KIND_HEX)
#define CALL_ARG_XINT(n)	CALL_VALUE(n, KIND_XINT)
#define CALL_ARG_FD(n)		CALL_VALUE(n, KIND_FD)
#define CALL_ARG_DIRFD(n)	CALL_VALUE(n, KIND_DIRFD)
#define CALL_ARG_PID(n)		CALL_VALUE(n, KIND_PID)
#define CALL_ARG_UID(n)		CALL_VALUE(n, KIND_UID)
#define CALL_ARG_GID(n)		CALL_VALUE(n, KIND_GID)
#define CALL_ARG_SIG(n)		CALL_VALUE(n, KIND_SIG)
#define CALL_ARG_MODE(n)	CALL_VALUE(n, KIND_MODE)
#define CALL_ARG_DEV(n)		CALL_VALUE(n, KIND_DEV)
#define CALL_ARG_PTR(n)		CALL_VALUE(n, KIND_PTR)
#define CALL_ARG_WAIT(n)	CALL_VALUE(n, KIND_WAIT)
/* Like HEX and PTR, but the kernel may write there, and nobody knows what: a word is said. */
#define CALL_ARG_UNTOLD(n)	{ #n, KIND_HEX, DIR_OUT, LEN_NONE, 0, 0 }
#define CALL_ARG_UNTOLD_PTR(n)	{ #n, KIND_PTR, DIR_OUT, LEN_NONE, 0, 0 }
#define CALL_ARG_SKIP(n)	CALL_VALUE(n, KIND_SKIP)
#define CALL_ARG_ENUM(n, x)	{ #n, KIND_ENUM, DIR_VALUE, LEN_NONE, 0, XLAT_##x }
#define CALL_ARG_FLAGS(n, x)	{ #n, KIND_FLAGS, DIR_VALUE, LEN_NONE, 0, XLAT_##x }
#define CALL_ARG_PATH(n)	{ #n, KIND_PATH, DIR_IN, LEN_RULE_ZERO, 0, LAYOUT_text }
#define CALL_ARG_STR(n)		{ #n, KIND_STR, DIR_IN, LEN_RULE_ZERO, 0, LAYOUT_text }
#define CALL_MEM(n, d, l, ...)	{ #n, KIND_MEM, d, __VA_ARGS__, LAYOUT_##l }
#define CALL_ARG_IN(n, l, len)	CALL_MEM(n, DIR_IN, l, LEN_##len)
#define CALL_ARG_OUT(n, l, len)	CALL_MEM(n, DIR_OUT, l, LEN_##len)
#define CALL_ARG_IO(n, l, len)	CALL_MEM(n, DIR_IO, l, LEN_##len)

#define CALL_LIST_0()
#define CALL_LIST_1(a)			CALL_ARG_##a
#define CALL_LIST_2(a, b)		CALL_ARG_##a, CALL_ARG_##b
#define CALL_LIST_3(a, b, c)		CALL_LIST_2(a, b), CALL_ARG_##c
#define CALL_LIST_4(a, b, c, d)		CALL_LIST_3(a, b, c), CALL_ARG_##d
#define CALL_LIST_5(a, b, c, d, e)	CALL_LIST_4(a, b, c, d), CALL_ARG_##e
#define CALL_LIST_6(a, b, c, d, e, f)	CALL_LIST_5(a, b, c, d, e), CALL_ARG_##f
#define CALL_PICK(_0, _1, _2, _3, _4, _5, _6, n, ...) n
#define CALL_NARGS(...)	CALL_PICK(_, ##__VA_ARGS__, 6, 5, 4, 3, 2, 1, 0)
#define CALL_JOIN_(a, b)	a##b
#define CALL_JOIN(a, b)		CALL_JOIN_(a, b)
#define CALL_ARG_LIST(...) \
	CALL_JOIN(CALL_LIST_, CALL_NARGS(__VA_ARGS__))(__VA_ARGS__)

#define CALL_TRAITS_0()			TRAIT_NONE
#define CALL_TRAITS_1(a)		TRAIT_##a
#define CALL_TRAITS_2(a, ...)		TRAIT_##a | CALL_TRAITS_1(__VA_ARGS__)
#define CALL_TRAITS_3(a, ...)		TRAIT_##a | CALL_TRAITS_2(__VA_ARGS__)
#define CALL_TRAITS_4(a, ...)		TRAIT_##a | CALL_TRAITS_3(__VA_ARGS__)
#define CALL_TRAITS_5(a, ...)		TRAIT_##a | CALL_TRAITS_4(__VA_ARGS__)
#define CALL_TRAITS_6(a, ...)		TRAIT_##a | CALL_TRAITS_5(__VA_ARGS__)
#define CALL_TRAITS(...) \
	CALL_JOIN(CALL_TRAITS_, CALL_NARGS(__VA_ARGS__))(__VA_ARGS__)

#define CALL_RES_INT		KIND_INT, 0
#define CALL_RES_UINT		KIND_UINT, 0
#define CALL_RES_LONG		KIND_LONG, 0
#define CALL_RES_HEX		KIND_HEX, 0
#define CALL_RES_OCT		KIND_OCT, 0
#define CALL_RES_FD		KIND_FD, 0
#define CALL_RES_PID		KIND_PID, 0
#define CALL_RES_UID		KIND_UID, 0
#define CALL_RES_SIZE		KIND_SIZE, 0
#define CALL_RES_OFF		KIND_OFF, 0
#define CALL_RES_PTR		KIND_PTR, 0
#define CALL_RES_NONE		KIND_NONE, 0
#define CALL_RES_FLAGS(x)	KIND_FLAGS, XLAT_##x

/* The initializer of a struct call_desc: what SYSCALL and VARIANT say from their name on. */
#define CALL_ROW(nr, name, class, traits, res, ...) \
	{ #name, nr, CLASS_##class, CALL_NARGS(__VA_ARGS__), CALL_RES_##res, { 0 }, \
	  CALL_TRAITS traits, { CALL_ARG_LIST(__VA_ARGS__) } }

#endif
