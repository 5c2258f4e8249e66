/*
 * Where in the inside something has failed, in words: from the image as this program carries
 * it, with all that its linker wrote, not from a version's memory.
 */
#include <elfutils/libdw.h>
#include <gelf.h>
#include <stdio.h>
#include <string.h>

#include "engine/outside/start/image.h"

extern const uint8_t _binary_inside_elf_start[], _binary_inside_elf_end[];

/* Where the image is linked. */
static uint64_t base_of(Elf *elf)
{
	size_t n = 0;
	GElf_Phdr p;

	elf_getphdrnum(elf, &n);
	for (size_t i = 0; i < n; i++)
		if (gelf_getphdr(elf, (int)i, &p) && p.p_type == PT_LOAD)
			return p.p_vaddr;
	return 0;
}

/* The symbol that the address is in; its size counts, and names of the linker's have none. */
static const char *function_of(Elf *elf, uint64_t at, uint64_t *into)
{
	Elf_Scn *s = NULL;
	GElf_Shdr h;
	GElf_Sym sym;

	while ((s = elf_nextscn(elf, s))) {
		Elf_Data *data = elf_getdata(s, NULL);

		if (!gelf_getshdr(s, &h) || h.sh_type != SHT_SYMTAB || !data)
			continue;
		for (int i = 0; gelf_getsym(data, i, &sym); i++)
			if (at >= sym.st_value && at < sym.st_value + sym.st_size) {
				*into = at - sym.st_value;
				return elf_strptr(elf, h.sh_link, sym.st_name);
			}
	}
	return NULL;
}

static void line_add(Elf *elf, uint64_t at, char *words, size_t size)
{
	Dwarf *dw = dwarf_begin_elf(elf, DWARF_C_READ, NULL);
	Dwarf_Die die;
	Dwarf_Line *line = dw && dwarf_addrdie(dw, at, &die) ? dwarf_getsrc_die(&die, at) : NULL;
	const char *file = line ? dwarf_linesrc(line, NULL, NULL) : NULL;
	const char *own = file ? strstr(file, "engine/") : NULL;
	int number = 0;

	if (own && !dwarf_lineno(line, &number))
		snprintf(words, size, " (%s:%d)", own, number);
	dwarf_end(dw);
}

static void code_words(uint64_t offset, char *words, size_t size)
{
	size_t len = (size_t)(_binary_inside_elf_end - _binary_inside_elf_start);
	Elf *elf = elf_memory((char *)_binary_inside_elf_start, len);
	uint64_t at = elf ? base_of(elf) + offset : 0, into = 0;
	const char *name = elf ? function_of(elf, at, &into) : NULL;
	int n = name ? snprintf(words, size, "in %s+0x%lx", name, into)
		     : snprintf(words, size, "at 0x%lx of the inside", offset);

	if (name && n > 0 && (size_t)n < size)
		line_add(elf, at, words + n, size - (size_t)n);
	elf_end(elf);
}

void inside_place(uint64_t place, char *words, size_t size)
{
	const struct inside_image *im = inside_image();
	uint64_t offset = im->own_from + place;

	if (offset >= im->musts_from && offset < im->musts_to)
		snprintf(words, size, "%.*s", (int)(im->musts_to - offset),
			 (const char *)im->bytes + offset);
	else
		code_words(offset, words, size);
}
