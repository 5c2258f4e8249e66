/*
 * A checked view of an ELF file, for the planner.
 *
 * The file is whatever a user runs, so nothing in it is believed: every offset
 * goes through elf_bytes() or elf_at(), and what lies outside the file does not
 * exist.  A file is read into private memory instead of being mapped, because a
 * mapping of a file that someone truncates is a SIGBUS in the monitor.  Only
 * the parts that the kernel would load are read at once; section tables and
 * symbols (which may be far larger, with debugging information) on demand, into
 * the same place of one reserved range.
 */
#include <elf.h>
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include "engine/core/must.h"
#include "engine/outside/plan/plan_parts.h"

#define ELF_FILE_MAX	((uint64_t)4 << 30)
#define ELF_PHDRS_MAX	256
#define ELF_SECTIONS_MAX 65536
/*
 * Zeros behind the file.  Parts of it are read more than once, and whoever may write it can
 * take the end of a text away between two looks: a text ends here then.
 */
#define ELF_TAIL	4096

static bool inside(const struct elf_view *v, uint64_t off, uint64_t len)
{
	return off <= v->size && len <= v->size - off;
}

const uint8_t *elf_bytes(const struct elf_view *v, uint64_t off, uint64_t len)
{
	return inside(v, off, len) ? v->bytes + off : NULL;
}

const uint8_t *elf_at(const struct elf_view *v, uint64_t vaddr, uint64_t len)
{
	for (unsigned i = 0; i < v->nload; i++) {
		const struct elf_load *l = &v->load[i];
		uint64_t rel = vaddr - l->vaddr;

		if (rel < l->len)
			return len <= l->len - rel ? v->bytes + l->off + rel : NULL;
	}
	return NULL;
}

const struct elf_load *elf_exec(const struct elf_view *v, uint64_t vaddr)
{
	for (unsigned i = 0; i < v->nload; i++)
		if (v->load[i].exec && vaddr - v->load[i].vaddr < v->load[i].len)
			return &v->load[i];
	return NULL;
}

/* Makes [off, off+len) of the file present in the reserved range. */
static int fill(const struct elf_view *v, uint64_t off, uint64_t len)
{
	uint8_t *to;

	if (!inside(v, off, len))
		return -ENOEXEC;
	to = (uint8_t *)v->bytes + off;
	while (v->fd >= 0 && len) {
		ssize_t got = pread(v->fd, to, len, (off_t)off);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return -errno;
		if (!got)
			return -ENOEXEC;	/* truncated under our hands */
		to += got;
		off += (uint64_t)got;
		len -= (uint64_t)got;
	}
	return 0;
}

static void take_build_id(struct elf_view *v, const uint8_t *note, uint64_t len)
{
	Elf64_Nhdr h;

	while (len >= sizeof(h)) {
		uint64_t name, desc;

		memcpy(&h, note, sizeof(h));
		name = ((uint64_t)h.n_namesz + 3) & ~(uint64_t)3;
		desc = ((uint64_t)h.n_descsz + 3) & ~(uint64_t)3;
		if (name + h.n_descsz > len - sizeof(h))
			return;
		if (h.n_type == NT_GNU_BUILD_ID && h.n_namesz == 4 && h.n_descsz &&
		    h.n_descsz <= PLAN_BUILD_ID_MAX && !memcmp(note + sizeof(h), "GNU", 4)) {
			v->build_id_len = (uint8_t)h.n_descsz;
			MUST(name + v->build_id_len <= len - sizeof(h));
			memcpy(v->build_id, note + sizeof(h) + name, h.n_descsz);
			return;
		}
		if (name + desc > len - sizeof(h))
			return;
		note += sizeof(h) + name + desc;
		len -= sizeof(h) + name + desc;
	}
}

static int add_load(struct elf_view *v, const Elf64_Phdr *ph)
{
	struct elf_load *l = &v->load[v->nload];
	struct elf_load *prev = v->nload ? l - 1 : NULL;
	uint64_t len = ph->p_filesz;

	if (!len || ph->p_offset >= v->size)
		return 0;
	if (v->nload == ELF_LOADS_MAX)
		return -E2BIG;
	if (len > v->size - ph->p_offset)
		len = v->size - ph->p_offset;
	if (ph->p_vaddr >> 47 || len >> 47)
		return -ENOEXEC;
	/* Apart, and no more than the file twice: what follows looks at each byte. */
	if (prev && ph->p_vaddr < prev->vaddr + prev->len)
		return -ENOEXEC;
	v->loaded += len;
	if (v->loaded > 2 * v->size)
		return -ENOEXEC;
	*l = (struct elf_load){ ph->p_vaddr, ph->p_offset, len, ph->p_flags & PF_X };
	v->nload++;
	MUST(inside(v, l->off, l->len) && l->len);	/* elf_at asks for no more */
	return v->headers_only ? 0 : fill(v, l->off, l->len);
}

static int take_segment(struct elf_view *v, const Elf64_Phdr *ph)
{
	const uint8_t *note;

	switch (ph->p_type) {
	case PT_LOAD:
		return add_load(v, ph);
	case PT_GNU_EH_FRAME:
		v->eh_frame_hdr = ph->p_vaddr;
		v->eh_frame_hdr_len = ph->p_filesz;
		return 0;
	case PT_NOTE:
		note = elf_bytes(v, ph->p_offset, ph->p_filesz);
		if (note && !v->build_id_len && !fill(v, ph->p_offset, ph->p_filesz))
			take_build_id(v, note, ph->p_filesz);
		return 0;
	}
	return 0;
}

static bool header_fits(const Elf64_Ehdr *eh)
{
	return !memcmp(eh->e_ident, ELFMAG, SELFMAG) && eh->e_ident[EI_CLASS] == ELFCLASS64 &&
	       eh->e_ident[EI_DATA] == ELFDATA2LSB && eh->e_machine == EM_X86_64 &&
	       (eh->e_type == ET_EXEC || eh->e_type == ET_DYN) &&
	       eh->e_phentsize == sizeof(Elf64_Phdr) && eh->e_phnum <= ELF_PHDRS_MAX;
}

static int take_headers(struct elf_view *v)
{
	Elf64_Ehdr eh;
	Elf64_Phdr ph;
	int err = fill(v, 0, sizeof(eh));

	if (err)
		return err;
	memcpy(&eh, v->bytes, sizeof(eh));
	if (!header_fits(&eh))
		return -ENOEXEC;
	v->entry = eh.e_entry;
	err = fill(v, eh.e_phoff, (uint64_t)eh.e_phnum * sizeof(ph));
	for (unsigned i = 0; !err && i < eh.e_phnum; i++) {
		memcpy(&ph, v->bytes + eh.e_phoff + i * sizeof(ph), sizeof(ph));
		err = take_segment(v, &ph);
	}
	return err;
}

int elf_open_image(struct elf_view *v, const void *bytes, size_t size)
{
	memset(v, 0, sizeof(*v));
	v->bytes = bytes;
	v->size = size;
	v->fd = -1;
	return size < sizeof(Elf64_Ehdr) ? -ENOEXEC : take_headers(v);
}

int elf_open_file(struct elf_view *v, int fd, enum elf_how how)
{
	struct stat st;
	void *at;
	int err;

	if (fstat(fd, &st))
		return -errno;
	if (!S_ISREG(st.st_mode) || (uint64_t)st.st_size < sizeof(Elf64_Ehdr))
		return -ENOEXEC;
	if ((uint64_t)st.st_size > ELF_FILE_MAX)
		return -EFBIG;
	at = mmap(NULL, (size_t)st.st_size + ELF_TAIL, PROT_READ | PROT_WRITE,
		  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (at == MAP_FAILED)
		return -errno;
	if (how == ELF_WHOLE)
		madvise(at, (size_t)st.st_size, MADV_HUGEPAGE);
	memset(v, 0, sizeof(*v));
	v->bytes = at;
	v->size = (uint64_t)st.st_size;
	v->fd = fd;
	v->headers_only = how == ELF_HEADERS;
	err = take_headers(v);
	if (err)
		elf_close(v);
	return err;
}

void elf_close(struct elf_view *v)
{
	MUST(v->bytes);
	if (v->fd >= 0)
		munmap((void *)v->bytes, v->size + ELF_TAIL);
	v->bytes = NULL;
	v->size = 0;
}

bool elf_section(const struct elf_view *v, unsigned i, struct elf_section *s)
{
	Elf64_Ehdr eh;
	Elf64_Shdr sh;
	uint64_t at;

	memcpy(&eh, v->bytes, sizeof(eh));
	if (!eh.e_shoff || eh.e_shentsize != sizeof(sh) || i >= eh.e_shnum ||
	    i >= ELF_SECTIONS_MAX || eh.e_shoff > v->size)
		return false;
	at = eh.e_shoff + (uint64_t)i * sizeof(sh);
	if (!inside(v, at, sizeof(sh)))
		return false;
	if (fill(v, at, sizeof(sh)))
		return false;
	memcpy(&sh, v->bytes + at, sizeof(sh));
	*s = (struct elf_section){ .vaddr = sh.sh_addr, .off = sh.sh_offset, .len = sh.sh_size,
				   .flags = sh.sh_flags, .name = sh.sh_name, .type = sh.sh_type,
				   .link = sh.sh_link, .entsize = (uint32_t)sh.sh_entsize };
	return true;
}

const uint8_t *elf_section_bytes(const struct elf_view *v, const struct elf_section *s)
{
	if (s->type == SHT_NOBITS || !inside(v, s->off, s->len) || fill(v, s->off, s->len))
		return NULL;
	return v->bytes + s->off;
}

bool elf_section_named(const struct elf_view *v, const struct elf_section *s, const char *name)
{
	struct elf_section names;
	Elf64_Ehdr eh;
	const uint8_t *at;
	size_t len = strlen(name) + 1;

	memcpy(&eh, v->bytes, sizeof(eh));
	if (!elf_section(v, eh.e_shstrndx, &names))
		return false;
	at = elf_section_bytes(v, &names);
	return at && s->name < names.len && len <= names.len - s->name &&
	       !memcmp(at + s->name, name, len);
}
