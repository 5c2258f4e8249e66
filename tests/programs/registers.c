/*
 * A system call changes rax, rcx and r11, and nothing else: every other
 * register, the flags, the 128 bytes below the stack pointer and the whole
 * vector and x87 state are as before, and rcx is the address behind the
 * instruction.  Each function made by SITE loads a known state, runs one
 * shape of call site, and stores what it finds; only mov is used around the
 * site, for mov keeps the flags.
 */
#include <cpuid.h>
#include <fcntl.h>
#include "check.h"

enum { RAX, RBX, RCX, RDX, RSI, RDI, RBP, R8, R9, R10, R11, R12, R13, R14, R15,
       REGS };

#define RED_WORDS 16
#define FLAGS_TESTED 0xcd5ul	/* CF PF AF ZF SF DF OF */
#define STATE_MASK 7ul		/* x87, SSE, AVX */

struct state {
	uint64_t reg[REGS];
	uint64_t flags;
	uint64_t red[RED_WORDS];
	uint64_t return_address;
};

__attribute__((visibility("hidden"))) struct state before, after;
__attribute__((visibility("hidden"), aligned(64))) uint8_t fp_before[8192];
__attribute__((visibility("hidden"), aligned(64))) uint8_t fp_after[8192];
__attribute__((visibility("hidden"))) uint32_t plain_mxcsr = 0x1f80;
__attribute__((visibility("hidden"))) uint64_t has_xsave;

asm(
".set RED, 128\n"
".macro each_register op\n"
"	\\op rax, 0\n	\\op rbx, 8\n	\\op rcx, 16\n	\\op rdx, 24\n"
"	\\op rsi, 32\n	\\op rdi, 40\n	\\op rbp, 48\n	\\op r8, 56\n"
"	\\op r9, 64\n	\\op r10, 72\n	\\op r11, 80\n	\\op r12, 88\n"
"	\\op r13, 96\n	\\op r14, 104\n	\\op r15, 112\n"
".endm\n"
".macro load_one reg, at\n	mov before+\\at(%rip), %\\reg\n.endm\n"
".macro store_one reg, at\n	mov %\\reg, after+\\at(%rip)\n.endm\n"
".macro red_in\n"
"	.set i, 0\n"
"	.rept 16\n"
"	mov before+128+i(%rip), %rax\n	mov %rax, i-128(%rsp)\n"
"	.set i, i+8\n"
"	.endr\n"
".endm\n"
".macro red_out\n"
"	.set i, 0\n"
"	.rept 16\n"
"	mov i-128(%rsp), %rax\n	mov %rax, after+128+i(%rip)\n"
"	.set i, i+8\n"
"	.endr\n"
".endm\n"
".macro enter_site\n"
"	push %rbx\n	push %rbp\n	push %r12\n"
"	push %r13\n	push %r14\n	push %r15\n"
"	mov $7, %eax\n	xor %edx, %edx\n"
"	cmpq $0, has_xsave(%rip)\n	je 901f\n"
"	xrstor64 fp_before(%rip)\n	jmp 902f\n"
"901:	fxrstor64 fp_before(%rip)\n"
"902:	push before+120(%rip)\n	popf\n"
"	red_in\n"
"	each_register load_one\n"
".endm\n"
".macro leave_site\n"
"	each_register store_one\n"
"	red_out\n"
"	pushf\n	pop after+120(%rip)\n	cld\n"
"	mov $7, %eax\n	xor %edx, %edx\n"
"	cmpq $0, has_xsave(%rip)\n	je 903f\n"
"	xsave64 fp_after(%rip)\n	jmp 904f\n"
"903:	fxsave64 fp_after(%rip)\n"
"904:	fninit\n	ldmxcsr plain_mxcsr(%rip)\n"
"	pop %r15\n	pop %r14\n	pop %r13\n"
"	pop %r12\n	pop %rbp\n	pop %rbx\n"
"	ret\n"
".endm\n");

/* The body ends with the label "behind_NAME" after its last syscall. */
#define SITE(name, body)						\
	void site_##name(void);						\
	extern char behind_##name[];					\
	asm(".text\n.p2align 4\n.globl site_" #name "\n"		\
	    ".hidden site_" #name "\n.hidden behind_" #name "\n"	\
	    ".globl behind_" #name "\n"					\
	    "site_" #name ":\n enter_site\n" body "\n leave_site\n")

#define BEHIND(name) "behind_" #name ": "

SITE(mov_imm32, "mov $39, %eax; syscall;" BEHIND(mov_imm32));
SITE(mov_imm64, "mov $39, %rax; syscall;" BEHIND(mov_imm64));
SITE(movabs, "movabs $39, %rax; syscall;" BEHIND(movabs));
SITE(given, "syscall;" BEHIND(given));
SITE(computed, "lea -3(%rax), %eax; syscall;" BEHIND(computed));
SITE(from_memory, "mov before(%rip), %eax; syscall;" BEHIND(from_memory));
SITE(from_register, "mov %r12d, %eax; syscall;" BEHIND(from_register));
SITE(pushed, "push $39; pop %rax; syscall;" BEHIND(pushed));
SITE(rex, "mov $39, %eax; .byte 0x48, 0x0f, 0x05;" BEHIND(rex));
SITE(far_mov, "mov $39, %eax; mov %rbx, %rbx; nop; syscall;" BEHIND(far_mov));
SITE(target, "mov $39, %eax; jmp 1f; ud2; 1: syscall;" BEHIND(target));
SITE(target_of_both, "mov $39, %eax; test %rax, %rax; jne 1f; mov $1, %eax;"
     "1: syscall;" BEHIND(target_of_both));
SITE(then_compare, "mov $39, %eax; syscall;" BEHIND(then_compare)
     "cmp $-4095, %rax; jae 1f; nop; 1:");
SITE(then_return, "call 1f; jmp 2f; 1: mov $39, %eax; syscall;"
     BEHIND(then_return) "ret; 2:");
SITE(then_short_jump, "mov $39, %eax; syscall;" BEHIND(then_short_jump)
     "jmp 1f; ud2; 1:");
SITE(back_to_back, "mov $186, %eax; syscall; mov $39, %eax; syscall;"
     BEHIND(back_to_back));
SITE(in_a_loop, "mov $39, %eax; mov $5, %r11d; 1: mov %r11d, %ebx;"
     "mov $39, %eax; syscall;" BEHIND(in_a_loop)
     "mov %ebx, %r11d; sub $1, %r11d; jne 1b");
SITE(unlucky_imm, "mov $39, %eax; syscall;" BEHIND(unlucky_imm)
     "mov $0x0f050f05, %r11d");
SITE(chained, "syscall; syscall;" BEHIND(chained));

enum { NO_FLAGS = 1, NO_RED0 = 2, NO_RBX = 4, NO_RCX = 8 };

static const struct shape {
	const char *name;
	void (*run)(void);
	const char *behind;
	int add;		/* what the site takes off rax again */
	int except;		/* what the site itself changes */
} shapes[] = {
#define SHAPE(name, add, except) \
	{ #name, site_##name, behind_##name, add, except }
	SHAPE(mov_imm32, 0, 0),
	SHAPE(mov_imm64, 0, 0),
	SHAPE(movabs, 0, 0),
	SHAPE(given, 0, 0),
	SHAPE(computed, 3, 0),
	SHAPE(from_memory, 0, 0),
	SHAPE(from_register, 0, 0),
	SHAPE(pushed, 0, NO_RED0),
	SHAPE(rex, 0, 0),
	SHAPE(far_mov, 0, 0),
	SHAPE(target, 0, 0),
	SHAPE(target_of_both, 0, NO_FLAGS),
	SHAPE(then_compare, 0, NO_FLAGS),
	SHAPE(then_return, 0, NO_RED0),
	SHAPE(then_short_jump, 0, 0),
	SHAPE(back_to_back, 0, 0),
	SHAPE(in_a_loop, 0, NO_FLAGS | NO_RBX),
	SHAPE(unlucky_imm, 0, 0),
};

static uint64_t next_random(void)
{
	static uint64_t x = 88172645463325252ull;

	x ^= x << 13;
	x ^= x >> 7;
	return x ^= x << 17;
}

static void fill_fp(void)
{
	for (int i = 32; i < 416; i++)
		fp_before[i] = next_random();
	for (int st = 0; st < 8; st++)
		memset(fp_before + 32 + 16 * st + 10, 0, 6);
	for (int i = 576; has_xsave && i < 832; i++)
		fp_before[i] = next_random();
	*(uint16_t *)(fp_before + 0) = 0x0a7f;
	*(uint16_t *)(fp_before + 2) = 0x1900;
	fp_before[4] = 0xff;
	*(uint32_t *)(fp_before + 24) = 0x7fbf;
	*(uint64_t *)(fp_before + 512) = has_xsave ? STATE_MASK : 0;
}

static void fill_state(uint64_t nr)
{
	for (int i = 0; i < REGS; i++)
		before.reg[i] = next_random();
	for (int i = 0; i < RED_WORDS; i++)
		before.red[i] = next_random();
	before.reg[RAX] = nr;
	before.reg[R12] = nr;
	before.flags = 2 | (next_random() & FLAGS_TESTED);
	fill_fp();
}

static void same(const char *name, const char *what, uint64_t got,
		 uint64_t wanted)
{
	if (got == wanted)
		return;
	dprintf(2, "%s: %s is %#lx, not %#lx\n", name, what, got, wanted);
	_exit(1);
}

static void same_fp(const char *name)
{
	same(name, "fcw", *(uint16_t *)fp_after, *(uint16_t *)fp_before);
	same(name, "fsw", *(uint16_t *)(fp_after + 2),
	     *(uint16_t *)(fp_before + 2));
	same(name, "ftw", fp_after[4], fp_before[4]);
	same(name, "mxcsr", *(uint32_t *)(fp_after + 24),
	     *(uint32_t *)(fp_before + 24));
	same(name, "st and xmm", !!memcmp(fp_after + 32, fp_before + 32, 384), 0);
	if (has_xsave)
		same(name, "ymm", !!memcmp(fp_after + 576, fp_before + 576, 256),
		     0);
}

static void same_registers(const char *name, int except)
{
	static const char *const names[REGS] = {
		"rax", "rbx", "rcx", "rdx", "rsi", "rdi", "rbp", "r8", "r9",
		"r10", "r11", "r12", "r13", "r14", "r15"
	};

	for (int i = 0; i < REGS; i++) {
		if (i == RAX || i == RCX || i == R11)
			continue;
		if (i == RBX && (except & NO_RBX))
			continue;
		same(name, names[i], after.reg[i], before.reg[i]);
	}
}

static void same_state(const char *name, int except)
{
	same_registers(name, except);
	for (int i = 0; i < RED_WORDS - !!(except & NO_RED0); i++)
		same(name, "the red zone", after.red[i], before.red[i]);
	if (!(except & NO_FLAGS))
		same(name, "flags", after.flags & FLAGS_TESTED,
		     before.flags & FLAGS_TESTED);
	same_fp(name);
}

static void run_shape(const struct shape *s, uint64_t nr, uint64_t wanted)
{
	before.reg[RAX] = nr + s->add;
	s->run();
	same(s->name, "the result", after.reg[RAX], wanted);
	same(s->name, "rcx", after.reg[RCX], (uint64_t)s->behind);
	same_state(s->name, s->except);
}

static void every_shape(void)
{
	pid_t pid = getpid();

	for (size_t i = 0; i < COUNT(shapes); i++)
		for (int round = 0; round < 300; round++) {
			fill_state(SYS_getpid);
			run_shape(&shapes[i], SYS_getpid, pid);
		}
}

static void every_kind_of_call(void)
{
	static const struct shape *given = &shapes[3];
	static const struct { int nr; long wanted; } calls[] = {
		{ SYS_close, -EBADF }, { 9999, -ENOSYS }, { 511, -ENOSYS },
		{ SYS_getrusage, -EINVAL }, { SYS_fsync, -EBADF },
		{ SYS_rt_sigprocmask, -EINVAL }, { SYS_clock_gettime, -EINVAL },
		{ SYS_rt_sigaction, -EINVAL }, { SYS_kill, -ESRCH },
		{ SYS_execve, -EFAULT }, { SYS_mprotect, -EINVAL },
		{ SYS_munmap, -EINVAL }, { SYS_futex, -ENOSYS },
	};

	for (size_t i = 0; i < COUNT(calls); i++)
		for (int round = 0; round < 20; round++) {
			fill_state(calls[i].nr);
			before.reg[RDI] = before.reg[RSI] = 0xfffff001;
			before.reg[RDX] = 0x8000000000000001;
			before.reg[R10] = 3;
			/* Less than 0 is a process' clock: there may be that process. */
			if (calls[i].nr == SYS_clock_gettime)
				before.reg[RDI] = 0x7ffffff0;
			if (calls[i].nr == SYS_execve)
				before.reg[RDI] = 8;
			if (calls[i].nr == SYS_kill)	/* above all that there are */
				before.reg[RDI] = 0x7ffffff0;
			run_shape(given, calls[i].nr, calls[i].wanted);
		}
}

/* fcntl(F_DUPFD, 39) returns 39, which is getpid: one syscall feeds the next */
static void chained_calls(void)
{
	fill_state(SYS_fcntl);
	before.reg[RDI] = 0;
	before.reg[RSI] = F_DUPFD;
	before.reg[RDX] = SYS_getpid;
	site_chained();
	same("chained", "the result", after.reg[RAX], getpid());
	same("chained", "rcx", after.reg[RCX], (uint64_t)behind_chained);
	same_state("chained", 0);
	CHECK_EQ(close(SYS_getpid), 0);
}

static void six_arguments(void)
{
	int fd = open("six", O_RDWR | O_CREAT | O_TRUNC, 0600);
	char page[4096];

	for (int i = 0; i < 3; i++) {
		memset(page, 'a' + i, sizeof(page));
		CHECK_EQ(write(fd, page, sizeof(page)), sizeof(page));
	}
	for (int i = 0; i < 100; i++) {
		fill_state(SYS_mmap);
		before.reg[RDI] = 0x123450000000;
		before.reg[RSI] = 4096;
		before.reg[RDX] = PROT_READ;
		before.reg[R10] = MAP_PRIVATE | MAP_FIXED;
		before.reg[R8] = fd;
		before.reg[R9] = 4096 * (i % 3);
		run_shape(&shapes[3], SYS_mmap, 0x123450000000);
		CHECK_EQ(*(char *)0x123450000fff, 'a' + i % 3);
	}
	close(fd);
}

static void find_vector_state(void)
{
	unsigned int a, b, c, d;

	CHECK(__get_cpuid(1, &a, &b, &c, &d));
	if (!(c & bit_OSXSAVE))
		return;
	asm("xgetbv" : "=a"(a), "=d"(d) : "c"(0));
	has_xsave = (a & STATE_MASK) == STATE_MASK;
}

int main(void)
{
	find_vector_state();
	every_shape();
	every_kind_of_call();
	chained_calls();
	six_arguments();
	return passed("registers");
}
