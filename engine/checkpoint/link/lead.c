/*
 *	mve-lead PROGRAM
 *
 * Makes calls go past entries (pass/bodies.cc).  Within a module the pass has done so; of another's
 * function it knows only the name, so what is called is the entry, which jumps.  Once a program is
 * linked all is known: a call in a plain body goes to the plain body, one in a checked body to the
 * checked one.  Addresses that are kept stay the entries', and so do calls in functions of one
 * body, for they run in either case.
 *
 * Where the calls are the linker has said (--emit-relocs); nobody else wants to know, and it is no
 * longer true, so that goes.  A program without all this stays as it is, and is right.
 */
#include <elf.h>
#include <err.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define ENTRY_ALIGN	8

static unsigned char *file;
static size_t file_size;
static Elf64_Shdr *sections;
static unsigned number;
static const char *names;

struct entry {
	uint64_t plain, checked;	/* 0: no entry begins there */
};

static struct entry *table;
static const Elf64_Shdr *entries, *plains, *checks, *rows;

static int is_in(const Elf64_Shdr *s, uint64_t at, size_t size)
{
	return at >= s->sh_addr && size <= s->sh_size && at - s->sh_addr <= s->sh_size - size;
}

static unsigned char *code(const Elf64_Shdr *s, uint64_t at)
{
	return file + s->sh_offset + (at - s->sh_addr);
}

static int32_t word(const void *at)
{
	int32_t n;

	memcpy(&n, at, sizeof(n));
	return n;
}

/* A linker that had no room has left a part. */
static int is_whole(const Elf64_Ehdr *head)
{
	const Elf64_Shdr *s = (const void *)(file + head->e_shoff);

	if (head->e_shoff > file_size || file_size - head->e_shoff < head->e_shnum * sizeof(*s))
		return 0;
	for (unsigned n = 0; n < head->e_shnum; n++, s++)
		if (s->sh_type != SHT_NOBITS &&
		    (s->sh_offset > file_size || file_size - s->sh_offset < s->sh_size))
			return 0;
	return 1;
}

static int sections_find(void)
{
	const Elf64_Ehdr *head = (const void *)file;

	if (file_size < sizeof(*head) || memcmp(head->e_ident, ELFMAG, SELFMAG) ||
	    head->e_ident[EI_CLASS] != ELFCLASS64 || head->e_machine != EM_X86_64 ||
	    !head->e_shoff || head->e_shstrndx >= head->e_shnum || !is_whole(head))
		return 0;
	sections = (Elf64_Shdr *)(file + head->e_shoff);
	number = head->e_shnum;
	names = (const char *)file + sections[head->e_shstrndx].sh_offset;
	for (const Elf64_Shdr *s = sections; s < sections + number; s++) {
		const char *name = names + s->sh_name;

		entries = strcmp(name, ".mve_entry") ? entries : s;
		plains = strcmp(name, ".mve_plain") ? plains : s;
		checks = strcmp(name, ".mve_text") ? checks : s;
		rows = strcmp(name, "mve_checked") ? rows : s;
	}
	return entries && plains && checks && rows;
}

/* Where an entry jumps: behind a mark for indirect branches (CET).  0: it is no jump. */
static uint64_t jumps_to(uint64_t entry)
{
	static const unsigned char mark[] = { 0xf3, 0x0f, 0x1e, 0xfa };
	uint64_t at = entry;

	if (is_in(entries, at, sizeof(mark)) && !memcmp(code(entries, at), mark, sizeof(mark)))
		at += sizeof(mark);
	if (!is_in(entries, at, 5) || *code(entries, at) != 0xe9)
		return 0;
	return at + 5 + word(code(entries, at + 1));
}

/* A row has two words, each as far from its own place (seam/bodies.c). */
static void rows_read(void)
{
	table = calloc(entries->sh_size / ENTRY_ALIGN + 1, sizeof(*table));
	if (!table)
		err(3, "memory");
	for (uint64_t at = rows->sh_addr; is_in(rows, at, 8); at += 8) {
		uint64_t entry = at + word(code(rows, at));
		uint64_t checked = at + 4 + word(code(rows, at + 4)), plain;

		if (!is_in(entries, entry, 1) || (entry - entries->sh_addr) % ENTRY_ALIGN)
			continue;
		plain = jumps_to(entry);
		if (is_in(plains, plain, 1) && is_in(checks, checked, 1))
			table[(entry - entries->sh_addr) / ENTRY_ALIGN] =
				(struct entry){ plain, checked };
	}
}

/* Before the word: a call, a jump or one on a condition.  What names an address otherwise has other
 * bytes there (ModRM, of a place by rip: 0x05, 0x0d, ... 0x3d). */
static int is_call(const unsigned char *at)
{
	return (at[-1] & 0xfe) == 0xe8 || (at[-2] == 0x0f && (at[-1] & 0xf0) == 0x80);
}

static void call_lead(const Elf64_Shdr *s, uint64_t at)
{
	const struct entry *entry;
	uint64_t to, offset;
	int32_t way;

	if (!is_in(s, at - 2, 6) || !is_call(code(s, at)))
		return;
	offset = at + 4 + word(code(s, at)) - entries->sh_addr;
	if (offset >= entries->sh_size || offset % ENTRY_ALIGN)
		return;
	entry = &table[offset / ENTRY_ALIGN];
	to = s == plains ? entry->plain : entry->checked;
	if (!to)
		return;
	way = (int32_t)(to - (at + 4));
	memcpy(code(s, at), &way, sizeof(way));
}

static void calls_lead(const Elf64_Shdr *of)
{
	const Elf64_Shdr *s = &sections[of->sh_info];
	const Elf64_Rela *r = (const void *)(file + of->sh_offset);

	if (s != plains && s != checks)
		return;
	for (size_t n = 0; n < of->sh_size / sizeof(*r); n++, r++)
		if (ELF64_R_TYPE(r->r_info) == R_X86_64_PC32 ||
		    ELF64_R_TYPE(r->r_info) == R_X86_64_PLT32)
			call_lead(s, r->r_offset);
}

/* What ld.so needs is in the program's memory, the rest is the linker's word. */
static void words_lead(void)
{
	for (Elf64_Shdr *s = sections; s < sections + number; s++) {
		if (s->sh_type != SHT_RELA || s->sh_flags & SHF_ALLOC || s->sh_info >= number)
			continue;
		if (table)
			calls_lead(s);
		s->sh_size = 0;
	}
}

int main(int argc, char **argv)
{
	struct stat what;
	int fd;

	if (argc != 2)
		errx(2, "usage: mve-lead PROGRAM");
	fd = open(argv[1], O_RDWR | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &what))
		err(3, "%s", argv[1]);
	file_size = what.st_size;
	file = mmap(NULL, file_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (file == MAP_FAILED)
		err(3, "%s", argv[1]);
	if (sections_find())
		rows_read();
	if (sections)
		words_lead();
	return 0;
}
