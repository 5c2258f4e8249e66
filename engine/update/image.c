/*
 * Loading a build: all of its symbols at once, and none of them for others to see.
 */
#include "engine/update/image.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

bool image_load(struct image *image, const char *path, char *why, size_t size)
{
	struct link_map *map;
	void *loaded = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);

	*image = (struct image){ 0 };
	if (loaded) {
		dlclose(loaded);
		snprintf(why, size, "%s runs already: give the new build a name of its own", path);
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
	if (image->main && image->end && first_keep(image))
		return true;
	snprintf(why, size, "%s is no server: it has no main()", path);
	image_drop(image);
	return false;
}

void image_drop(struct image *image)
{
	if (image->handle)
		dlclose(image->handle);
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
