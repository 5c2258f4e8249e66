/*
 * Reads the inside image that is linked into this program.
 */
#include <elf.h>
#include <string.h>

#include "engine/outside/image.h"
#include "engine/outside/say.h"

#define PAGE 4096ul

extern const uint8_t _binary_inside_elf_start[], _binary_inside_elf_end[];

static const Elf64_Shdr *section_of(const uint8_t *b, uint32_t type)
{
	const Elf64_Ehdr *e = (const Elf64_Ehdr *)b;
	const Elf64_Shdr *s = (const Elf64_Shdr *)(b + e->e_shoff);

	for (int i = 0; i < e->e_shnum; i++)
		if (s[i].sh_type == type)
			return &s[i];
	MUST(!"the inside image lacks a section");
	return NULL;
}

static size_t symbol(const uint8_t *b, uint64_t base, const char *name)
{
	const Elf64_Ehdr *e = (const Elf64_Ehdr *)b;
	const Elf64_Shdr *tab = section_of(b, SHT_SYMTAB);
	const Elf64_Shdr *str = (const Elf64_Shdr *)(b + e->e_shoff) + tab->sh_link;
	const Elf64_Sym *s = (const Elf64_Sym *)(b + tab->sh_offset);

	for (size_t i = 0; i < tab->sh_size / sizeof(*s); i++)
		if (!strcmp((const char *)b + str->sh_offset + s[i].st_name, name))
			return s[i].st_value - base;
	MUST(!"the inside image lacks a symbol");
	return 0;
}

static void loads_read(struct inside_image *im, uint64_t *base)
{
	const Elf64_Ehdr *e = (const Elf64_Ehdr *)im->bytes;
	const Elf64_Phdr *p = (const Elf64_Phdr *)(im->bytes + e->e_phoff);

	for (int i = 0, n = 0; i < e->e_phnum; i++) {
		if (p[i].p_type != PT_LOAD)
			continue;
		if (n++ == 0)
			*base = p[i].p_vaddr;
		if (p[i].p_flags & PF_W)
			im->data = p[i].p_vaddr - *base;
		im->file_len = p[i].p_offset + p[i].p_filesz;
		im->memory_len = p[i].p_vaddr + p[i].p_memsz - *base;
	}
	im->memory_len = (im->memory_len + PAGE - 1) & ~(PAGE - 1);
}

static void image_read(struct inside_image *im)
{
	uint64_t base = 0;

	im->bytes = _binary_inside_elf_start;
	loads_read(im, &base);
	im->start = symbol(im->bytes, base, "inside_start");
	im->boot = symbol(im->bytes, base, "boot");
	im->patch_from = symbol(im->bytes, base, "gate_patch_start");
	im->patch_to = symbol(im->bytes, base, "gate_patch_end");
	im->net_from = symbol(im->bytes, base, "gate_net_start");
	im->net_to = symbol(im->bytes, base, "gate_net_end");
	im->own_from = symbol(im->bytes, base, "own_start");
	im->own_to = symbol(im->bytes, base, "own_end");
}

const struct inside_image *inside_image(void)
{
	static struct inside_image image;

	if (!image.bytes)
		image_read(&image);
	return &image;
}
