/*
 * The patch planner: each shape of a system call gets the window it should, or
 * none; damaged files do no harm; the caches give back what was planned.
 *
 * The shapes are written in assembly below, kept as data, and wrapped into a
 * small ELF file with a symbol for each function.
 */
#include <criterion/criterion.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "engine/outside/plan/plan.h"

#define TEXT_OFF	0x1000
#define TEXT_VADDR	0x401000
#define FILE_BYTES	0x4000

/* A function in assembly, kept in .rodata between two labels. */
#define SHAPE(name, code)						\
	asm(".pushsection .rodata\n.balign 16\nshape_" #name ":\n" code	\
	    "\nshape_" #name "_end:\n.popsection\n");			\
	extern const uint8_t shape_##name[], shape_##name##_end[];

SHAPE(mov_nr, "mov $39,%eax; syscall; ret")
SHAPE(mov_nr_first_entered, "1: mov $39,%eax; syscall; test %eax,%eax; js 1b; ret")
SHAPE(cmp_after, "cmp %rdi,%rsi; je 1f; jmp 2f; 1: xor %eax,%eax; 2: syscall;"
		 "cmp $0xfffffffffffff000,%rax; ja 1b; ret")
SHAPE(setup_moves, "jmp 1f; 1: xor %edi,%edi; mov %r12d,%eax; syscall; call *%rbx; ret")
SHAPE(ret_padded, "jmp *0(%rip); 1: syscall; ret; .balign 16,0x90")
SHAPE(ret_at_end, "jmp *0(%rip); 1: syscall; ret")
SHAPE(mov_after, "jmp 1f; 1: syscall; mov %rax,%rbx; jne 2f; nop; 2: ret")
SHAPE(mov_after_two, "jmp 1f; 1: syscall; mov %rax,%rbx; xor %eax,%eax; ret")
SHAPE(test_after, "jmp 1f; 1: syscall; test %rax,%rax; jne 2f; nop; 2: ret")
SHAPE(go_store, "mov 8(%rsp),%edi; mov $202,%eax; syscall; mov %eax,0x20(%rsp); ret")
SHAPE(go_syscall6, "mov %rax,%r15; mov %r15,%rax; syscall; cmpq $-4095,%rax; jbe 1f; ret; 1: ret")
SHAPE(musl_ret, "mov %rdx,%r10; mov %rcx,%rdx; mov %r8,%rax; syscall; ret")
SHAPE(musl_jump, "1: mov %r8,%rax; syscall; jmp 1b")
SHAPE(jump_after, "jmp 1f; 1: syscall; jmp 2f; .skip 200,0x90; 2: ret")
SHAPE(into_window, "test %edi,%edi; je 1f; xor %esi,%esi; 1: mov %r12d,%eax; syscall; hlt")
SHAPE(to_syscall, "test %edi,%edi; je 1f; mov $39,%eax; 1: syscall; hlt; ret")
SHAPE(to_syscall_around, "test %edi,%edi; je 1f; mov $39,%eax; 1: syscall; mov %rax,%rbx;"
			 "mov %rbx,%rax; ret")
SHAPE(to_end, "test %edi,%edi; je 1f; push %rbx; syscall; 1: cmp $-4095,%rax; ret")
SHAPE(switch_mov, "lea 1f(%rip),%rcx; mov $39,%eax; syscall; jmp *%rcx; 1: ret")
SHAPE(switch_moves, "jmp *%rcx; xor %edi,%edi; mov %r12d,%eax; syscall; ret; nop; nop")
SHAPE(switch_cmp, "jmp *%rcx; xor %eax,%eax; syscall; cmp $-4095,%rax; ret")
SHAPE(switch_test, "jmp *%rcx; xor %eax,%eax; syscall; test %rax,%rax; ret")
SHAPE(switch_store, "jmp *%rcx; xor %eax,%eax; syscall; mov %rax,%rbx; mov %rbx,%rcx; ret")
SHAPE(call_before, "call *%rax; syscall; call *%rcx; ret")
SHAPE(label_taken, "lea 1f(%rip),%rdx; push %rdx; mov %rdi,%rsi; 1: mov %edx,%eax; syscall; hlt")
SHAPE(rip_before, "jmp 1f; 1: mov 0x1000(%rip),%edi; xor %eax,%eax; syscall; call *%rax; ret")
SHAPE(lock_skipped, "1: je 2f; lock; 2: cmpxchg %esi,(%rdi); mov $39,%eax; syscall; ret")
SHAPE(sigreturn, "mov $15,%rax; syscall")
SHAPE(prefixed, "mov $39,%eax; .byte 0x48; syscall; ret")
SHAPE(undecodable, "mov $39,%eax; syscall; ret; .byte 0x06,0x06,0x06")
SHAPE(wrong_target, "mov $39,%eax; syscall; ret; je .-6")
SHAPE(int80, "mov $20,%eax; int $0x80; ret")
SHAPE(sysenter, "mov $20,%eax; sysenter; ret")
SHAPE(hidden_pair, "mov $0x050f,%eax; mov $0x80cd,%ecx; ret")
SHAPE(vsyscall_mov, "mov $0xffffffffff600000,%rax; call *%rax; ret")
SHAPE(vsyscall_not, "mov $0x00600000,%eax; cmp $0x0060,%ax; .byte 0x3d; .long 0xff600000; ret")

#define ROW(name, kind, before, after, flags) \
	{ #name, shape_##name, shape_##name##_end, kind, before, after, flags }

static const struct row {
	const char *name;
	const uint8_t *code, *end;
	uint8_t kind, before, after, flags;
} rows[] = {
	ROW(mov_nr, SITE_BEFORE, 5, 0, 0),
	ROW(mov_nr_first_entered, SITE_BEFORE, 5, 0, 0),
	ROW(cmp_after, SITE_AROUND, 0, 6, SITE_END_LOST),
	ROW(setup_moves, SITE_BEFORE, 5, 0, 0),
	ROW(ret_padded, SITE_AROUND, 0, 3, SITE_END_LOST),
	ROW(ret_at_end, SITE_TRAP, 0, 0, 0),
	ROW(mov_after, SITE_AROUND, 0, 3, SITE_END_LOST),
	ROW(mov_after_two, SITE_AROUND, 0, 3, SITE_END_LOST),
	ROW(test_after, SITE_AROUND, 0, 3, SITE_END_LOST),
	ROW(go_store, SITE_BEFORE, 5, 0, 0),
	ROW(go_syscall6, SITE_BEFORE, 6, 0, 0),
	ROW(musl_ret, SITE_BEFORE, 6, 0, 0),
	ROW(musl_jump, SITE_AROUND, 3, 0, 0),
	ROW(jump_after, SITE_AROUND, 0, 5, SITE_END_LOST),
	ROW(into_window, SITE_AROUND, 3, 0, 0),
	ROW(to_syscall, SITE_BEFORE, 5, 0, SITE_SLOW),
	ROW(to_syscall_around, SITE_AROUND, 0, 3, SITE_END_LOST),
	ROW(to_end, SITE_TRAP, 0, 0, 0),
	ROW(switch_mov, SITE_BEFORE, 5, 0, 0),
	ROW(switch_moves, SITE_TRAP, 0, 0, 0),
	ROW(switch_cmp, SITE_AROUND, 0, 6, SITE_END_LOST),
	ROW(switch_test, SITE_AROUND, 0, 3, SITE_END_LOST),
	ROW(switch_store, SITE_TRAP, 0, 0, 0),
	ROW(call_before, SITE_TRAP, 0, 0, 0),
	ROW(label_taken, SITE_BEFORE, 13, 0, SITE_SLOW),
	ROW(rip_before, SITE_BEFORE, 8, 0, 0),
	ROW(lock_skipped, SITE_BEFORE, 5, 0, 0),
	ROW(sigreturn, SITE_TRAP, 0, 0, 0),
	ROW(prefixed, SITE_TRAP, 0, 0, 0),
	ROW(undecodable, SITE_TRAP, 0, 0, 0),
	ROW(wrong_target, SITE_TRAP, 0, 0, 0),
	ROW(int80, SITE_INT80, 0, 0, 0),
	ROW(sysenter, SITE_SYSENTER, 0, 0, 0),
};

#define NROWS	(sizeof(rows) / sizeof(rows[0]))

/* What a test wants in its file besides the code. */
enum with { WITH_SYMBOLS = 1, WITH_SECTIONS = 2, WITH_BUILD_ID = 4 };

static const uint8_t note[] = { 4, 0, 0, 0, 8, 0, 0, 0, 3, 0, 0, 0, 'G', 'N', 'U', 0,
				1, 2, 3, 4, 5, 6, 7, 8 };

static void put_headers(uint8_t *file, size_t text_len, unsigned with)
{
	Elf64_Ehdr *eh = (Elf64_Ehdr *)file;
	Elf64_Phdr *ph = (Elf64_Phdr *)(eh + 1);

	*eh = (Elf64_Ehdr){ .e_ident = { 0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, 1 },
			    .e_type = ET_EXEC, .e_machine = EM_X86_64, .e_version = 1,
			    .e_entry = TEXT_VADDR, .e_phoff = sizeof(*eh), .e_ehsize = sizeof(*eh),
			    .e_phentsize = sizeof(*ph), .e_phnum = 2 };
	ph[0] = (Elf64_Phdr){ .p_type = PT_LOAD, .p_flags = PF_R | PF_X, .p_offset = TEXT_OFF,
			      .p_vaddr = TEXT_VADDR, .p_filesz = text_len, .p_memsz = text_len };
	ph[1] = (Elf64_Phdr){ .p_type = with & WITH_BUILD_ID ? PT_NOTE : PT_NULL,
			      .p_offset = 0x800, .p_filesz = sizeof(note) };
	memcpy(file + 0x800, note, sizeof(note));
}

static void put_sections(uint8_t *file, size_t text_len, size_t func_len, unsigned with)
{
	Elf64_Ehdr *eh = (Elf64_Ehdr *)file;
	Elf64_Shdr *sh = (Elf64_Shdr *)(file + 0x200);
	Elf64_Sym *sym = (Elf64_Sym *)(file + 0x400);

	eh->e_shoff = 0x200;
	eh->e_shentsize = sizeof(*sh);
	eh->e_shnum = 4;
	sh[1] = (Elf64_Shdr){ .sh_type = SHT_PROGBITS, .sh_flags = SHF_ALLOC | SHF_EXECINSTR,
			      .sh_addr = TEXT_VADDR, .sh_offset = TEXT_OFF, .sh_size = text_len };
	sh[2] = (Elf64_Shdr){ .sh_type = SHT_STRTAB, .sh_offset = 0x500, .sh_size = 16 };
	memcpy(file + 0x500, "\0f\0", 3);
	if (!(with & WITH_SYMBOLS))
		return;
	sh[3] = (Elf64_Shdr){ .sh_type = SHT_SYMTAB, .sh_link = 2, .sh_offset = 0x400,
			      .sh_size = 2 * sizeof(*sym), .sh_entsize = sizeof(*sym) };
	sym[1] = (Elf64_Sym){ .st_name = 1, .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC),
			      .st_shndx = 1, .st_value = TEXT_VADDR, .st_size = func_len };
}

/* A file of one function; the text ends in bytes that are no padding. */
static size_t make_file(uint8_t *file, const uint8_t *code, size_t len, unsigned with)
{
	size_t text_len = len + 8;

	memset(file, 0, FILE_BYTES);
	put_headers(file, text_len, with);
	if (with & (WITH_SECTIONS | WITH_SYMBOLS))
		put_sections(file, text_len, len, with);
	memcpy(file + TEXT_OFF, code, len);
	memset(file + TEXT_OFF + len, 0xc3, 8);
	return TEXT_OFF + text_len;
}

static struct plan *plan_code(const uint8_t *code, size_t len, unsigned with)
{
	uint8_t *file = malloc(FILE_BYTES);
	struct plan *p = NULL;
	int err = plan_image(file, make_file(file, code, len, with), &p);

	cr_assert_eq(err, 0, "plan_image: %d", err);
	free(file);
	return p;
}

static struct plan *plan_row(const char *name)
{
	for (size_t i = 0; i < NROWS; i++)
		if (!strcmp(rows[i].name, name))
			return plan_code(rows[i].code, (size_t)(rows[i].end - rows[i].code),
					 WITH_SYMBOLS);
	return NULL;
}

Test(plan, shapes)
{
	for (size_t i = 0; i < NROWS; i++) {
		const struct row *r = &rows[i];
		struct plan *p = plan_code(r->code, (size_t)(r->end - r->code), WITH_SYMBOLS);
		const struct plan_site *s = &p->sites[0];

		cr_expect_eq(p->n, 1, "%s: %u sites", r->name, p->n);
		if (p->n == 1)
			cr_expect(s->kind == r->kind && s->before == r->before &&
				  s->after == r->after && s->flags == r->flags,
				  "%s: kind %u -%u +%u flags %u", r->name, s->kind, s->before,
				  s->after, s->flags);
		plan_free(p);
	}
}

Test(plan, places_and_numbers)
{
	struct plan *p = plan_row("go_store");

	cr_assert_eq(p->n, 1);
	cr_expect_eq(p->sites[0].nr, SYS_futex);
	cr_expect_eq(p->sites[0].vaddr, TEXT_VADDR + 9);
	cr_expect_eq(p->sites[0].offset, TEXT_OFF + 9);
	plan_free(p);
	p = plan_row("setup_moves");
	cr_expect_eq(p->sites[0].nr, -1);
	plan_free(p);
}

Test(plan, pairs_that_are_no_calls)
{
	size_t len = (size_t)(shape_hidden_pair_end - shape_hidden_pair);
	struct plan *p = plan_code(shape_hidden_pair, len, WITH_SYMBOLS);

	cr_expect_eq(p->n, 0);
	cr_expect_eq(p->unknown_pairs, 0);
	plan_free(p);
	/* A pair outside every section of code. */
	p = plan_code((const uint8_t *)"\x0f\x05\x06\x06\x0f\x34", 6, WITH_SECTIONS);
	cr_expect_eq(p->n, 2);
	cr_expect_eq(p->sites[0].flags, SITE_UNKNOWN);
	cr_expect_eq(p->sites[1].flags, SITE_UNKNOWN);
	cr_expect_eq(p->unknown_pairs, 2);
	plan_free(p);
}

Test(plan, vsyscall_constants)
{
	struct plan *p = plan_code(shape_vsyscall_mov,
				   (size_t)(shape_vsyscall_mov_end - shape_vsyscall_mov),
				   WITH_SYMBOLS);

	cr_expect(p->vsyscall);
	plan_free(p);
	p = plan_code(shape_vsyscall_not, (size_t)(shape_vsyscall_not_end - shape_vsyscall_not),
		      WITH_SYMBOLS);
	cr_expect(!p->vsyscall);
	plan_free(p);
	p = plan_code((const uint8_t *)"\x00\x04\x60\xff\xff\xff\xff\xff", 8, WITH_SYMBOLS);
	cr_expect(p->vsyscall);
	plan_free(p);
}

/* Without symbols a function is a gap, and without sections too. */
Test(plan, gaps)
{
	static const unsigned withs[] = { WITH_SECTIONS, 0 };

	for (size_t i = 0; i < 2; i++) {
		struct plan *p = plan_code(shape_musl_ret,
					   (size_t)(shape_musl_ret_end - shape_musl_ret), withs[i]);

		cr_assert_eq(p->n, 1);
		cr_expect_eq(p->sites[0].kind, SITE_BEFORE);
		plan_free(p);
		p = plan_code(shape_switch_moves,
			      (size_t)(shape_switch_moves_end - shape_switch_moves), withs[i]);
		cr_assert_eq(p->n, 1);
		cr_expect_eq(p->sites[0].kind, SITE_TRAP);
		plan_free(p);
	}
}

/* A branch from another function, far or near, closes a window. */
Test(plan, branches_from_elsewhere)
{
	uint8_t *file = malloc(FILE_BYTES), *text = file + TEXT_OFF;
	size_t len = (size_t)(shape_setup_moves_end - shape_setup_moves);
	struct plan *p;
	int32_t rel;

	make_file(file, shape_setup_moves, len, WITH_SYMBOLS);
	((Elf64_Phdr *)(file + 64))->p_filesz = 0x1000;
	memset(text + len, 0xc3, 0x1000 - len);
	text[0x800] = 0xe9;
	rel = 4 - (0x800 + 5);		/* at mov %r12d,%eax */
	memcpy(text + 0x801, &rel, 4);
	cr_assert_eq(plan_image(file, FILE_BYTES, &p), 0);
	cr_expect_eq(p->sites[0].kind, SITE_AROUND);
	cr_expect_eq(p->sites[0].before, 3);
	plan_free(p);
	text[0x800] = 0xc3;
	text[len + 2] = 0xeb;
	text[len + 3] = (uint8_t)(4 - (int)(len + 4));
	cr_assert_eq(plan_image(file, FILE_BYTES, &p), 0);
	cr_expect_eq(p->sites[0].kind, SITE_AROUND);
	plan_free(p);
	free(file);
}

Test(plan, not_elf)
{
	uint8_t file[FILE_BYTES] = "#!/bin/sh\n";
	struct plan *p;

	cr_expect_eq(plan_image(file, sizeof(file), &p), -ENOEXEC);
	cr_expect_eq(plan_image(file, 0, &p), -ENOEXEC);
	make_file(file, shape_mov_nr, 8, WITH_SYMBOLS);
	file[4] = ELFCLASS32;
	cr_expect_eq(plan_image(file, sizeof(file), &p), -ENOEXEC);
}

/* A copy that ends where memory ends, so that reading past it is a crash. */
static uint8_t *at_edge(uint8_t *map, const void *bytes, size_t len)
{
	uint8_t *at = map + 0x10000 - len;

	memcpy(at, bytes, len);
	return at;
}

static uint8_t *edge_map(void)
{
	uint8_t *map = mmap(NULL, 0x11000, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
			    0);

	cr_assert(map != MAP_FAILED);
	mprotect(map + 0x10000, 0x1000, PROT_NONE);
	return map;
}

static void plan_and_drop(const uint8_t *bytes, size_t len)
{
	struct plan *p;

	if (!plan_image(bytes, len, &p))
		plan_free(p);
}

static size_t vdso(const uint8_t **bytes)
{
	*bytes = (const uint8_t *)getauxval(AT_SYSINFO_EHDR);
	return *bytes ? 0x1000 : 0;
}

Test(plan, truncated, .timeout = 60)
{
	uint8_t *map = edge_map(), file[FILE_BYTES];
	const uint8_t *real;
	size_t n = vdso(&real);

	for (size_t len = 0; len < n; len++)
		plan_and_drop(at_edge(map, real, len), len);
	n = make_file(file, shape_cmp_after, (size_t)(shape_cmp_after_end - shape_cmp_after),
		      WITH_SYMBOLS | WITH_BUILD_ID);
	for (size_t len = 0; len < n; len++)
		plan_and_drop(at_edge(map, file, len), len);
}

static void damage(uint8_t *bytes, size_t len, unsigned *seed)
{
	for (int k = rand_r(seed) % 8; k >= 0; k--) {
		size_t at = (unsigned)rand_r(seed) % (k & 1 ? len : 0x200);

		bytes[at] = (uint8_t)(rand_r(seed) & 3 ? rand_r(seed) : 0xff);
	}
}

Test(plan, damaged, .timeout = 120)
{
	uint8_t *map = edge_map(), file[FILE_BYTES];
	const uint8_t *real;
	size_t n = vdso(&real), made;
	unsigned seed = 1;

	made = make_file(file, shape_cmp_after, (size_t)(shape_cmp_after_end - shape_cmp_after),
			 WITH_SYMBOLS | WITH_BUILD_ID);
	for (int i = 0; i < 20000; i++) {
		const uint8_t *from = i & 1 && n ? real : file;
		size_t len = i & 1 && n ? n : made;
		uint8_t *at = at_edge(map, from, len);

		damage(at, len, &seed);
		plan_and_drop(at, len);
	}
}

Test(plan, vdso)
{
	const uint8_t *real;
	size_t n = vdso(&real);
	struct plan *p;

	if (!n)
		cr_skip_test("no vDSO");
	cr_assert_eq(plan_image(real, n, &p), 0);
	cr_expect_gt(p->build_id_len, 0);
	plan_free(p);
}

/* The calls of a server's hot path in the libc that this test runs with. */
Test(plan, libc)
{
	static const int hot[] = { SYS_read, SYS_write, SYS_recvfrom, SYS_sendto, SYS_epoll_wait,
				   SYS_futex, SYS_clock_nanosleep, SYS_accept, SYS_writev,
				   SYS_sendmsg, SYS_openat, SYS_close, SYS_newfstatat };
	int fd = open("/lib/x86_64-linux-gnu/libc.so.6", O_RDONLY);
	unsigned patched = 0, found = 0;
	struct plan *p;

	if (fd < 0)
		cr_skip_test("no libc where Debian has it");
	cr_assert_eq(plan_file(fd, &p), 0);
	for (unsigned i = 0; i < p->n; i++) {
		patched += site_is_patched(&p->sites[i]) != 0;
		for (size_t k = 0; k < sizeof(hot) / sizeof(hot[0]); k++)
			if (p->sites[i].nr == hot[k]) {
				found |= 1u << k;
				cr_expect(site_is_patched(&p->sites[i]), "call %d", hot[k]);
			}
	}
	cr_expect_eq(found, (1u << sizeof(hot) / sizeof(hot[0])) - 1);
	cr_expect_geq(patched * 100, p->n * 98);
	cr_expect_eq(p->unknown_pairs, 0);
	plan_free(p);
	close(fd);
}

struct cache_test {
	char dir[32], elf[64], plan[128];
};

static void cache_open(struct cache_test *t)
{
	uint8_t file[FILE_BYTES];
	size_t n = make_file(file, shape_mov_nr, (size_t)(shape_mov_nr_end - shape_mov_nr),
			     WITH_SYMBOLS | WITH_BUILD_ID);
	int fd;

	strcpy(t->dir, "/tmp/mve-plan-XXXXXX");
	cr_assert(mkdtemp(t->dir));
	setenv("XDG_CACHE_HOME", t->dir, 1);
	snprintf(t->elf, sizeof(t->elf), "%s/elf", t->dir);
	snprintf(t->plan, sizeof(t->plan), "%s/mve/plans/0102030405060708.plan", t->dir);
	fd = open(t->elf, O_RDWR | O_CREAT, 0600);
	cr_assert_eq(write(fd, file, n), (ssize_t)n);
	close(fd);
}

static void cache_close(struct cache_test *t)
{
	char command[64];

	snprintf(command, sizeof(command), "rm -rf %s", t->dir);
	cr_assert_eq(system(command), 0);
}

/* Plans afresh as far as the cache in memory knows, and gives the site. */
static struct plan_site cached_site(struct cache_test *t)
{
	static long seconds = 1000;
	struct timespec times[2] = { { .tv_sec = seconds }, { .tv_sec = seconds } };
	int fd = open(t->elf, O_RDONLY);
	struct plan_site site;
	struct plan *p;

	seconds++;
	futimens(fd, times);
	cr_assert_eq(plan_cached(fd, &p), 0);
	cr_assert_eq(p->n, 1);
	site = p->sites[0];
	plan_free(p);
	close(fd);
	return site;
}

static void poke(const char *path, off_t at, uint8_t byte)
{
	int fd = open(path, O_WRONLY);

	cr_assert_eq(pwrite(fd, &byte, 1, at), 1);
	close(fd);
}

Test(plan, cache_in_memory)
{
	struct cache_test t;
	struct plan *p, *q;
	int fd;

	cache_open(&t);
	fd = open(t.elf, O_RDONLY);
	cr_assert_eq(plan_cached(fd, &p), 0);
	cr_assert_eq(plan_cached(fd, &q), 0);
	cr_expect_eq(p, q);
	plan_free(p);
	plan_free(q);
	close(fd);
	cache_close(&t);
}

Test(plan, cache_on_disk)
{
	struct cache_test t;
	struct stat st, again;

	cache_open(&t);
	cr_expect_eq(cached_site(&t).before, 5);
	cr_assert_eq(stat(t.plan, &st), 0, "%s", t.plan);
	cr_expect_eq(cached_site(&t).before, 5);
	cr_assert_eq(stat(t.plan, &again), 0);
	cr_expect_eq(st.st_ino, again.st_ino, "a good plan was written again");
	/* Whatever is wrong with it, a plan is made anew and put in its place. */
	poke(t.plan, 80 + 22, 4);
	cr_expect_eq(cached_site(&t).before, 5, "a damaged plan was used");
	cr_assert_eq(stat(t.plan, &again), 0);
	cr_expect_neq(st.st_ino, again.st_ino);
	cr_assert_eq(truncate(t.plan, 90), 0);
	cr_expect_eq(cached_site(&t).before, 5);
	chmod(t.plan, 0666);
	cr_expect_eq(cached_site(&t).before, 5);
	cr_assert_eq(stat(t.plan, &again), 0);
	cr_expect_eq(again.st_mode & 0777, 0600, "a plan that others may write was kept");
	cache_close(&t);
}

static void age(const char *path, time_t days)
{
	time_t at = time(NULL) - days * 24 * 3600;

	utimensat(AT_FDCWD, path, (struct timespec[]){ { .tv_sec = at }, { .tv_sec = at } }, 0);
}

Test(plan, cache_forgets)
{
	struct cache_test t;
	char other[160], kept[160];
	struct stat st;

	cache_open(&t);
	cached_site(&t);
	snprintf(other, sizeof(other), "%s/mve/plans/01.plan", t.dir);
	snprintf(kept, sizeof(kept), "%s/mve/plans/02.plan", t.dir);
	close(open(other, O_CREAT | O_WRONLY, 0600));
	close(open(kept, O_CREAT | O_WRONLY, 0600));
	age(t.plan, 29);
	age(other, 31);
	age(kept, 29);
	cached_site(&t);
	cr_assert_eq(stat(t.plan, &st), 0);
	cr_expect_gt(st.st_mtime, time(NULL) - 3600, "what is used grows old");
	cr_expect_eq(stat(other, &st), 0, "nothing was written");
	poke(t.plan, 80 + 22, 4);
	cached_site(&t);
	cr_expect_neq(stat(other, &st), 0, "an old plan stays");
	cr_expect_eq(stat(kept, &st), 0, "one that is not old is gone");
	cache_close(&t);
}

/* The build id stays, the code does not. */
Test(plan, cache_knows_edited_code)
{
	struct cache_test t;

	cache_open(&t);
	cr_expect_eq(cached_site(&t).nr, 39);
	poke(t.elf, TEXT_OFF + 1, 40);
	cr_expect_eq(cached_site(&t).nr, 40, "a plan for other code was used");
	cache_close(&t);
}
