/*
 * Loading a build: all of its symbols at once, and none of them for others to see.
 *
 * The loader knows no static function: their names are copied from the file, for when somebody
 * asks it can be no time for calls of ours.
 */
#include "engine/update/image.h"

#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static void id_note(struct image *image, const char *at, size_t size)
{
	while (size >= sizeof(ElfW(Nhdr))) {
		const ElfW(Nhdr) *note = (const void *)at;
		size_t name = (note->n_namesz + 3ul) & ~3ul, desc = (note->n_descsz + 3ul) & ~3ul;
		const unsigned char *id = (const void *)(at + sizeof(*note) + name);

		if (sizeof(*note) + name + desc > size)
			return;
		if (note->n_type == NT_GNU_BUILD_ID && note->n_descsz <= (XFORM_ID - 1) / 2)
			for (unsigned i = 0; i < note->n_descsz; i++)
				sprintf(image->id + 2 * i, "%02x", id[i]);
		at += sizeof(*note) + name + desc;
		size -= sizeof(*note) + name + desc;
	}
}

static void segment_look(struct image *image, const ElfW(Phdr) *p)
{
	char *at = image->base + p->p_vaddr;

	if (p->p_type == PT_NOTE)
		id_note(image, at, p->p_memsz);
	if (p->p_type != PT_LOAD)
		return;
	if (at + p->p_memsz > image->end)
		image->end = at + p->p_memsz;
	if (p->p_flags & PF_W) {
		image->data = at;
		image->data_size = p->p_memsz;
		image->file_size = p->p_filesz;
	}
}

static int look(struct dl_phdr_info *info, size_t size, void *arg)
{
	struct image *image = arg;

	(void)size;
	if ((char *)info->dlpi_addr != image->base)
		return 0;
	image->end = image->base;
	for (unsigned i = 0; i < info->dlpi_phnum; i++)
		segment_look(image, &info->dlpi_phdr[i]);
	return 1;
}

static bool first_keep(struct image *image)
{
	image->first = malloc(image->file_size + 1);
	if (image->first && image->data)
		memcpy(image->first, image->data, image->file_size);
	return image->first;
}

/* A section's bytes; NULL where the file has not so many. */
static const void *section(const char *file, size_t len, const ElfW(Shdr) *s)
{
	return s->sh_offset <= len && s->sh_size <= len - s->sh_offset ? file + s->sh_offset : NULL;
}

static const ElfW(Shdr) *sections(const char *file, size_t len, unsigned *n)
{
	const ElfW(Ehdr) *e = (const void *)file;
	ElfW(Shdr) all = { 0 };

	if (len < sizeof(*e) || e->e_shentsize != sizeof(all) || e->e_shoff % _Alignof(ElfW(Shdr)))
		return NULL;
	*n = e->e_shnum;
	all.sh_offset = e->e_shoff;
	all.sh_size = *n * sizeof(all);
	return section(file, len, &all);
}

static void symbols_copy(struct image *image, const void *symbols, size_t size, const char *names,
	size_t names_size)
{
	/* No memory of the server's: what is there is walked by who updates it. */
	char *to = mmap(NULL, size + names_size, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (to == MAP_FAILED)
		return;
	memcpy(to, symbols, size);
	memcpy(to + size, names, names_size);
	image->symbols = to;
	image->symbols_size = size;
	image->names_size = names_size;
}

static void symbols_find(struct image *image, const char *file, size_t len)
{
	unsigned n = 0;
	const ElfW(Shdr) *s = sections(file, len, &n);

	for (unsigned i = 0; s && i < n; i++) {
		const ElfW(Shdr) *strings = s[i].sh_link < n ? &s[s[i].sh_link] : NULL;
		const void *symbols = section(file, len, &s[i]);
		const char *names = strings ? section(file, len, strings) : NULL;

		/* Its last byte ends each name. */
		if (s[i].sh_type != SHT_SYMTAB || !symbols || !names || !strings->sh_size ||
		    names[strings->sh_size - 1])
			continue;
		symbols_copy(image, symbols, s[i].sh_size, names, strings->sh_size);
		return;
	}
}

/* It does not stay mapped: a map of it beside the loaded one would mislead who reads stacks. */
static void symbols_read(struct image *image, const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat st = { 0 };
	void *at = MAP_FAILED;

	if (fd < 0)
		return;
	if (fstat(fd, &st) == 0 && st.st_size > 0)
		at = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	close(fd);
	if (at == MAP_FAILED)
		return;
	symbols_find(image, at, (size_t)st.st_size);
	munmap(at, (size_t)st.st_size);
}

bool image_load(struct image *image, const char *path, char *why, size_t size)
{
	struct link_map *map;
	void *loaded = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);

	*image = (struct image){ 0 };
	if (loaded) {
		dlclose(loaded);
		snprintf(why, size, "%s runs already, or did before: give the new build a file of "
			"its own", path);
		return false;
	}
	image->handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!image->handle) {
		snprintf(why, size, "%s", dlerror());
		return false;
	}
	image->main = (int (*)(int, char **, char **))dlsym(image->handle, "main");
	if (dlinfo(image->handle, RTLD_DI_LINKMAP, &map) == 0) {
		image->base = (char *)map->l_addr;
		dl_iterate_phdr(look, image);
	}
	if (image->main && image->end && first_keep(image)) {
		symbols_read(image, path);
		return true;
	}
	snprintf(why, size, "%s is no server: it has no main()", path);
	image_drop(image);
	return false;
}

void image_drop(struct image *image)
{
	if (image->handle)
		dlclose(image->handle);
	if (image->symbols)
		munmap((void *)image->symbols, image->symbols_size + image->names_size);
	free(image->first);
	*image = (struct image){ 0 };
}

bool image_holds(const struct image *image, const void *at)
{
	return (const char *)at >= image->base && (const char *)at < image->end;
}

bool image_fresh(const struct image *image, const char *at, size_t size)
{
	size_t from = (size_t)(at - image->data);

	if (!image->data || at < image->data || from + size > image->data_size)
		return true;	/* nobody can have written there */
	for (size_t i = from; i < from + size; i++)
		if (image->data[i] != (i < image->file_size ? image->first[i] : 0))
			return false;
	return true;
}

const char *image_function(const struct image *image, const void *at)
{
	const ElfW(Sym) *s = image->symbols;
	const char *names = (const char *)image->symbols + image->symbols_size;
	uint64_t place = (uint64_t)((const char *)at - image->base);
	Dl_info info;

	for (size_t i = 0; s && i < image->symbols_size / sizeof(*s); i++)
		if (ELF64_ST_TYPE(s[i].st_info) == STT_FUNC && place >= s[i].st_value &&
		    place - s[i].st_value < s[i].st_size && s[i].st_name < image->names_size)
			return names + s[i].st_name;
	/* Of a build without its table the loader knows some. */
	return dladdr(at, &info) ? info.dli_sname : NULL;
}
