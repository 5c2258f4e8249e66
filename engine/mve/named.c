/*
 * Names of words: the symbol that a word lies in, and by DWARF which member or element of it,
 * and of which type that is.  What has no symbol is named by its mapping.
 */
#include <dwarf.h>
#include <elfutils/libdwfl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/mve/named.h"
#include "engine/outside/kernel/maps.h"
#include "engine/outside/session/module_file.h"

#define DEPTH_MOST	8	/* members of members */
#define PART		128

static Dwfl *dwfl_of(pid_t pid)
{
	static const Dwfl_Callbacks files = {
		.find_elf = module_elf_find,
		.find_debuginfo = module_debug_find,
	};
	static Dwfl *made;

	if (made)
		return made;
	made = dwfl_begin(&files);
	if (made && !dwfl_linux_proc_report(made, pid))
		dwfl_report_end(made, NULL, NULL);
	return made;
}

/* --- types ------------------------------------------------------------------------------- */

static bool type_of(Dwarf_Die *die, Dwarf_Die *to)
{
	Dwarf_Attribute a;
	Dwarf_Die type;

	return dwarf_attr_integrate(die, DW_AT_type, &a) && dwarf_formref_die(&a, &type) &&
	       !dwarf_peel_type(&type, to);
}

static void type_name(Dwarf_Die *type, char *text, size_t size)
{
	const char *name = dwarf_diename(type);
	Dwarf_Die to;
	char part[PART] = "void";
	int tag = dwarf_tag(type);

	if (tag != DW_TAG_pointer_type) {
		snprintf(text, size, "%s%s", tag == DW_TAG_structure_type ? "struct " :
			 tag == DW_TAG_union_type ? "union " :
			 tag == DW_TAG_enumeration_type ? "enum " : "", name ? name : "?");
		return;
	}
	if (type_of(type, &to) && dwarf_tag(&to) != DW_TAG_pointer_type)
		type_name(&to, part, sizeof(part));
	snprintf(text, size, "%s *", part);
}

/* The member that holds the byte; *offset counts from its begin. */
static bool member_find(Dwarf_Die *type, uint64_t *offset, Dwarf_Die *member)
{
	Dwarf_Attribute a;
	Dwarf_Die its;
	Dwarf_Word at, len;

	for (int end = dwarf_child(type, member); !end; end = dwarf_siblingof(member, member)) {
		if (dwarf_tag(member) != DW_TAG_member || !type_of(member, &its) ||
		    dwarf_aggregate_size(&its, &len))
			continue;
		at = 0;
		if (dwarf_attr(member, DW_AT_data_member_location, &a) && dwarf_formudata(&a, &at))
			continue;
		if (*offset < at || *offset - at >= len)
			continue;
		*offset -= at;
		return true;
	}
	return false;
}

/* One step down: a member or an element; false: it is neither a structure nor an array. */
static bool part_name(Dwarf_Die *type, uint64_t *offset, char *text, size_t size)
{
	Dwarf_Die inner;
	Dwarf_Word len;
	const char *name;
	int tag = dwarf_tag(type);

	if (tag == DW_TAG_array_type) {
		if (!type_of(type, &inner) || dwarf_aggregate_size(&inner, &len) || !len)
			return false;
		snprintf(text, size, "[%lu]", *offset / len);
		*offset %= len;
		*type = inner;
		return true;
	}
	if ((tag != DW_TAG_structure_type && tag != DW_TAG_union_type) ||
	    !member_find(type, offset, &inner))
		return false;
	name = dwarf_diename(&inner);
	snprintf(text, size, "%s%s", name ? "." : "", name ? name : "");
	return type_of(&inner, type);
}

/* --- variables ----------------------------------------------------------------------------- */

static bool is_variable(Dwarf_Die *die, const char *name)
{
	const char *its = dwarf_tag(die) == DW_TAG_variable ? dwarf_diename(die) : NULL;
	Dwarf_Attribute a;

	return its && !strcmp(its, name) && dwarf_attr(die, DW_AT_location, &a);
}

/* Of the module's units; statics of functions are not looked for. */
static bool variable_find(Dwfl_Module *mod, const char *name, Dwarf_Die *die)
{
	Dwarf_Die *unit = NULL;
	Dwarf_Addr bias;

	while ((unit = dwfl_module_nextcu(mod, unit, &bias)))
		for (int end = dwarf_child(unit, die); !end; end = dwarf_siblingof(die, die))
			if (is_variable(die, name))
				return true;
	return false;
}

static void variable_name(Dwfl_Module *mod, const char *name, uint64_t offset, char *text,
			  size_t size)
{
	char parts[PART] = "", part[PART], kind[PART];
	Dwarf_Die die, type;

	if (!variable_find(mod, name, &die) || !type_of(&die, &type)) {
		snprintf(text, size, "%s+0x%lx", name, offset);
		return;
	}
	for (int i = 0; i < DEPTH_MOST && part_name(&type, &offset, part, sizeof(part)); i++)
		strncat(parts, part, sizeof(parts) - 1 - strlen(parts));
	type_name(&type, kind, sizeof(kind));
	snprintf(text, size, "%s%s, %s", name, parts, kind);
}

static void mapping_name(pid_t pid, uint64_t at, char *text, size_t size)
{
	struct maps maps;

	snprintf(text, size, "?");
	if (maps_read_part(pid, at, at + 1, &maps))
		maps.n = 0;
	for (size_t i = 0; i < maps.n; i++) {
		const struct map *m = &maps.map[i];

		if (at >= m->start && at < m->end)
			snprintf(text, size, "%s+0x%lx", m->path[0] ? m->path : "[anonymous]",
				 at - m->start);
	}
	maps_free(&maps);
}

void word_name(pid_t pid, uint64_t at, char *text, size_t size)
{
	Dwfl *dwfl = dwfl_of(pid);
	Dwfl_Module *mod = dwfl ? dwfl_addrmodule(dwfl, at) : NULL;
	GElf_Off offset = 0;
	GElf_Sym sym;
	const char *name = mod ? dwfl_module_addrinfo(mod, at, &offset, &sym, NULL, NULL, NULL) :
			   NULL;

	if (name)
		variable_name(mod, name, offset, text, size);
	else
		mapping_name(pid, at, text, size);
}
