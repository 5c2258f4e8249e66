/*
 * Types from DWARF: each when somebody asks for it.
 *
 * A declaration without a body is looked up by its name in all sources of the build, so that
 * what is incomplete here is incomplete everywhere.
 */
#include <ctype.h>
#include <dwarf.h>
#include <stdlib.h>
#include <string.h>

#include "engine/core/must.h"
#include "engine/xform/builds.h"

struct named {
	struct named *next;
	const char *name;
	int tag;
	Dwarf_Die die;
};

/* A word of C, in any script, or several, as in `long unsigned int`. */
static bool is_words(const char *name)
{
	for (; *name; name++)
		if (!isalnum((unsigned char)*name) && !strchr("_$. ", *name) &&
		    (unsigned char)*name < 0x80)
			return false;
	return true;
}

/*
 * What becomes C is only what is a name there: who wrote the build is not who runs the compiler,
 * and may not say what that reads.
 */
const char *die_name(Dwarf_Die *die)
{
	Dwarf_Attribute a;
	const char *name = dwarf_formstring(dwarf_attr_integrate(die, DW_AT_name, &a));

	return name && *name && is_words(name) ? name : NULL;
}

uint64_t die_number(Dwarf_Die *die, unsigned attribute, uint64_t otherwise)
{
	Dwarf_Attribute a;
	Dwarf_Word n;

	if (!dwarf_attr_integrate(die, attribute, &a) || dwarf_formudata(&a, &n) != 0)
		return otherwise;
	return n;
}

struct place_in die_place(struct build *b, Dwarf_Die *die)
{
	const char *file = dwarf_decl_file(die);
	int line = 0, column = 0;

	(void)b;
	dwarf_decl_line(die, &line);
	dwarf_decl_column(die, &column);
	return (struct place_in){ file, (unsigned)line, (unsigned)column };
}

/* Limit (live update): names of types searched for what was meant. Beyond: it may not be named. */
#define NAMES_MOST	4096

static bool has_name(int tag)
{
	return tag == DW_TAG_structure_type || tag == DW_TAG_union_type ||
		tag == DW_TAG_enumeration_type || tag == DW_TAG_typedef;
}

static const struct named *named_find(const struct build *b, int tag, const char *name)
{
	for (const struct named *n = b->named; n; n = n->next)
		if (n->tag == tag && !strcmp(n->name, name))
			return n;
	return NULL;
}

/* Keeps the first complete type of each name that a source has. */
void type_index(struct build *b, Dwarf_Die *cu)
{
	Dwarf_Die die;
	struct named *n;

	if (dwarf_child(cu, &die) != 0)
		return;
	do {
		int tag = dwarf_tag(&die);
		const char *name = has_name(tag) ? die_name(&die) : NULL;

		if (!name || dwarf_hasattr(&die, DW_AT_declaration) || named_find(b, tag, name))
			continue;
		n = arena_alloc(b->u->arena, sizeof(*n));
		*n = (struct named){ b->named, name, tag, die };
		b->named = n;
	} while (dwarf_siblingof(&die, &die) == 0);
}

static struct type *type_read(struct build *b, Dwarf_Die *die);

struct type *type_next(struct build *b, const struct named **at)
{
	Dwarf_Die die;

	*at = *at ? (*at)->next : b->named;
	if (!*at)
		return NULL;
	die = (*at)->die;
	return type_read(b, &die);
}

static struct type *type_new(struct build *b, Dwarf_Off at, enum type_kind kind, const char *name)
{
	struct type *t = arena_alloc(b->u->arena, sizeof(*t));

	t->at = at;
	t->kind = kind;
	t->name = name;
	t->number = b->ntypes++;
	*b->types_end = t;
	b->types_end = &t->next;
	t->chain = b->slots[at % TYPE_SLOTS];
	b->slots[at % TYPE_SLOTS] = t;
	return t;
}

struct type *type_of(struct build *b, Dwarf_Die *die)
{
	Dwarf_Attribute a;
	Dwarf_Die to;

	if (!dwarf_attr_integrate(die, DW_AT_type, &a) || !dwarf_formref_die(&a, &to)) {
		for (struct type *t = b->slots[0]; t; t = t->chain)
			if (t->kind == TYPE_VOID)
				return t;
		return type_new(b, 0, TYPE_VOID, "void");
	}
	return type_read(b, &to);
}

static struct field *field_read(struct build *b, Dwarf_Die *die)
{
	struct field *f = arena_alloc(b->u->arena, sizeof(*f));
	uint64_t bit = die_number(die, DW_AT_data_bit_offset, 0);
	const char *name = die_name(die);

	f->name = name ? name : "";
	f->bits = (unsigned)die_number(die, DW_AT_bit_size, 0);
	f->at = f->bits ? bit / 8 : die_number(die, DW_AT_data_member_location, 0);
	f->bit = (unsigned)bit;
	f->place = die_place(b, die);
	f->type = type_of(b, die);
	return f;
}

static void members_read(struct build *b, struct type *t, Dwarf_Die *die)
{
	struct field **end = &t->fields;
	Dwarf_Die child;

	if (dwarf_child(die, &child) != 0)
		return;
	do {
		if (dwarf_tag(&child) != DW_TAG_member)
			continue;
		*end = field_read(b, &child);
		end = &(*end)->next;
	} while (dwarf_siblingof(&child, &child) == 0);
}

static void values_read(struct build *b, struct type *t, Dwarf_Die *die)
{
	struct value **end = &t->values;
	Dwarf_Attribute a;
	Dwarf_Sword number;
	Dwarf_Die child;

	if (dwarf_child(die, &child) != 0)
		return;
	do {
		const char *name = die_name(&child);

		if (dwarf_tag(&child) != DW_TAG_enumerator || !name ||
		    dwarf_formsdata(dwarf_attr(&child, DW_AT_const_value, &a), &number) != 0)
			continue;
		*end = arena_alloc(b->u->arena, sizeof(**end));
		**end = (struct value){ NULL, name, number };
		end = &(*end)->next;
	} while (dwarf_siblingof(&child, &child) == 0);
}

/* Each dimension is an array of its own, the last one innermost. */
static struct type *dimensions_read(struct build *b, struct type *outer, Dwarf_Die *array,
	struct type *element)
{
	struct type *at = NULL;
	Dwarf_Die child;

	if (dwarf_child(array, &child) == 0)
		do {
			uint64_t upper = die_number(&child, DW_AT_upper_bound, ~0ull);
			struct type *t = at ? type_new(b, 1, TYPE_ARRAY, NULL) : outer;

			if (dwarf_tag(&child) != DW_TAG_subrange_type)
				continue;
			t->count = die_number(&child, DW_AT_count, upper + 1);
			if (at)
				at->to = t;
			at = t;
		} while (dwarf_siblingof(&child, &child) == 0);
	(at ? at : outer)->to = element;
	return outer;
}

/* From within, since the size of an outer dimension is that of the inner ones. */
static uint64_t array_size(struct type *t)
{
	if (t->kind == TYPE_ARRAY && !t->size)
		t->size = t->count * array_size(t->to);
	return t->size;
}

static struct type *compound(struct build *b, Dwarf_Die *die, enum type_kind kind)
{
	struct type *t = type_new(b, dwarf_dieoffset(die), kind, die_name(die));

	t->tagged = t->name != NULL;
	t->size = die_number(die, DW_AT_byte_size, 0);
	t->incomplete = dwarf_hasattr(die, DW_AT_declaration);
	t->place = die_place(b, die);
	if (kind == TYPE_ENUM)
		values_read(b, t, die);
	else
		members_read(b, t, die);
	return t;
}

/* The one complete type of that name, if this is another source's, or a declaration. */
static struct type *other_of_name(struct build *b, Dwarf_Die *die, int tag)
{
	const char *name = has_name(tag) && tag != DW_TAG_typedef ? die_name(die) : NULL;
	const struct named *n = name ? named_find(b, tag, name) : NULL;
	Dwarf_Die copy;

	if (!n || dwarf_dieoffset((Dwarf_Die *)&n->die) == dwarf_dieoffset(die))
		return NULL;
	copy = n->die;
	if (!dwarf_hasattr(die, DW_AT_declaration) &&
	    die_number(die, DW_AT_byte_size, 0) != die_number(&copy, DW_AT_byte_size, 0))
		return NULL;	/* two sources mean different things by it */
	return type_read(b, &copy);
}

/* A structure that has only this name. */
static struct type *typedef_read(struct build *b, Dwarf_Die *die)
{
	struct type *t = type_of(b, die);

	if (!t->name && (t->kind == TYPE_STRUCT || t->kind == TYPE_UNION || t->kind == TYPE_ENUM))
		t->name = die_name(die);
	return t;
}

static struct type *base_read(struct build *b, Dwarf_Die *die)
{
	uint64_t how = die_number(die, DW_AT_encoding, DW_ATE_signed);
	const char *name = die_name(die);
	struct type *t = type_new(b, dwarf_dieoffset(die), how == DW_ATE_float ? TYPE_FLOAT :
		TYPE_NUMBER, name ? name : "unnamed");

	t->size = die_number(die, DW_AT_byte_size, 0);
	t->is_signed = how == DW_ATE_signed || how == DW_ATE_signed_char;
	return t;
}

static struct type *pointer_read(struct build *b, Dwarf_Die *die)
{
	struct type *t = type_new(b, dwarf_dieoffset(die), TYPE_POINTER, NULL);

	t->size = sizeof(void *);
	t->to = type_of(b, die);
	return t;
}

static struct type *array_read(struct build *b, Dwarf_Die *die)
{
	struct type *t = type_new(b, dwarf_dieoffset(die), TYPE_ARRAY, NULL);

	dimensions_read(b, t, die, type_of(b, die));
	array_size(t);
	return t;
}

static struct type *type_made(struct build *b, Dwarf_Die *die, int tag)
{
	switch (tag) {
	case DW_TAG_base_type:		return base_read(b, die);
	case DW_TAG_pointer_type:	return pointer_read(b, die);
	case DW_TAG_array_type:		return array_read(b, die);
	case DW_TAG_structure_type:	return compound(b, die, TYPE_STRUCT);
	case DW_TAG_union_type:		return compound(b, die, TYPE_UNION);
	case DW_TAG_enumeration_type:	return compound(b, die, TYPE_ENUM);
	case DW_TAG_subroutine_type:
		return type_new(b, dwarf_dieoffset(die), TYPE_FUNCTION, NULL);
	case DW_TAG_typedef:		return typedef_read(b, die);
	default:			return type_of(b, die);	/* const, volatile, restrict */
	}
}

static struct type *type_read(struct build *b, Dwarf_Die *die)
{
	Dwarf_Off at = dwarf_dieoffset(die);
	int tag = dwarf_tag(die);
	struct type *t;

	for (t = b->slots[at % TYPE_SLOTS]; t; t = t->chain)
		if (t->at == at && t->at > 1)
			return t;
	t = other_of_name(b, die, tag);
	return t ? t : type_made(b, die, tag);
}

struct type *type_partner(struct build *b, const struct named *of)
{
	const struct named *n = named_find(b, of->tag, of->name);
	Dwarf_Die die;

	if (!n)
		return NULL;
	die = n->die;
	return type_read(b, &die);
}

static int kind_tag(const char *kind)
{
	return !kind ? DW_TAG_typedef : !strcmp(kind, "struct") ? DW_TAG_structure_type :
		!strcmp(kind, "union") ? DW_TAG_union_type : DW_TAG_enumeration_type;
}

const char *type_nearest(const struct build *b, const char *kind, const char *name)
{
	const char *names[NAMES_MOST];
	unsigned n = 0;

	for (const struct named *is = b->named; is && n < NAMES_MOST; is = is->next)
		if (is->tag == kind_tag(kind))
			names[n++] = is->name;
	return nearest_of(name, names, n);
}

struct type *type_named(struct build *b, const char *kind, const char *name)
{
	const struct named *n = named_find(b, kind_tag(kind), name);
	Dwarf_Die die;

	if (!n)
		return NULL;
	die = n->die;
	return type_read(b, &die);
}

const struct type *type_renumbered(struct build *old, struct build *new, const struct value **was,
	const struct value **is)
{
	for (const struct named *n = old->named; n; n = n->next) {
		Dwarf_Die die = n->die;
		struct type *o, *other;

		if (n->tag != DW_TAG_enumeration_type)
			continue;
		o = type_read(old, &die);
		other = type_partner(new, n);
		for (*was = other ? o->values : NULL; *was; *was = (*was)->next)
			for (*is = other->values; *is; *is = (*is)->next)
				if (!strcmp((*was)->name, (*is)->name) &&
				    (*was)->number != (*is)->number)
					return o;
	}
	return NULL;
}

const char *type_text(const struct unit *u, const struct type *t)
{
	static const char *const tags[] = { [TYPE_STRUCT] = "struct", [TYPE_UNION] = "union",
		[TYPE_ENUM] = "enum" };

	switch (t->kind) {
	case TYPE_POINTER:
		return arena_format(u->arena, "%s *", type_text(u, t->to));
	case TYPE_ARRAY:
		return arena_format(u->arena, "%s [%lu]", type_text(u, t->to), t->count);
	case TYPE_FUNCTION:
		return "function";
	case TYPE_STRUCT: case TYPE_UNION: case TYPE_ENUM:
		if (t->name && !t->tagged)
			return t->name;
		return arena_format(u->arena, "%s %s", tags[t->kind], t->name ? t->name :
			"without a name");
	default:
		MUST(t->name);
		return t->name;
	}
}

const struct field *field_find(const struct type *t, const char *name, size_t len)
{
	for (const struct field *f = t->fields; f; f = f->next)
		if (strlen(f->name) == len && !memcmp(f->name, name, len))
			return f;
	return NULL;
}
