/* See code.h. */
#include <fcntl.h>
#include <link.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/attack/code.h"

#define PAGE	4096
#define PLANTED	"planted!"	/* at the end of each page */

static int library_look(struct dl_phdr_info *l, size_t size, void *to)
{
	struct code *c = to;

	(void)size;
	for (unsigned i = 0; strstr(l->dlpi_name, "/libc.") && i < l->dlpi_phnum; i++) {
		const ElfW(Phdr) *h = &l->dlpi_phdr[i];

		if (h->p_type != PT_LOAD || !(h->p_flags & PF_X))
			continue;
		snprintf(c->path, sizeof(c->path), "%s", l->dlpi_name);
		c->offset = h->p_offset & ~(PAGE - 1ul);
		c->len = (h->p_offset - c->offset + h->p_filesz + PAGE - 1) & ~(PAGE - 1ul);
		return 1;
	}
	return 0;
}

/* By its headers: /proc/self/maps does not name the file where patched code lies in its place. */
bool code_find(struct code *c)
{
	return dl_iterate_phdr(library_look, c);
}

void code_plant(char *at, const struct code *c)
{
	for (uint64_t page = PAGE; page <= c->len; page += PAGE)
		memcpy(at + page - strlen(PLANTED), PLANTED, strlen(PLANTED));
}

static bool is_planted(const char *at, uint64_t len)
{
	for (uint64_t page = PAGE; page <= len; page += PAGE)
		if (!memcmp(at + page - strlen(PLANTED), PLANTED, strlen(PLANTED)))
			return true;
	return false;
}

int code_map(void *at)
{
	struct code c;
	int fd, planted;

	if (!code_find(&c))
		return -1;
	fd = open(c.path, O_RDONLY | O_CLOEXEC);
	if (mmap(at, c.len, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_FIXED_NOREPLACE, fd,
		 (off_t)c.offset) != at)
		return -1;
	planted = is_planted(at, c.len);
	close(fd);
	return munmap(at, c.len) || planted ? -1 : 0;
}
