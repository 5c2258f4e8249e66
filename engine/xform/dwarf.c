/*
 * A build as its DWARF tells of it: variables, locals that the program names, functions.
 *
 * Places are from the beginning of the shared object, as they stand in the file: it is linked
 * at 0, and whoever loads it adds where it is.
 */
#include <dwarf.h>
#include <errno.h>
#include <gelf.h>
#include <string.h>
#include <unistd.h>

#include "engine/core/must.h"
#include "engine/outside/session/near.h"
#include "engine/xform/builds.h"

#define MARK	"mve_local_of_"	/* what mve_local() leaves (engine/update/update.h) */

static const char *base_name(const char *path)
{
	const char *slash = path ? strrchr(path, '/') : NULL;

	return slash ? slash + 1 : path ? path : "";
}

static bool wrong(const struct build *b, const char *why, const char *hint)
{
	fprintf(stderr, "mve-xform: cannot read the %s build: %s: %s\nhint: %s\n", b->which,
		b->path, why, hint);
	return false;
}

/* Its bytes in the file lie at one place of memory; thread-local ones do not. */
static bool address_of(Dwarf_Die *die, uint64_t *at)
{
	Dwarf_Attribute a;
	Dwarf_Op *ops;
	size_t n;

	if (!dwarf_attr(die, DW_AT_location, &a) || dwarf_getlocation(&a, &ops, &n) != 0 ||
	    n != 1 || ops[0].atom != DW_OP_addr)
		return false;
	*at = ops[0].number;
	return true;
}

/* const at the top, or of an array's elements. */
static bool is_constant(Dwarf_Die *die)
{
	Dwarf_Attribute a;
	Dwarf_Die type = *die;

	while (dwarf_attr_integrate(&type, DW_AT_type, &a) && dwarf_formref_die(&a, &type)) {
		int tag = dwarf_tag(&type);

		if (tag == DW_TAG_const_type)
			return true;
		if (tag != DW_TAG_array_type && tag != DW_TAG_volatile_type &&
		    tag != DW_TAG_typedef)
			return false;
	}
	return false;
}

static bool seen(const struct build *b, uint64_t at)
{
	for (const struct variable *v = b->variables; v; v = v->next)
		if (v->at == at)
			return true;
	return false;
}

static void variable_read(struct build *b, Dwarf_Die *die, const char *function, const char *file)
{
	const char *name = die_name(die);
	struct variable *v;
	uint64_t at;

	if (!name || !strncmp(name, MARK, strlen(MARK)) || !address_of(die, &at) || seen(b, at))
		return;
	v = arena_alloc(b->u->arena, sizeof(*v));
	*v = (struct variable){ b->variables, name, function, NULL, at, type_of(b, die),
		is_constant(die), die_place(b, die) };
	if (!die_number(die, DW_AT_external, 0))
		v->file = file;
	b->variables = v;
}

/* The function's own variable of the marked name; in the blocks around, too. */
static bool local_find(struct build *b, Dwarf_Die *scope, const char *name, struct local *l)
{
	Dwarf_Die child;
	uint64_t at;

	if (dwarf_child(scope, &child) != 0)
		return false;
	do {
		int tag = dwarf_tag(&child);
		const char *own = tag == DW_TAG_variable || tag == DW_TAG_formal_parameter ?
			die_name(&child) : NULL;

		if (own && !strcmp(own, name) && !address_of(&child, &at)) {
			l->type = type_of(b, &child);
			l->place = die_place(b, &child);
			return true;
		}
		if (tag == DW_TAG_lexical_block && local_find(b, &child, name, l))
			return true;
	} while (dwarf_siblingof(&child, &child) == 0);
	return false;
}

static void local_read(struct build *b, Dwarf_Die *function, const char *name, const char *in)
{
	struct local l = { b->locals, name, in, NULL, { 0 } };

	for (const struct local *old = b->locals; old; old = old->next)
		if (!strcmp(old->name, name) && !strcmp(old->function, in))
			return;
	if (!local_find(b, function, name, &l))
		return;
	b->locals = arena_alloc(b->u->arena, sizeof(l));
	*b->locals = l;
}

/* Static variables and marks in a function, however deep. */
static void body_read(struct build *b, Dwarf_Die *function, Dwarf_Die *scope, const char *name,
	const char *file)
{
	Dwarf_Die child;

	if (dwarf_child(scope, &child) != 0)
		return;
	do {
		int tag = dwarf_tag(&child);
		const char *own = tag == DW_TAG_variable ? die_name(&child) : NULL;

		if (own && !strncmp(own, MARK, strlen(MARK)))
			local_read(b, function, own + strlen(MARK), name);
		else if (own)
			variable_read(b, &child, name, file);
		else if (tag == DW_TAG_lexical_block)
			body_read(b, function, &child, name, file);
	} while (dwarf_siblingof(&child, &child) == 0);
}

/* Of one in several pieces the first is where it begins: what is cold stands elsewhere. */
static bool function_at(Dwarf_Die *die, Dwarf_Addr *at)
{
	Dwarf_Addr base, end;

	return (dwarf_lowpc(die, at) == 0 || dwarf_ranges(die, 0, &base, at, &end) > 0) && *at;
}

static void function_read(struct build *b, Dwarf_Die *die, const char *file)
{
	const char *name = die_name(die);
	struct function *f;
	Dwarf_Addr at;

	if (!name)
		return;
	body_read(b, die, die, name, file);
	if (!function_at(die, &at))
		return;
	f = arena_alloc(b->u->arena, sizeof(*f));
	*f = (struct function){ b->functions, name, file, at };
	b->functions = f;
}

static void cu_read(struct build *b, Dwarf_Die *cu)
{
	const char *file = base_name(dwarf_diename(cu));
	Dwarf_Die die;

	if (dwarf_child(cu, &die) != 0)
		return;
	do {
		if (dwarf_tag(&die) == DW_TAG_variable)
			variable_read(b, &die, NULL, file);
		else if (dwarf_tag(&die) == DW_TAG_subprogram)
			function_read(b, &die, file);
	} while (dwarf_siblingof(&die, &die) == 0);
}

static unsigned cus_each(struct build *b, void (*what)(struct build *b, Dwarf_Die *cu))
{
	Dwarf_CU *unit = NULL;
	Dwarf_Die cu;
	uint8_t type;
	unsigned n = 0;

	while (dwarf_get_units(b->dwarf, unit, &unit, NULL, &type, &cu, NULL) == 0)
		if (type == DW_UT_compile) {
			what(b, &cu);
			n++;
		}
	return n;
}

static bool id_read(struct build *b)
{
	const void *id;
	ssize_t n = dwelf_elf_gnu_build_id(dwarf_getelf(b->dwarf), &id);

	if (n <= 0 || n > (XFORM_ID - 1) / 2)
		return false;
	for (ssize_t i = 0; i < n; i++)
		sprintf(b->id + 2 * i, "%02x", ((const unsigned char *)id)[i]);
	return true;
}

static bool is_shared(const struct build *b)
{
	GElf_Ehdr head;

	return gelf_getehdr(dwarf_getelf(b->dwarf), &head) && head.e_type == ET_DYN;
}

bool build_read(struct unit *u, struct build *b, const char *path, const char *which)
{
	*b = (struct build){ .u = u, .path = path, .which = which };
	b->types_end = &b->types;
	b->fd = near_regular(path);
	if (b->fd < 0)
		return wrong(b, b->fd == -EINVAL ? "no regular file" : strerror(-b->fd),
			     "give both builds: mve-xform OLD.so NEW.so");
	b->dwarf = dwarf_begin(b->fd, DWARF_C_READ);
	if (!b->dwarf)
		return wrong(b, "no DWARF in it", "build it with -g");
	if (!is_shared(b))
		return wrong(b, "no shared object", "build it with engine/update/update.mk");
	if (!id_read(b))
		return wrong(b, "no build id in it", "link it with -Wl,--build-id");
	cus_each(b, type_index);
	if (!cus_each(b, cu_read))
		return wrong(b, "no DWARF in it", "build it with -g");
	return true;
}

void build_close(struct build *b)
{
	if (b->dwarf)
		dwarf_end(b->dwarf);
	if (b->fd >= 0)
		close(b->fd);
}
