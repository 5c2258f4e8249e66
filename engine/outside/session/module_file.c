/*
 * Which file a module is, and which has its debug information: by its build id, or by the name
 * that the module has for it, beside the module or where a system keeps such.  libdwfl's own
 * look opens whatever has that name: a FIFO has it wait, and what it has checked may be another
 * file by the time it is read.  Each is one that near_regular() has opened.
 */
#include <elfutils/libdwelf.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/core/must.h"
#include "engine/outside/session/module_file.h"
#include "engine/outside/session/near.h"

#define SYSTEM	"/usr/lib/debug"
#define ID_MOST	64

static int file_open(const char *name, char **found)
{
	int fd = near_regular(name);

	*found = fd < 0 ? NULL : strdup(name);
	return fd < 0 ? -1 : fd;
}

int module_elf_find(Dwfl_Module *module, void **data, const char *name, Dwarf_Addr base,
		    char **file, Elf **elf)
{
	(void)module, (void)data, (void)base;
	*elf = NULL;
	*file = NULL;
	return name[0] == '/' ? file_open(name, file) : -1;
}

/* --- debug information ------------------------------------------------------------------- */

struct wanted {
	const unsigned char *id;
	int id_len;		/* 0: it has none, and the sum is looked at */
	GElf_Word crc;		/* 0: of what several files share, which has another id */
};

static int by_id(const struct wanted *w, char **found)
{
	char name[sizeof(SYSTEM) + 2 * ID_MOST + 32];
	int n = snprintf(name, sizeof(name), SYSTEM "/.build-id/%02x/", w->id[0]);

	MUST(w->id_len > 0 && w->id_len <= ID_MOST);
	for (int i = 1; i < w->id_len; i++)
		n += snprintf(name + n, sizeof(name) - (size_t)n, "%02x", w->id[i]);
	snprintf(name + n, sizeof(name) - (size_t)n, ".debug");
	return file_open(name, found);
}

/* As objcopy makes it of the file that it names. */
static GElf_Word crc_of(int fd)
{
	static uint8_t part[64 << 10];
	GElf_Word crc = ~0u;
	off_t at = 0;
	ssize_t n;

	for (; (n = pread(fd, part, sizeof(part), at)) > 0; at += n)
		for (ssize_t i = 0; i < n; i++) {
			crc ^= part[i];
			for (int bit = 0; bit < 8; bit++)
				crc = crc >> 1 ^ (0xedb88320u & -(crc & 1));
		}
	return ~crc;
}

static bool has_id(int fd, const struct wanted *w)
{
	Elf *elf = elf_begin(fd, ELF_C_READ_MMAP, NULL);
	const void *id;
	bool has = elf && dwelf_elf_gnu_build_id(elf, &id) == w->id_len &&
		   !memcmp(id, w->id, (size_t)w->id_len);

	elf_end(elf);
	return has;
}

static bool is_wanted(int fd, const struct wanted *w)
{
	return !w->crc || (w->id_len ? has_id(fd, w) : crc_of(fd) == w->crc);
}

static int wanted_open(const struct wanted *w, const char *name, char **found)
{
	int fd = file_open(name, found);

	if (fd < 0 || is_wanted(fd, w))
		return fd;
	close(fd);
	free(*found);
	*found = NULL;
	return -1;
}

static int by_link(const struct wanted *w, const char *file, const char *link, char **found)
{
	static const char *const places[] = { "%.*s/%s", "%.*s/.debug/%s", SYSTEM "%.*s/%s" };
	const char *slash = file ? strrchr(file, '/') : NULL;
	int fd = -1;
	char name[2 * PATH_MAX];

	if (*link == '/')
		return wanted_open(w, link, found);
	for (size_t i = 0; slash && fd < 0 && i < sizeof(places) / sizeof(places[0]); i++) {
		snprintf(name, sizeof(name), places[i], (int)(slash - file), file, link);
		fd = wanted_open(w, name, found);
	}
	return fd;
}

int module_debug_find(Dwfl_Module *module, void **data, const char *name, Dwarf_Addr base,
		      const char *file, const char *link, GElf_Word crc, char **found)
{
	struct wanted w = { .crc = crc };
	GElf_Addr at;
	int fd = -1;

	(void)data, (void)name, (void)base;
	*found = NULL;
	w.id_len = dwfl_module_build_id(module, &w.id, &at);
	if (w.id_len < 0 || w.id_len > ID_MOST)
		w.id_len = 0;
	/* With a name and no sum it is asked for what several files share. */
	if (w.id_len && (crc || !link))
		fd = by_id(&w, found);
	return fd >= 0 || !link ? fd : by_link(&w, file, link, found);
}
