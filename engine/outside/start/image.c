/*
 * Reads the inside image that is linked into this program, and makes the copy of
 * it that programs are given.
 */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "engine/outside/kernel/shared.h"
#include "engine/outside/monitor/say.h"
#include "engine/outside/start/image.h"
#include "engine/outside/start/vdso.h"

#define PAGE 4096ul

/* What the image is mapped into, in each build of mve alike: AREA_ROOM. */
#define INSIDE_ROOM	(2ul << 20)

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
	MUST(*base && im->data && im->data < im->memory_len && im->file_len <= im->memory_len);
	MUST(im->memory_len <= INSIDE_ROOM);
	im->memory_len = INSIDE_ROOM;
}

/* What debuggers look for in an image that they find in memory. */
static const char *const shown[] = { ".dynsym", ".dynstr", ".eh_frame_hdr", ".eh_frame", ".text" };
#define SHOWN	(sizeof(shown) / sizeof(shown[0]))

struct sections_room {
	Elf64_Shdr row[SHOWN + 2];	/* none, the shown, and their names */
	char names[128];
};

static uint32_t name_add(struct sections_room *room, size_t *at, const char *name)
{
	uint32_t where = (uint32_t)*at;

	MUST(*at + strlen(name) < sizeof(room->names));
	strcpy(room->names + *at, name);
	*at += strlen(name) + 1;
	return where;
}

/*
 * Gives the copy section headers of its own, within what is mapped: debuggers
 * take no others, and without them know nothing of the gate's frames.
 */
static void sections_show(uint8_t *copy, size_t at)
{
	Elf64_Ehdr *e = (Elf64_Ehdr *)copy;
	const Elf64_Shdr *all = (const Elf64_Shdr *)(_binary_inside_elf_start + e->e_shoff);
	const char *names = (const char *)_binary_inside_elf_start + all[e->e_shstrndx].sh_offset;
	struct sections_room *room = (struct sections_room *)(copy + at);
	size_t end = 1;

	for (size_t i = 0; i < SHOWN; i++)
		for (int k = 0; k < e->e_shnum; k++)
			if (!strcmp(names + all[k].sh_name, shown[i])) {
				room->row[i + 1] = all[k];
				room->row[i + 1].sh_name = name_add(room, &end, shown[i]);
			}
	MUST(!strcmp(shown[0], ".dynsym") && !strcmp(shown[1], ".dynstr"));
	room->row[1].sh_link = 2;	/* .dynsym's names are .dynstr */
	room->row[SHOWN + 1] = (Elf64_Shdr){
		.sh_name = name_add(room, &end, ".shstrtab"), .sh_type = SHT_STRTAB,
		.sh_offset = at + offsetof(struct sections_room, names), .sh_addralign = 1,
		.sh_size = sizeof(room->names),
	};
	e->e_shoff = at;
	e->e_shnum = SHOWN + 2;
	e->e_shstrndx = SHOWN + 1;
}

static void image_read(struct inside_image *im)
{
	uint8_t *copy;

	uint64_t base = 0;

	im->bytes = _binary_inside_elf_start;
	loads_read(im, &base);
	copy = malloc(im->file_len);
	MUST(copy);
	memcpy(copy, _binary_inside_elf_start, im->file_len);
	im->start = symbol(im->bytes, base, "inside_start");
	im->boot = symbol(im->bytes, base, "boot");
	im->standing = symbol(im->bytes, base, "standing_fds");
	im->own_taken = symbol(im->bytes, base, "own_taken");
	im->tid_at = *(const uint64_t *)(im->bytes + symbol(im->bytes, base, "block_tid_at"));
	for (int i = 0; i < VDSO_FUNCTIONS; i++)
		im->vdso[i] = symbol(im->bytes, base, vdso_names[i]);
	im->gate_net = symbol(im->bytes, base, "gate_net");
	im->locks_led = symbol(im->bytes, base, "locks_led");
	im->led_tids = symbol(im->bytes, base, "led_tids");
	im->stack_from = symbol(im->bytes, base, "gate_stack_start");
	im->stack_to = symbol(im->bytes, base, "gate_stack_end");
	im->lock_once = symbol(im->bytes, base, "lock_once_back");
	im->attach_run = symbol(im->bytes, base, "attach_run");
	im->attach_done = symbol(im->bytes, base, "attach_done");
	im->patch_from = symbol(im->bytes, base, "gate_patch_start");
	im->patch_to = symbol(im->bytes, base, "gate_patch_end");
	im->net_from = symbol(im->bytes, base, "gate_net_start");
	im->net_to = symbol(im->bytes, base, "gate_net_end");
	im->own_from = symbol(im->bytes, base, "own_start");
	im->own_to = symbol(im->bytes, base, "own_end");
	im->musts_from = symbol(im->bytes, base, "musts_start");
	im->musts_to = symbol(im->bytes, base, "musts_end");
	/* What the audit and a program's filter tell callers apart by. */
	MUST(im->patch_from < im->patch_to && im->patch_to <= im->net_from);
	MUST(im->net_from < im->net_to && im->net_to <= im->own_from && im->own_from < im->own_to);
	MUST(im->boot >= im->data && im->standing >= im->data && im->start >= im->own_from);
	MUST(im->musts_to <= im->file_len && im->bytes[im->musts_to - 1] == 0);
	MUST(!(im->data % PAGE) && im->musts_from < im->musts_to);
	MUST(symbol(im->bytes, base, "sections_room") + sizeof(struct sections_room) <=
	     im->file_len);
	sections_show(copy, symbol(im->bytes, base, "sections_room"));
	im->bytes = copy;
}

static int file_make(const struct inside_image *im)
{
	int fd = memfd_create("mve-inside", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (fd < 0)
		return -errno;
	if (!shared_note(fd) ||
	    write(fd, im->bytes, im->file_len) != (ssize_t)im->file_len ||
	    fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) < 0) {
		close(fd);
		return -EIO;
	}
	return fd;
}

int inside_image_fd(void)
{
	static int fd = -1;

	if (fd < 0)
		fd = file_make(inside_image());
	return fd;
}

const struct inside_image *inside_image(void)
{
	static struct inside_image image;

	if (!image.bytes)
		image_read(&image);
	return &image;
}
