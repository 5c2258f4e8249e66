/*
 * A transformation as C: a table of pairs with their rows, and functions where the user gave C
 * or where only C can copy (bit-fields).
 *
 * The user's C stands under its own `#line`, in its own columns, so that the compiler's
 * message shows it where it was written.
 */
#include <string.h>

#include "engine/core/must.h"
#include "engine/xform/pairs.h"

static const char *const kinds[] = {
	[XFORM_BYTES] = "BYTES", [XFORM_NUMBER] = "NUMBER", [XFORM_REAL] = "REAL",
	[XFORM_ENUM] = "ENUM", [XFORM_POINTER] = "POINTER", [XFORM_CODE] = "CODE",
	[XFORM_STRUCT] = "STRUCT", [XFORM_ARRAY] = "ARRAY", [XFORM_SET] = "SET",
	[XFORM_MUTEX] = "MUTEX",
};

static void placed(struct pairing *p, struct loc loc, const char *text, struct buffer *to)
{
	emit_line(to, diag_line(p->u, loc), p->u->sources[loc.file].path);
	for (unsigned i = 1; i < diag_column(p->u, loc); i++)
		buffer_add(to, " ", 1);
	buffer_print(to, "%s\n", text);
}

/* The function ends where the user's C does: what the compiler says of its end is about that. */
static void user_c(struct pairing *p, struct loc loc, const char *text, const char *end,
	struct buffer *to)
{
	struct loc last = loc;

	last.begin = loc.end > loc.begin ? loc.end - 1 : loc.begin;
	placed(p, loc, text, to);
	placed(p, last, end, to);
	buffer_print(to, "#line 1 \"written by mve-xform\"\n\n");
}

static void arguments(struct pairing *p, const struct pair *pair, struct buffer *to)
{
	buffer_print(to, "(%s *new, const %s *old)", type_c(p->new, pair->new),
		type_c(p->old, pair->old));
}

/* --- values, conditions ---------------------------------------------------- */

/* A function of its own, so that C in braces can return; an array's writes by itself. */
static void value_emit(struct pairing *p, const struct pair *pair, const struct line *l,
	struct buffer *to)
{
	const struct flat *f = fields_flat(p, pair->new, pair->change);
	bool writes;

	while (f && strcmp(f->name, l->path))
		f = f->next;
	MUST(f);
	writes = f->type->kind >= TYPE_STRUCT;
	buffer_print(to, "static %s value_%u", writes ? "void" : type_c(p->new, f->type),
		l->number);
	arguments(p, pair, to);
	buffer_print(to, "\n{\n\t(void)new, (void)old;\n%s", l->block ? "" : "\treturn\n");
	user_c(p, l->value_loc, l->value, l->block ? "}" : ";}", to);
}

static void live_emit(struct pairing *p, const struct pair *pair, const struct line *l,
	struct buffer *to)
{
	buffer_print(to, "static _Bool live_%u(const void *old_at)\n{\n"
		"\tconst %s *old = old_at;\n\n\t(void)old;\n\treturn\n", l->number,
		type_c(p->old, pair->old));
	user_c(p, l->if_loc, l->condition, ";}", to);
}

static bool has_fill(const struct pair *pair)
{
	for (const struct line *l = pair->change ? pair->change->lines : NULL; l; l = l->next)
		if (l->kind == LINE_VALUE && pair->kind == XFORM_STRUCT)
			return true;
	return pair->bits;
}

static void bits_emit(struct pairing *p, const struct pair *pair, struct buffer *to)
{
	const struct flat *old = fields_flat(p, pair->old, pair->change);

	for (const struct flat *f = fields_flat(p, pair->new, pair->change); f; f = f->next)
		for (const struct flat *o = old; o; o = o->next)
			if ((f->field->bits || o->field->bits) && !strcmp(f->name, o->name) &&
			    !line_find(pair->change, f->name, LINE_VALUE))
				buffer_print(to, "\tnew->%s = old->%s;\n", f->name, o->name);
}

static void set_emit(struct pairing *p, const struct pair *pair, const struct line *l,
	struct buffer *to)
{
	const struct flat *f = fields_flat(p, pair->new, pair->change);

	while (f && strcmp(f->name, l->path))
		f = f->next;
	MUST(f);
	if (f->type->kind >= TYPE_STRUCT)
		buffer_print(to, "\tvalue_%u(new, old);\n", l->number);
	else
		buffer_print(to, "\tnew->%s = value_%u(new, old);\n", l->path, l->number);
}

static void fill_emit(struct pairing *p, const struct pair *pair, struct buffer *to)
{
	const struct line *lines = pair->change ? pair->change->lines : NULL;

	for (const struct line *l = lines; l; l = l->next)
		if (l->kind == LINE_VALUE)
			value_emit(p, pair, l, to);
	buffer_print(to, "static void fill_%u(void *new_at, const void *old_at)\n{\n"
		"\t%s *new = new_at;\n\tconst %s *old = old_at;\n\n", pair->number,
		type_c(p->new, pair->new), type_c(p->old, pair->old));
	bits_emit(p, pair, to);
	for (const struct line *l = lines; l; l = l->next)
		if (l->kind == LINE_VALUE)
			set_emit(p, pair, l, to);
	buffer_print(to, "}\n\n");
}

static void functions_emit(struct pairing *p, struct buffer *to)
{
	for (const struct pair *pair = p->pairs; pair; pair = pair->next) {
		const struct line *l = pair->kind == XFORM_STRUCT && pair->change ?
			pair->change->lines : NULL;

		for (; l; l = l->next)
			if (l->condition)
				live_emit(p, pair, l, to);
		if (pair->kind == XFORM_STRUCT && has_fill(pair))
			fill_emit(p, pair, to);
	}
}

/* --- pairs ----------------------------------------------------------------- */

static void rows_emit(const struct pair *pair, struct buffer *to)
{
	if (!pair->rows)
		return;
	buffer_print(to, "static const struct xform_field fields_%u[] = {\n", pair->number);
	for (const struct row *r = pair->rows; r; r = r->next) {
		buffer_print(to, "\t{ .name = \"%s\", .from = %ldl, .to = %lu, .pair = &pairs[%u]",
			r->name, (long)r->from, r->to, r->pair->number);
		if (r->live)
			buffer_print(to, ", .live = live_%u", r->live->number);
		if (r->flexible)
			buffer_print(to, ", .flexible = 1");
		buffer_print(to, " },\n");
	}
	buffer_print(to, "};\n\n");
}

static void values_emit(const struct pair *pair, struct buffer *to)
{
	if (pair->kind != XFORM_ENUM)
		return;
	buffer_print(to, "static const struct xform_value values_%u[] = {\n", pair->number);
	for (const struct value *v = pair->old->values; v; v = v->next) {
		struct line *l = line_find(pair->change, v->name, LINE_VALUE);
		const struct value *n = pair->new->values;

		while (n && strcmp(n->name, l ? l->value : v->name))
			n = n->next;
		if (n)
			buffer_print(to, "\t{ \"%s\", %ld, %ld },\n", v->name, v->number,
				n->number);
	}
	buffer_print(to, "};\n\n");
}

static void pair_emit(const struct unit *u, const struct pair *pair, struct buffer *to)
{
	const struct type *o = pair->old, *n = pair->new;

	buffer_print(to, "\t[%u] = { .name = \"%s\", .kind = XFORM_%s, .moves = %d, .still = %d,\n",
		pair->number, n ? type_text(u, n) : "void *", kinds[pair->kind], pair->moves,
		pair->still);
	buffer_print(to, "\t\t.old_size = %lu, .new_size = %lu", o ? o->size : 8, n ? n->size : 8);
	if (o && pair->kind <= XFORM_ENUM)
		buffer_print(to, ", .old_signed = %d, .new_signed = %d, .old_real = %d, "
			".new_real = %d", o->is_signed, n->is_signed, o->kind == TYPE_FLOAT,
			n->kind == TYPE_FLOAT);
	if (pair->kind == XFORM_ARRAY)
		buffer_print(to, ", .old_count = %lu, .new_count = %lu", o->count, n->count);
	if (pair->to)
		buffer_print(to, ", .to = &pairs[%u], .inside = %lu", pair->to->number,
			pair->inside);
	if (pair->rows)
		buffer_print(to, ",\n\t\t.fields = fields_%u, .nfields = sizeof(fields_%u) / "
			"sizeof(fields_%u[0])", pair->number, pair->number, pair->number);
	if (pair->kind == XFORM_ENUM)
		buffer_print(to, ",\n\t\t.values = values_%u, .nvalues = sizeof(values_%u) / "
			"sizeof(values_%u[0])", pair->number, pair->number, pair->number);
	if (pair->kind == XFORM_STRUCT && has_fill(pair))
		buffer_print(to, ", .fill = fill_%u", pair->number);
	buffer_print(to, " },\n");
}

static void pairs_emit(struct pairing *p, struct buffer *to)
{
	buffer_print(to, "static const struct xform_pair pairs[%u];\n\n", p->npairs + 1);
	for (const struct pair *pair = p->pairs; pair; pair = pair->next) {
		rows_emit(pair, to);
		values_emit(pair, to);
	}
	buffer_print(to, "static const struct xform_pair pairs[%u] = {\n", p->npairs + 1);
	for (const struct pair *pair = p->pairs; pair; pair = pair->next)
		pair_emit(p->u, pair, to);
	buffer_print(to, "};\n\n");
}

/* --- roots ----------------------------------------------------------------- */

static const char *variable_name(const struct unit *u, const struct variable *v)
{
	return v->function ? arena_format(u->arena, "%s.%s", v->function, v->name) : v->name;
}

static uint64_t each_size(const struct type *t)
{
	uint64_t size = t->kind == TYPE_ARRAY ? t->to->size : t->size;

	return size ? size : 1;
}

static void variable_emit(struct pairing *p, const struct pair_variable *v, struct buffer *to)
{
	buffer_print(to, "\t{ .name = \"%s\", .old_at = %ldl, .new_at = %lu, .constant = %d",
		variable_name(p->u, v->new), v->old ? (long)v->old->at : -1L, v->new->at,
		v->new->constant);
	if (v->old)
		buffer_print(to, ", .old_size = %lu, .old_each = %lu, .new_each = %lu",
			v->old->type->size, each_size(v->old->type), each_size(v->new->type));
	if (v->pair)
		buffer_print(to, ", .pair = &pairs[%u]", v->pair->number);
	if (v->unlike)
		buffer_print(to, ", .unlike = 1");
	if (v->change)
		buffer_print(to, ", .fill = variable_%u", v->change->lines->number);
	buffer_print(to, " },\n");
}

static void variable_fill(struct pairing *p, const struct pair_variable *v, struct buffer *to)
{
	const struct line *l = v->change->lines;

	buffer_print(to, "static void variable_%u(void *new_at, const void *old_at)\n{\n"
		"\t%s *new = new_at;\n", l->number, type_c(p->new, v->new->type));
	if (v->old)
		buffer_print(to, "\tconst %s *old = old_at;\n", type_c(p->old, v->old->type));
	else
		buffer_print(to, "\tconst void *old = old_at;\n");
	buffer_print(to, "\n\t(void)new, (void)old;\n");
	user_c(p, l->value_loc, l->value, "}", to);
}

/* Statics of one name in several sources have none in common. */
static bool is_alone(const struct build *b, const struct variable *v)
{
	for (const struct variable *o = b->variables; o; o = o->next)
		if (o != v && !o->function && !strcmp(o->name, v->name))
			return false;
	return !v->function;
}

/* OLD(count), NEW(count): what C of users calls the variables. */
static void names_emit(struct pairing *p, const struct build *b, const char *which,
	struct buffer *to)
{
	for (const struct variable *v = b->variables; v; v = v->next)
		if (is_alone(b, v))
			buffer_print(to, "#define mve_%s_%s (*(%s *)(mve_%s_base + %lu))\n", which,
				v->name, type_c(b, v->type), which, v->at);
	(void)p;
}

static bool is_function(const struct function *a, const struct function *b)
{
	return !strcmp(a->name, b->name) && (!strcmp(a->file, b->file) || !b->file[0]);
}

/* Of this name and file, else the only one of this name. */
static const struct function *function_partner(const struct build *new, const struct function *old)
{
	const struct function *only = NULL;
	unsigned n = 0;

	for (const struct function *f = new->functions; f; f = f->next) {
		if (is_function(old, f))
			return f;
		if (!strcmp(old->name, f->name)) {
			only = f;
			n++;
		}
	}
	return n == 1 ? only : NULL;
}

static void roots_emit(struct pairing *p, struct buffer *to)
{
	for (const struct pair_variable *v = p->variables; v; v = v->next)
		if (v->change)
			variable_fill(p, v, to);
	buffer_print(to, "static const struct xform_variable variables[] = {\n");
	for (const struct pair_variable *v = p->variables; v; v = v->next)
		variable_emit(p, v, to);
	buffer_print(to, "\t{ 0 }\n};\n\nstatic const struct xform_local locals[] = {\n");
	for (const struct pair_local *l = p->locals; l; l = l->next)
		if (l->pair || p->code_only)
			buffer_print(to, "\t{ \"%s\", \"%s\", %s%u%s },\n", l->new->function,
				l->new->name, l->pair ? "&pairs[" : "", l->pair ? l->pair->number :
				0, l->pair ? "]" : "");
	buffer_print(to, "\t{ 0 }\n};\n\nstatic const struct xform_thread threads[] = {\n");
	for (const struct pair_thread *t = p->threads; t; t = t->next)
		if (t->pair)
			buffer_print(to, "\t{ \"%s\", &pairs[%u] },\n", t->function,
				t->pair->number);
	buffer_print(to, "\t{ 0 }\n};\n\nstatic const struct xform_function functions[] = {\n");
	for (const struct function *f = p->old->functions; f; f = f->next) {
		const struct function *n = function_partner(p->new, f);

		buffer_print(to, "\t{ \"%s\", %lu, %ldl },\n", f->name, f->at,
			n ? (long)n->at : -1l);
	}
	buffer_print(to, "\t{ 0 }\n};\n\n");
}

extern const char xform_header[];	/* header.S */

static const char head[] =
	"/* Written by mve-xform. */\n"
	"#include <stdbool.h>\n#include <stddef.h>\n#include <stdint.h>\n\n"
	"static char *mve_old_base, *mve_new_base;\n"
	"#define OLD(name) mve_old_##name\n#define NEW(name) mve_new_##name\n"
	"void *malloc(size_t size);\nvoid *calloc(size_t n, size_t size);\nvoid free(void *at);\n"
	"void *memcpy(void *to, const void *from, size_t n);\n"
	"void *memset(void *at, int c, size_t n);\nsize_t strlen(const char *text);\n"
	"int strcmp(const char *a, const char *b);\n"
	"int strncmp(const char *a, const char *b, size_t n);\n"
	"char *strdup(const char *text);\n"
	"long strtol(const char *text, char **end, int base);\n\n";

static void includes_emit(struct pairing *p, struct buffer *to)
{
	for (unsigned f = 0; f < p->u->nsources; f++)
		for (const struct item *i = p->u->sources[f].items; i; i = i->next)
			if (i->kind == ITEM_INCLUDE)
				buffer_print(to, "#include \"%.*s\"\n", (int)i->path.len,
					i->path.at);
}

void emit_c(struct pairing *p, struct buffer *to)
{
	buffer_print(to, "%s\n%s", xform_header, head);
	if (!p->code_only) {
		emit_types(p, p->new, to);
		emit_types(p, p->old, to);
		names_emit(p, p->old, "old", to);
		names_emit(p, p->new, "new", to);
		includes_emit(p, to);
		functions_emit(p, to);
		pairs_emit(p, to);
	}
	roots_emit(p, to);
	buffer_print(to, "const struct xform mve_xform = {\n\t.version = XFORM_VERSION, "
		".old_id = \"%s\", .new_id = \"%s\",\n\t.variables = variables, .locals = locals, "
		".functions = functions, .threads = threads,\n", p->old->id, p->new->id);
	buffer_print(to, "#define COUNT(a) (sizeof(a) / sizeof((a)[0]) - 1)\n"
		"\t.nvariables = COUNT(variables), .nlocals = COUNT(locals),\n"
		"\t.nfunctions = COUNT(functions), .nthreads = COUNT(threads),\n"
		"\t.old_base = &mve_old_base, .new_base = &mve_new_base,\n"
		"\t.code_only = %d,\n};\n", p->code_only);
}
