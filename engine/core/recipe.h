/*
 * A row's recipe: what of it is the same at each call.  For a row that is a constant the
 * compiler finds all of it beforehand, and a recorder made for that row (record_row.h) does
 * only the rest: so nothing here is a loop, and everything is inline.
 */
#ifndef MVE_CORE_RECIPE_H
#define MVE_CORE_RECIPE_H

#include "engine/core/walk.h"

/* Calls of(i, ...) for each argument i. */
#define EACH_ARG(of, ...) \
	of(0, __VA_ARGS__); of(1, __VA_ARGS__); of(2, __VA_ARGS__); \
	of(3, __VA_ARGS__); of(4, __VA_ARGS__); of(5, __VA_ARGS__)
_Static_assert(CALL_ARGS == 6, "EACH_ARG names them");
_Static_assert(CALL_ARGS <= 8, "arguments are bits of a byte");

/* How memory behind an argument is laid into the event, where it is told at all. */
static INLINE enum step recipe_step(const struct call_desc *d, const struct arg_desc *a)
{
	/* The follower makes the call, too: memory that it writes is each version's own. */
	if (d->class == CLASS_BOTH && a->dir != DIR_IN)
		return STEP_NONE;
	switch (a->what) {
	case LAYOUT_iovec:
		return STEP_VECTOR;
	case LAYOUT_msghdr:
		return STEP_MESSAGE;
	case LAYOUT_mmsghdr:
		return STEP_MESSAGES;
	case LAYOUT_ifconf:
		return STEP_CONF;
	case LAYOUT_strv:	/* argv is told; envp is each version's own */
		return a->name[0] == 'a' ? STEP_STRINGS : STEP_NONE;
	case LAYOUT_clone_args: case LAYOUT_sock_fprog: case LAYOUT_bpf_attr:
	case LAYOUT_iovaddr: case LAYOUT_ptr: case LAYOUT_ptrv:
	case LAYOUT_iocb: case LAYOUT_iocbp: case LAYOUT_futex_waitv: case LAYOUT_stack:
		return STEP_NONE;
	default:
		return STEP_BYTES;
	}
}

static INLINE bool recipe_is_time(const struct arg_desc *a)
{
	return a->what == LAYOUT_timespec || a->what == LAYOUT_timeval;
}

/* A message of a queue is told behind its type, which no length counts. */
static INLINE uint64_t recipe_uncounted(const struct arg_desc *a)
{
	return a->what == LAYOUT_msgbuf ? sizeof(long) : 0;
}

static INLINE void recipe_flags_at(unsigned i, const struct call_desc *d, int *arg)
{
	if (*arg < 0 && i < d->nargs && d->args[i].kind == KIND_FLAGS &&
	    d->args[i].what == XLAT_open_flags)
		*arg = (int)i;
}

/*
 * The argument with the flags of an open, or -1: they say whether it creates a file.  If it
 * does not, its mode is whatever the register held.
 */
static INLINE int recipe_flags_arg(const struct call_desc *d)
{
	int arg = -1;

	EACH_ARG(recipe_flags_at, d, &arg);
	return arg;
}

static INLINE void recipe_room_at(unsigned i, const struct call_desc *d, int *arg)
{
	if (*arg < 0 && i < d->nargs && d->args[i].kind == KIND_MEM &&
	    d->args[i].len_rule == LEN_RULE_AT)
		*arg = d->args[i].len_arg;
}

/* The argument behind which an AT length stands, or -1: it must be read before the call. */
static INLINE int recipe_room_arg(const struct call_desc *d)
{
	int arg = -1;

	EACH_ARG(recipe_room_at, d, &arg);
	return arg;
}

/*
 * An argument that points.  What is neither moved nor fixed is asked at each call: what
 * step_kind() and step_length() say of it may differ then.
 */
static INLINE void recipe_memory(struct recipe *r, const struct call_desc *d, unsigned i)
{
	const struct arg_desc *a = &d->args[i];

	r->memory |= (uint8_t)(1u << i);
	if (a->kind != KIND_MEM || recipe_step(d, a) != STEP_BYTES || recipe_uncounted(a) ||
	    (recipe_is_time(a) && d->class == CLASS_INPUT))
		return;
	if (a->len_rule == LEN_RULE_ONE)
		r->fixed |= (uint8_t)(1u << i);
	if (a->len_rule == LEN_RULE_RESULT ||
	    (a->len_rule == LEN_RULE_COUNT && a->dir == DIR_IN && d->result == KIND_SIZE &&
	     a->what == LAYOUT_bytes && d->args[a->len_arg].kind == KIND_SIZE))
		r->moved |= (uint8_t)(1u << i);
}

static INLINE void recipe_value(struct recipe *r, unsigned i)
{
	r->values |= (uint8_t)(1u << i);
	if (r->places < EVENT_ARGS)
		r->places++;
}

static INLINE void recipe_arg(unsigned i, struct recipe *r, const struct call_desc *d,
			      bool has_flags)
{
	enum arg_kind kind = i < d->nargs ? (enum arg_kind)d->args[i].kind : KIND_NONE;

	if (kind >= KIND_VALUES)
		recipe_memory(r, d, i);
	else if (kind != KIND_NONE && kind != KIND_PTR && kind != KIND_SKIP && kind != KIND_HEX)
		recipe_value(r, i);
	if (kind == KIND_MODE && has_flags)
		r->mode |= (uint8_t)(1u << i);
}

static INLINE struct recipe recipe_of(const struct call_desc *d)
{
	int flags_arg = recipe_flags_arg(d);
	struct recipe r = { .room = (int8_t)recipe_room_arg(d), .known = 1,
			    .flags_arg = (uint8_t)(flags_arg < 0 ? 0 : flags_arg) };

	EACH_ARG(recipe_arg, &r, d, flags_arg >= 0);
	return r;
}

#endif
