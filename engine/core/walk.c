/*
 * What each argument of a row means to a walk, and how many bytes it has.
 *
 * Lengths are those after the call: a read has as many bytes as it returned.  A
 * call that failed has moved nothing, but may say what it would take.
 */
#include "engine/core/must.h"
#include "engine/core/recipe.h"
#include "engine/core/walk.h"

#define IOC_SIZE	16	/* of an ioctl's number: where its size is */
#define IOC_SIZE_MASK	0x3fff
#define ADDRESSES	65536	/* below, an argument is a number */
#define RESULT_INTERRUPTED (-4)	/* -EINTR */

static bool mode_matters(const struct walk *w)
{
	int arg = recipe_flags_arg(w->desc);

	return arg < 0 || w->args[arg] & OPEN_CREATES;
}

/* A wait that was cut short says how long it would still have been. */
static bool time_left(const struct walk *w, const struct arg_desc *a)
{
	return w->result == RESULT_INTERRUPTED && w->desc->class == CLASS_INPUT &&
	       recipe_is_time(a);
}

enum step step_kind(const struct walk *w, unsigned arg)
{
	const struct arg_desc *a = &w->desc->args[arg];

	MUST(arg < w->desc->nargs);
	switch (a->kind) {
	case KIND_NONE: case KIND_PTR: case KIND_SKIP: case KIND_HEX:
		return STEP_NONE;
	case KIND_MODE:
		return mode_matters(w) ? STEP_VALUE : STEP_NONE;
	case KIND_PATH: case KIND_STR:
		return STEP_TEXT;
	case KIND_MEM:
		if (!w->args[arg] || (!step_is_told(w, a) && !time_left(w, a)))
			return STEP_NONE;
		return recipe_step(w->desc, a);
	default:
		return STEP_VALUE;
	}
}

/* setsockopt(IPT_SO_SET_REPLACE): the old counters are written behind an address in it. */
#define OPTION_REPLACE	64

static bool is_replace(const struct walk *w)
{
	uint32_t level = (uint32_t)w->args[1];

	return (level == 0 || level == 41) && (uint32_t)w->args[2] == OPTION_REPLACE;
}

bool step_untold(const struct walk *w)
{
	if (w->result < 0)
		return false;
	for (unsigned i = 0; i < w->desc->nargs; i++) {
		const struct arg_desc *a = &w->desc->args[i];

		if (a->kind < KIND_VALUES && a->dir == DIR_OUT && w->args[i] >= ADDRESSES)
			return true;
	}
	switch (w->desc->nr) {
	case CALL_bpf:
	case CALL_process_vm_writev:
		return true;
	case CALL_setsockopt:
		return is_replace(w);
	default:
		return false;
	}
}

/* A call that fails says nothing by what lies where it was given a length of nonsense. */
static uint64_t meant(const struct walk *w, uint64_t len)
{
	return w->result < 0 && len > LENGTH_FAILED ? 0 : len;
}

static uint64_t counted(const struct walk *w, const struct arg_desc *a, uint64_t size)
{
	uint64_t n = w->args[a->len_arg];
	enum arg_kind kind = w->desc->args[a->len_arg].kind;

	if (kind != KIND_SIZE)
		n = (int32_t)n < 0 ? 0 : (uint32_t)n;
	/* What a write did not take will come again. */
	if (a->dir == DIR_IN && w->desc->result == KIND_SIZE && a->what == LAYOUT_bytes)
		n = w->result < 0 ? 0 : (uint64_t)w->result < n ? (uint64_t)w->result : n;
	return meant(w, step_capped(n, size));
}

#define SOL_SOCKET	1
#define OPTION_FILTER	26	/* SO_GET_FILTER: instructions are counted */
#define FILTER_BYTES	8

unsigned step_room_unit(const struct walk *w, const struct arg_desc *a)
{
	return a->what == LAYOUT_sockopt && (uint32_t)w->args[1] == SOL_SOCKET &&
	       (uint32_t)w->args[2] == OPTION_FILTER ? FILTER_BYTES : 1;
}

static uint64_t room_length(const struct walk *w, const struct arg_desc *a)
{
	uint64_t n = w->room > PAGE_BYTES * 16 ? PAGE_BYTES * 16 : w->room;

	return step_room_unit(w, a) * n;
}

uint64_t step_length(const struct walk *w, unsigned arg)
{
	const struct arg_desc *a = &w->desc->args[arg];
	uint64_t size = layout_size(a->what), limit = w->args[a->len_arg], n;

	MUST(a->len_arg < CALL_ARGS);
	switch (a->len_rule) {
	case LEN_RULE_ONE:
		return size;
	case LEN_RULE_COUNT:
		return counted(w, a, size) + recipe_uncounted(a);
	case LEN_RULE_RESULT:
		n = w->result < 0 ? 0 : (uint64_t)w->result;
		return step_capped(n < limit ? n : limit, size) + recipe_uncounted(a);
	case LEN_RULE_AT:
	case LEN_RULE_AT64:
	case LEN_RULE_HOST:
		return room_length(w, a);
	case LEN_RULE_BITS:
		return (int32_t)limit < 0 ? 0 : ((uint32_t)limit + 63) / 64 * 8;
	case LEN_RULE_IOC:
		return limit >> IOC_SIZE & IOC_SIZE_MASK;
	case LEN_RULE_PAGES:
		return step_capped((limit + PAGE_BYTES - 1) / PAGE_BYTES, size);
	default:
		return 0;
	}
}

#define FIEMAP_COUNT	6	/* fm_extent_count, as words from the head's beginning */
#define FIEMAP_EXTENT	56
#define DEDUPE_COUNT	4
#define DEDUPE_INFO	32

_Static_assert(FIEMAP_COUNT < SELF_WORDS && DEDUPE_COUNT < SELF_WORDS, "a head has its count");

static uint64_t counted_length(unsigned layout, const uint32_t head[SELF_WORDS])
{
	uint64_t n = layout == LAYOUT_fiemap ?
			     head[FIEMAP_COUNT] * (uint64_t)FIEMAP_EXTENT :
			     (head[DEDUPE_COUNT] & 0xffff) * (uint64_t)DEDUPE_INFO;

	n += layout_size(layout);
	return n < TAIL_MAX ? n : TAIL_MAX;
}

uint64_t step_self_length(const struct walk *w, unsigned arg, const uint32_t head[SELF_WORDS])
{
	const struct arg_desc *a = &w->desc->args[arg];
	uint64_t n = head[0];

	MUST(a->len_rule == LEN_RULE_SELF);
	if (step_counts(a->what))
		return counted_length(a->what, head);
	if (a->what == LAYOUT_perf_attr)
		n = head[1];
	else if (a->what == LAYOUT_file_handle)	/* refused, it says what it would be */
		n = w->result < 0 && a->dir != DIR_IN ? layout_size(a->what) :
		    n + layout_size(a->what);
	return n < SELF_MAX ? n : SELF_MAX;
}

bool step_same_value(const struct arg_desc *a, uint64_t x, uint64_t y)
{
	switch (a->kind) {
	case KIND_LONG: case KIND_SIZE: case KIND_OFF: case KIND_DEV:
		return x == y;
	case KIND_WAIT:		/* what comes of it is told; clocks differ, and so do waits */
		return true;
	default:
		return (uint32_t)x == (uint32_t)y;
	}
}

int step_room_arg(const struct call_desc *d)
{
	return recipe_room_arg(d);
}

struct recipe step_recipe(const struct call_desc *d)
{
	struct recipe r = recipe_of(d);

	MUST(d->nargs <= CALL_ARGS && r.room < (int)CALL_ARGS && r.flags_arg < CALL_ARGS);
	MUST(!(r.values & r.memory) && !(r.mode & ~r.values));
	MUST(!((r.moved | r.fixed) & ~r.memory) && !(r.moved & r.fixed));
	return r;
}
