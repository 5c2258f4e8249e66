/*
 * Finds the functions of the kernel's vDSO in the memory of a process, by its
 * dynamic symbols.  The kernel made the image, so it is taken at its word, but
 * a symbol outside of the copied bytes is not followed.  And the page that was there before
 * it: calls through that come to us by a filter.
 */
#include <elf.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "engine/outside/kernel/remote.h"
#include "engine/outside/start/image.h"
#include "engine/outside/start/inject_parts.h"
#include "engine/outside/start/vdso.h"

#define IMAGE_MAX	0x4000

const char *const vdso_names[VDSO_FUNCTIONS] = {
	[VDSO_CLOCK_GETTIME] = "__vdso_clock_gettime",
	[VDSO_GETTIMEOFDAY] = "__vdso_gettimeofday",
	[VDSO_TIME] = "__vdso_time",
	[VDSO_CLOCK_GETRES] = "__vdso_clock_getres",
	[VDSO_GETCPU] = "__vdso_getcpu",
	[VDSO_GETRANDOM] = "__vdso_getrandom",
};

/* jmp *0(%rip), and where to. */
struct vdso_jump {
	uint8_t jump[6];
	uint64_t to;
} __attribute__((packed));

struct vdso_view {
	uint8_t bytes[IMAGE_MAX + 1];
	uint64_t base, bias;
};

static const void *view_at(const struct vdso_view *v, uint64_t off, uint64_t len)
{
	return off <= IMAGE_MAX && len <= IMAGE_MAX - off ? v->bytes + off : NULL;
}

static void symbol_take(const struct vdso_view *v, const Elf64_Sym *s, uint64_t strings,
			uint64_t out[VDSO_FUNCTIONS])
{
	const char *name = view_at(v, strings + s->st_name, 1);

	_Static_assert(sizeof(vdso_names) / sizeof(vdso_names[0]) == VDSO_FUNCTIONS,
		       "each function");
	for (int i = 0; name && i < VDSO_FUNCTIONS; i++)
		if (!strcmp(name, vdso_names[i]) && s->st_shndx != SHN_UNDEF &&
		    s->st_size >= sizeof(struct vdso_jump))
			out[i] = v->bias + s->st_value;
}

static void symbols_read(const struct vdso_view *v, const Elf64_Shdr *tab,
			 const Elf64_Shdr *strings, uint64_t out[VDSO_FUNCTIONS])
{
	for (uint64_t at = 0; at < IMAGE_MAX && at + sizeof(Elf64_Sym) <= tab->sh_size;
	     at += sizeof(Elf64_Sym)) {
		const Elf64_Sym *s = view_at(v, tab->sh_offset + at, sizeof(*s));

		if (s)
			symbol_take(v, s, strings->sh_offset, out);
	}
}

static void bias_find(struct vdso_view *v, const Elf64_Ehdr *e)
{
	for (int i = 0; i < e->e_phnum; i++) {
		const Elf64_Phdr *p = view_at(v, e->e_phoff + (uint64_t)i * sizeof(*p), sizeof(*p));

		if (p && p->p_type == PT_LOAD)
			v->bias = v->base + p->p_offset - p->p_vaddr;
	}
}

static void functions_read(int memory, uint64_t base, uint64_t out[VDSO_FUNCTIONS])
{
	static struct vdso_view v;
	const Elf64_Ehdr *e = (const Elf64_Ehdr *)v.bytes;
	size_t len = IMAGE_MAX;

	memset(&v, 0, sizeof(v));
	memset(out, 0, VDSO_FUNCTIONS * sizeof(*out));
	v.base = base;
	while (len >= 0x1000 && memory_read(memory, base, v.bytes, len))
		len -= 0x1000;
	if (memcmp(e->e_ident, ELFMAG, SELFMAG))
		return;
	bias_find(&v, e);
	for (int i = 0; i < e->e_shnum; i++) {
		const Elf64_Shdr *s = view_at(&v, e->e_shoff + (uint64_t)i * sizeof(*s),
					      sizeof(*s));
		const Elf64_Shdr *str;

		if (!s || s->sh_type != SHT_DYNSYM)
			continue;
		str = view_at(&v, e->e_shoff + s->sh_link * sizeof(*str), sizeof(*str));
		if (str)
			symbols_read(&v, s, str, out);
	}
}

/* The kernel has one for all 64-bit programs: it is read once. */
void vdso_functions(int memory, uint64_t base, uint64_t out[VDSO_FUNCTIONS])
{
	static uint64_t offset[VDSO_FUNCTIONS];

	if (!offset[VDSO_CLOCK_GETTIME]) {
		functions_read(memory, base, offset);
		for (int i = 0; i < VDSO_FUNCTIONS; i++)
			offset[i] -= offset[i] ? base : 0;
	}
	for (int i = 0; i < VDSO_FUNCTIONS; i++)
		out[i] = offset[i] ? base + offset[i] : 0;
}

static bool any_within(const uint64_t *place, uint32_t n, uint64_t from, uint64_t len)
{
	for (uint32_t i = 0; i < n; i++)
		if (place[i] - from < len)
			return true;
	return false;
}

int vdso_may_lead(int memory, uint64_t base, const uint64_t *place, uint32_t n)
{
	uint64_t at[VDSO_FUNCTIONS];

	vdso_functions(memory, base, at);
	for (int i = 0; i < VDSO_FUNCTIONS; i++)
		if (at[i] && any_within(place, n, at[i], sizeof(struct vdso_jump)))
			return -EAGAIN;
	return 0;
}

int vdso_lead(int memory, uint64_t base, uint64_t inside)
{
	const struct inside_image *im = inside_image();
	uint64_t at[VDSO_FUNCTIONS];
	int result = 0;

	vdso_functions(memory, base, at);
	for (int i = 0; i < VDSO_FUNCTIONS && !result; i++) {
		const struct vdso_jump jump = { { 0xff, 0x25 }, inside + im->vdso[i] };

		if (at[i])
			result = memory_write(memory, at[i], &jump, sizeof(jump));
	}
	return result;
}

/* --- the page that was there before it ---------------------------------------------- */

/*
 * Only a seccomp filter can catch calls through the vsyscall page, and a filter
 * costs every call: it is installed where a file holds an address of that page.
 */
void vsyscall_catch(struct injection *in)
{
	const struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_gettimeofday, 3, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_time, 2, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getcpu, 1, 0),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
			 offsetof(struct seccomp_data, instruction_pointer) + 4),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0xffffffff, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	uint64_t at = in->block, prog[2] = { sizeof(code) / sizeof(code[0]), at + 16 };

	if (memory_write(in->r.memory, at, prog, sizeof(prog)) ||
	    memory_write(in->r.memory, at + 16, code, sizeof(code)))
		return;
	if (REMOTE(&in->r, SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, at) == 0)
		return;
	REMOTE(&in->r, SYS_prctl, PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	REMOTE(&in->r, SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, at);
}
