/*
 * The types of both builds as C, for the C of users: the new build's under their own names,
 * the old one's with `old_` before.
 *
 * Each structure is packed, with its padding written out, and its size asserted: what DWARF
 * says is what the C compiler is to see.
 */
#include <string.h>

#include "engine/core/must.h"
#include "engine/xform/pairs.h"

static const char *prefix(const struct build *b)
{
	return strcmp(b->which, "old") ? "" : "old_";
}

static bool is_compound(const struct type *t)
{
	return t->kind == TYPE_STRUCT || t->kind == TYPE_UNION || t->kind == TYPE_ENUM;
}

/* Two sources of a build may each have a type of the name: the first has it. */
static bool is_first(const struct build *b, const struct type *t)
{
	for (const struct type *o = b->types; o != t; o = o->next)
		if (is_compound(o) && o->kind == t->kind && o->name && t->name &&
		    !strcmp(o->name, t->name))
			return false;
	return true;
}

static const char *keyword(const struct type *t)
{
	return t->kind == TYPE_STRUCT ? "struct" : t->kind == TYPE_UNION ? "union" : "enum";
}

/* What a typedef's structure or a namesake is called. */
static const char *tag_c(const struct build *b, const struct type *t)
{
	struct arena *arena = b->u->arena;

	if (t->name && t->tagged && is_first(b, t))
		return arena_format(arena, "%s %s%s", keyword(t), prefix(b), t->name);
	return arena_format(arena, "%s %smve_type_%u", keyword(t), prefix(b), t->number);
}

const char *type_c(const struct build *b, const struct type *t)
{
	struct arena *arena = b->u->arena;

	switch (t->kind) {
	case TYPE_POINTER:
		return arena_format(arena, "__typeof__(%s *)", type_c(b, t->to));
	case TYPE_ARRAY:
		return arena_format(arena, "__typeof__(%s [%lu])", type_c(b, t->to), t->count);
	case TYPE_FUNCTION:
		return "__typeof__(void (void))";
	case TYPE_STRUCT: case TYPE_UNION: case TYPE_ENUM:
		return tag_c(b, t);
	default:
		MUST(t->name);
		return t->name;
	}
}

static void type_emit(const struct build *b, struct type *t, struct buffer *to);

/* What stands by value in a type comes before it. */
static void needed_emit(const struct build *b, struct type *t, struct buffer *to)
{
	while (t->kind == TYPE_ARRAY)
		t = t->to;
	if (is_compound(t))
		type_emit(b, t, to);
	for (const struct field *f = t->kind == TYPE_POINTER ? NULL : t->fields; f; f = f->next)
		needed_emit(b, f->type, to);
}

static void body_emit(const struct build *b, const struct type *t, struct buffer *to);

static void field_emit(const struct build *b, const struct field *f, struct buffer *to)
{
	if (!*f->name && is_compound(f->type)) {
		buffer_print(to, "\t%s ", keyword(f->type));
		body_emit(b, f->type, to);
		buffer_print(to, ";\n");
	} else if (f->bits) {
		buffer_print(to, "\t%s %s : %u;\n", type_c(b, f->type), f->name, f->bits);
	} else {
		buffer_print(to, "\t%s %s;\n", type_c(b, f->type), f->name);
	}
}

/* Bits up to `until`, which nobody names. */
static void padding_emit(uint64_t *at, uint64_t until, struct buffer *to)
{
	for (; *at % 8 && *at < until; ++*at)
		buffer_print(to, "\tunsigned : 1;\n");
	if (until - *at >= 8)
		buffer_print(to, "\tchar mve_pad_%lu[%lu];\n", *at, (until - *at) / 8);
	*at += (until - *at) / 8 * 8;
	for (; *at < until; ++*at)
		buffer_print(to, "\tunsigned : 1;\n");
}

static void body_emit(const struct build *b, const struct type *t, struct buffer *to)
{
	uint64_t at = 0;

	buffer_print(to, "{\n");
	for (const struct field *f = t->fields; f; f = f->next) {
		uint64_t begin = f->bits ? f->bit : f->at * 8;

		if (t->kind == TYPE_STRUCT && begin > at)
			padding_emit(&at, begin, to);
		field_emit(b, f, to);
		at = begin + (f->bits ? f->bits : f->type->size * 8);
	}
	if (t->kind == TYPE_STRUCT && at < t->size * 8)
		padding_emit(&at, t->size * 8, to);
	buffer_print(to, "} __attribute__((packed))");
}

static void enum_emit(const struct build *b, const struct type *t, struct buffer *to)
{
	buffer_print(to, "%s {\n", tag_c(b, t));
	for (const struct value *v = t->values; v; v = v->next)
		buffer_print(to, "\t%s%s = %ld,\n", prefix(b), v->name, v->number);
	buffer_print(to, "};\n");
}

static void type_emit(const struct build *b, struct type *t, struct buffer *to)
{
	if (t->emitted || t->emitting || t->incomplete)
		return;
	t->emitting = true;
	for (const struct field *f = t->fields; f; f = f->next)
		needed_emit(b, f->type, to);
	t->emitting = false;
	t->emitted = true;
	if (t->kind == TYPE_ENUM && t->values) {
		enum_emit(b, t, to);
	} else if (t->kind != TYPE_ENUM) {
		buffer_print(to, "%s ", tag_c(b, t));
		body_emit(b, t, to);
		buffer_print(to, ";\n_Static_assert(sizeof(%s) == %lu, \"\");\n", tag_c(b, t),
			t->size);
	}
}

/* Types without a tag go by the name of their typedef. */
static void name_emit(const struct build *b, const struct type *t, struct buffer *to)
{
	buffer_print(to, "%s;\n", tag_c(b, t));
	if (t->name && !t->tagged && is_first(b, t))
		buffer_print(to, "typedef %s %s%s;\n", tag_c(b, t), prefix(b), t->name);
}

/* It is that type, or leads to it, or is an array of them. */
static bool is_of(const struct type *of, const struct type *t)
{
	while (of->kind == TYPE_ARRAY || of->kind == TYPE_POINTER)
		of = of->to;
	return of == t;
}

/* Members without a name are written where they stand; so are those of enumerations once. */
static bool stands_alone(const struct build *b, const struct type *t)
{
	if (t->name)
		return true;
	for (const struct type *o = b->types; o; o = o->next)
		for (const struct field *f = o->fields; f; f = f->next)
			if (*f->name && is_of(f->type, t))
				return true;
	for (const struct variable *v = b->variables; v; v = v->next)
		if (is_of(v->type, t))
			return true;
	return t->kind == TYPE_ENUM;
}

void emit_types(struct pairing *p, const struct build *b, struct buffer *to)
{
	(void)p;
	for (const struct type *t = b->types; t; t = t->next)
		if (is_compound(t) && t->kind != TYPE_ENUM)
			name_emit(b, t, to);
	for (struct type *t = b->types; t; t = t->next)
		if (is_compound(t) && (stands_alone(b, t) || t->name))
			type_emit(b, t, to);
	for (const struct type *t = b->types; t; t = t->next)
		if (t->kind == TYPE_ENUM && t->name && !t->tagged && is_first(b, t))
			buffer_print(to, "typedef %s %s%s;\n", tag_c(b, t), prefix(b), t->name);
}
