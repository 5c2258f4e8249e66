/*
 * Boards, executed: a function in assembly is run as it is, then planned,
 * patched and run again with the same registers, flags and red zone; nothing
 * may differ, rcx and r11 included, and the gate must have been used.
 *
 * The gate of this test is a few instructions that make the real call and keep
 * everything else; GS points at a block whose T_GATE leads there.
 */
#include <asm/prctl.h>
#include <criterion/criterion.h>
#include <elf.h>
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "engine/abi/thread.h"
#include "engine/outside/patch/board.h"
#include "engine/outside/plan/plan_parts.h"

#define RED_ZONE	128
#define CODE_AT		0x1000		/* of the function in its mapping */
#define BOARD_AT	0x3000
#define MAP_BYTES	0x5000

enum reg { RAX, RBX, RCX, RDX, RSI, RDI, RBP, R8, R9, R10, R11, R12, R13, R14, R15, FLAGS, NREGS };

struct state {
	uint64_t reg[NREGS];
	uint8_t red[RED_ZONE];
};

/* What run_state needs while every register is the program's. */
struct state *run_now;
uint64_t run_fn, run_sp;
extern uint64_t gate_resume;
extern uint32_t gate_used;
extern const uint8_t test_gate[];
uint64_t gate_resume;
uint32_t gate_used;
void run_state(void);

asm(".pushsection .text\n"
    "test_gate:\n"
    "	mov %rcx,gate_resume(%rip)\n"
    "	movl $1,gate_used(%rip)\n"
    "	syscall\n"
    "	jmp *gate_resume(%rip)\n"

    "run_state:\n"
    "	push %rbx; push %rbp; push %r12; push %r13; push %r14; push %r15\n"
    "	mov %rsp,run_sp(%rip)\n"
    "	mov run_now(%rip),%rax\n"
    "	lea 128(%rax),%rsi\n"		/* the red zone, as the callee will see it */
    "	lea -136(%rsp),%rdi\n"
    "	mov $128,%ecx\n"
    "	rep movsb\n"
    "	push 120(%rax); popf\n"		/* under the zone's top: put back below */
    "	mov 120(%rax),%rcx\n"
    "	mov %rcx,-8(%rsp)\n"
    "	mov 8(%rax),%rbx; mov 24(%rax),%rdx; mov 32(%rax),%rsi; mov 40(%rax),%rdi\n"
    "	mov 48(%rax),%rbp; mov 56(%rax),%r8; mov 64(%rax),%r9; mov 72(%rax),%r10\n"
    "	mov 80(%rax),%r11; mov 88(%rax),%r12; mov 96(%rax),%r13; mov 104(%rax),%r14\n"
    "	mov 112(%rax),%r15; mov 16(%rax),%rcx; mov 0(%rax),%rax\n"
    "	call *run_fn(%rip)\n"
    "	mov %rax,gate_resume(%rip)\n"
    "	mov run_now(%rip),%rax\n"
    "	mov %rbx,8(%rax); mov %rcx,16(%rax); mov %rdx,24(%rax); mov %rsi,32(%rax)\n"
    "	mov %rdi,40(%rax); mov %rbp,48(%rax); mov %r8,56(%rax); mov %r9,64(%rax)\n"
    "	mov %r10,72(%rax); mov %r11,80(%rax); mov %r12,88(%rax); mov %r13,96(%rax)\n"
    "	mov %r14,104(%rax); mov %r15,112(%rax)\n"
    "	mov gate_resume(%rip),%rcx; mov %rcx,0(%rax)\n"
    "	lea -136(%rsp),%rsi\n"		/* before pushf writes there */
    "	lea 128(%rax),%rdi\n"
    "	mov $128,%ecx\n"
    "	rep movsb\n"
    "	lea -136(%rsp),%rsp; pushf; pop 120(%rax)\n"
    "	mov run_sp(%rip),%rsp\n"
    "	pop %r15; pop %r14; pop %r13; pop %r12; pop %rbp; pop %rbx\n"
    "	cld; ret\n"
    ".popsection");

#define SHAPE(name, code)						\
	asm(".pushsection .rodata\n.balign 16\nboard_" #name ":\n" code	\
	    "\nboard_" #name "_end:\n.popsection\n");			\
	extern const uint8_t board_##name[], board_##name##_end[];

SHAPE(before, "mov $39,%eax; syscall; ret")
SHAPE(before_moves, "stc; xor %edi,%edi; mov $39,%eax; mov %eax,%eax; syscall; ret; nop")
SHAPE(around_left, "jmp 1f; 1: mov %r12d,%eax; syscall; pushf; pop %rdx; ret")
SHAPE(around_cmp, "cmp %rdi,%rdi; mov %r12d,%eax; je 2f; nop; 2: syscall;"
		  "cmp $-4095,%rax; jae 1f; mov $7,%r9d; 1: ret")
SHAPE(around_ret, "mov %r12d,%eax; jmp 1f; 1: syscall; ret; .balign 16,0x90")
SHAPE(around_jump, "mov %r12d,%eax; test %eax,%eax; jne 1f; 1: syscall; jmp 2f; nop; nop;"
		   "2: mov $8,%r8d; ret")
SHAPE(around_mov, "mov %r12d,%eax; test %eax,%eax; jne 1f; 1: syscall; mov %rax,%rbx;"
		  "mov %rcx,%r13; ret")
SHAPE(reads_rcx_after, "mov %r12d,%eax; test %eax,%eax; jne 1f; 1: syscall; mov %rcx,%rbx; ret")
SHAPE(red_zone, "mov %rbx,-8(%rsp); mov $39,%eax; syscall; mov -8(%rsp),%r14;"
		"mov -128(%rsp),%r15; ret")
SHAPE(pushes, "push %rbx; push %r12; pop %rax; push %rdi; nop; syscall; pop %rdi; pop %rbx; ret")
SHAPE(rip, "jmp 1f; .balign 16,0xcc; 3: .long 39; 1: mov 3b(%rip),%eax; syscall; ret")
SHAPE(rip_imm, "jmp 1f; 3: .long 39; 1: mov $39,%eax; cmpl $38,3b(%rip); syscall; ret")
SHAPE(fails, "mov $-1,%edi; mov $3,%eax; syscall; cmp $0xfffffffffffff000,%rax; ja 1f; nop;"
	     "1: neg %eax; ret")

#define ROW(name) { #name, board_##name, board_##name##_end }

static const struct row {
	const char *name;
	const uint8_t *code, *end;
} rows[] = {
	ROW(before), ROW(before_moves), ROW(around_left), ROW(around_cmp), ROW(around_ret),
	ROW(around_jump), ROW(around_mov), ROW(reads_rcx_after), ROW(red_zone), ROW(pushes),
	ROW(fails),
};

/* Each decoded by hand below: the planner refuses data inside a function. */
static const struct row with_data[] = { ROW(rip), ROW(rip_imm) };

static uint64_t gs_block[512];

static uint8_t *open_map(void)
{
	uint8_t *map = mmap(NULL, MAP_BYTES, PROT_READ | PROT_WRITE | PROT_EXEC,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	cr_assert(map != MAP_FAILED);
	gs_block[T_GATE / 8] = (uint64_t)test_gate;
	cr_assert_eq(syscall(SYS_arch_prctl, ARCH_SET_GS, gs_block), 0);
	return map;
}

static void fill_state(struct state *s)
{
	for (unsigned i = 0; i < NREGS; i++)
		s->reg[i] = 0x0101010101010101 * (i + 1);
	s->reg[RAX] = 39;
	s->reg[R12] = SYS_getpid;
	s->reg[FLAGS] = 0xad7;		/* carry, parity, adjust, zero, sign, overflow */
	for (unsigned i = 0; i < RED_ZONE; i++)
		s->red[i] = (uint8_t)(i * 7 + 1);
}

static struct state run(const uint8_t *fn)
{
	struct state s;

	fill_state(&s);
	run_now = &s;
	run_fn = (uint64_t)fn;
	run_state();
	return s;
}

static void compare(const char *name, const struct state *a, const struct state *b)
{
	for (unsigned i = 0; i < NREGS; i++)
		cr_expect_eq(a->reg[i], b->reg[i], "%s: register %u: %lx, was %lx", name, i,
			     b->reg[i], a->reg[i]);
	for (unsigned i = 0; i < RED_ZONE; i++)
		cr_expect_eq(a->red[i], b->red[i], "%s: red zone at %u", name, i);
}

/* The smallest ELF file around a function, for the planner. */
static void plan_row(const struct row *r, struct plan_site *site)
{
	uint8_t file[0x400] = { 0 };
	Elf64_Ehdr *eh = (Elf64_Ehdr *)file;
	Elf64_Phdr *ph = (Elf64_Phdr *)(eh + 1);
	size_t len = (size_t)(r->end - r->code);
	struct plan *p;

	*eh = (Elf64_Ehdr){ .e_ident = { 0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, 1 },
			    .e_type = ET_DYN, .e_machine = EM_X86_64, .e_phoff = sizeof(*eh),
			    .e_entry = CODE_AT, .e_phentsize = sizeof(*ph), .e_phnum = 1 };
	*ph = (Elf64_Phdr){ .p_type = PT_LOAD, .p_flags = PF_R | PF_X, .p_offset = 0x200,
			    .p_vaddr = CODE_AT, .p_filesz = len };
	memcpy(file + 0x200, r->code, len);
	cr_assert_eq(plan_image(file, sizeof(file), &p), 0);
	cr_assert_eq(p->n, 1, "%s: %u sites", r->name, p->n);
	*site = p->sites[0];
	plan_free(p);
	cr_assert(site_is_patched(site), "%s is not patched", r->name);
}

static void patch(uint8_t *map, const struct plan_site *s, const char *name)
{
	uint8_t *site = map + s->vaddr, window[SITE_WINDOW_MAX], jump[SITE_JUMP];
	uint64_t end;
	long n;

	memcpy(window, site - s->before, site_window(s));
	n = board_emit(s, window, (uint64_t)site, (uint64_t)map + BOARD_AT, map + BOARD_AT,
		       BOARD_MAX);
	cr_assert_gt(n, 0, "%s: board_emit: %ld", name, n);
	memcpy(&end, map + BOARD_AT + board_resume(s) + BOARD_SITE_END, sizeof(end));
	cr_expect_eq(end, (uint64_t)site + SITE_BYTES);
	cr_assert_eq(board_jump(s, (uint64_t)site, (uint64_t)map + BOARD_AT, jump), 0);
	memcpy(site - s->before, jump, sizeof(jump));
}

static void check_row(const struct row *r, const struct plan_site *s)
{
	uint8_t *map = open_map();
	struct state native, patched;

	memcpy(map + CODE_AT, r->code, (size_t)(r->end - r->code));
	native = run(map + CODE_AT);
	patch(map, s, r->name);
	gate_used = 0;
	patched = run(map + CODE_AT);
	cr_expect_eq(gate_used, 1, "%s: not through the gate", r->name);
	compare(r->name, &native, &patched);
	munmap(map, MAP_BYTES);
}

Test(board, runs_as_native)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct plan_site s;

		plan_row(&rows[i], &s);
		check_row(&rows[i], &s);
	}
}

Test(board, rip_relative)
{
	for (size_t i = 0; i < sizeof(with_data) / sizeof(with_data[0]); i++) {
		const struct row *r = &with_data[i];
		struct plan_site s = { .kind = SITE_BEFORE };
		const uint8_t *at = memmem(r->code, (size_t)(r->end - r->code), "\x0f\x05", 2);

		s.vaddr = CODE_AT + (uint64_t)(at - r->code);
		s.before = i ? 7 : 6;
		check_row(r, &s);
	}
}

/* The far edge of each displacement, and one byte beyond. */
Test(board, reach)
{
	static const uint8_t plain[] = { 0xb8, 39, 0, 0, 0, 0x0f, 0x05 };
	struct plan_site s = { .kind = SITE_BEFORE, .before = 5 };
	uint64_t site = 0x7f0000000000;
	uint8_t out[BOARD_MAX], jump[SITE_JUMP];

	cr_expect_gt(board_emit(&s, plain, site, site - 0x7ffff000, out, sizeof(out)), 0);
	cr_expect_eq(board_emit(&s, plain, site, site - 0x80001000, out, sizeof(out)), -ERANGE);
	cr_expect_eq(board_emit(&s, plain, site, site + 0x80001000, out, sizeof(out)), -ERANGE);
	cr_expect_eq(board_jump(&s, site, site - s.before + 5 + 0x7fffffff, jump), 0);
	cr_expect_eq(board_jump(&s, site, site - s.before + 5 + 0x80000000, jump), -ERANGE);
	cr_expect_eq(board_jump(&s, site, site - s.before + 5 - 0x80000000, jump), 0);
	cr_expect_eq(board_jump(&s, site, site - s.before + 5 - 0x80000001, jump), -ERANGE);
}

/* A RIP-relative operand may be out of reach where the jump is not. */
Test(board, reach_of_operand)
{
	/* mov -0x40000000(%rip),%eax; syscall */
	static const uint8_t window[] = { 0x8b, 0x05, 0, 0, 0, 0xc0, 0x0f, 0x05 };
	struct plan_site s = { .kind = SITE_BEFORE, .before = 6 };
	uint8_t out[BOARD_MAX];
	uint64_t site = 0x7f0000000000;

	cr_expect_gt(board_emit(&s, window, site, site + 0x10000000, out, sizeof(out)), 0);
	cr_expect_eq(board_emit(&s, window, site, site + 0x50000000, out, sizeof(out)), -ERANGE);
}

Test(board, refuses)
{
	static const uint8_t call[] = { 0xe8, 0, 0, 0, 0, 0x0f, 0x05 };
	static const uint8_t branch[] = { 0xb0, 1, 0x90, 0x74, 0, 0x0f, 0x05 };
	static const uint8_t other[] = { 0xb8, 39, 0, 0, 0, 0xcd, 0x80 };
	static const uint8_t plain[] = { 0xb8, 39, 0, 0, 0, 0x0f, 0x05 };
	struct plan_site s = { .kind = SITE_BEFORE, .before = 5 };
	uint8_t out[BOARD_MAX];

	cr_expect_eq(board_emit(&s, call, 0x1000, 0x2000, out, sizeof(out)), -EINVAL);
	cr_expect_eq(board_emit(&s, branch, 0x1000, 0x2000, out, sizeof(out)), -EINVAL);
	cr_expect_eq(board_emit(&s, other, 0x1000, 0x2000, out, sizeof(out)), -EINVAL);
	cr_expect_eq(board_emit(&s, plain, 0x1000, 0x2000, out, 20), -ENOSPC);
	s.kind = SITE_TRAP;
	cr_expect_eq(board_emit(&s, plain, 0x1000, 0x2000, out, sizeof(out)), -EINVAL);
}

/* The longest window fits into BOARD_MAX. */
Test(board, room)
{
	uint8_t window[SITE_WINDOW_MAX], out[BOARD_MAX];
	struct plan_site s = { .kind = SITE_BEFORE, .before = NEAR_BEFORE,
			       .after = NEAR_AFTER - SITE_BYTES };

	memset(window, 0x90, sizeof(window));
	memcpy(window + s.before, "\x0f\x05", 2);
	cr_expect_gt(board_emit(&s, window, 0x10000, 0x20000, out, sizeof(out)), 0);
}
