/*
 * What one system call costs: the timed loop that every mode of perf/bench
 * runs.  Each call is made from a site of its own (`mov $nr,%eax; syscall`,
 * the shape every compiler and libc emits) and through libc's function, and
 * each pair is a row of ops[].
 *
 * What holds the calls is started around this program (perf/hold.c, strace,
 * mve), except what does not survive an execve or must know the program's own
 * addresses: those are --under=filter, dispatch and trap.
 *
 * Prints a line per row: name, way, then the ns per call of each round.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#ifndef PR_SET_SYSCALL_USER_DISPATCH
#define PR_SET_SYSCALL_USER_DISPATCH	59
#define PR_SYS_DISPATCH_ON		1
#endif
#define DISPATCH_ALLOW	0
#define DISPATCH_BLOCK	1

#define ROUNDS_MAX	1000
#define WRITE_BYTES	512

static int zero_fd, null_fd;
static char buf[WRITE_BYTES];

static inline __attribute__((always_inline)) long
site_call(const int nr, long a, long b, long c)
{
	long ret;

	__asm__ volatile("movl %1, %%eax\n\tsyscall"
			 : "=&a"(ret)
			 : "i"(nr), "D"(a), "S"(b), "d"(c)
			 : "rcx", "r11", "memory");
	return ret;
}

static void fail(const char *what)
{
	fprintf(stderr, "call: %s: %s\n", what, strerror(errno));
	exit(3);
}

/* The rows: each loop holds one call, and adds up what it returns. */

static long getppid_site(long n)
{
	long sum = 0;

	while (n--)
		sum += site_call(SYS_getppid, 0, 0, 0) > 0;
	return sum;
}

static long getppid_libc(long n)
{
	long sum = 0;

	while (n--)
		sum += getppid() > 0;
	return sum;
}

static long read_site(long n)
{
	long sum = 0;

	while (n--)
		sum += site_call(SYS_read, zero_fd, (long)buf, 1) == 1;
	return sum;
}

static long read_libc(long n)
{
	long sum = 0;

	while (n--)
		sum += read(zero_fd, buf, 1) == 1;
	return sum;
}

static long write_site(long n)
{
	long sum = 0;

	while (n--)
		sum += site_call(SYS_write, null_fd, (long)buf,
				 WRITE_BYTES) == WRITE_BYTES;
	return sum;
}

static long write_libc(long n)
{
	long sum = 0;

	while (n--)
		sum += write(null_fd, buf, WRITE_BYTES) == WRITE_BYTES;
	return sum;
}

static long clock_libc(long n)
{
	struct timespec ts;
	long sum = 0;

	while (n--)
		sum += clock_gettime(CLOCK_MONOTONIC, &ts) == 0;
	return sum;
}

static const struct op {
	const char *name, *way;
	long (*loop)(long n);	/* how many of the n calls went well */
} ops[] = {
	{ "getppid", "site", getppid_site },
	{ "getppid", "libc", getppid_libc },
	{ "read", "site", read_site },
	{ "read", "libc", read_libc },
	{ "write", "site", write_site },
	{ "write", "libc", write_libc },
	{ "clock_gettime", "libc", clock_libc },
};
#define OPS (sizeof(ops) / sizeof(ops[0]))

/* The ranges of code that a mode lets through: this program, and libc. */

struct ranges {
	struct { unsigned long start, end; } at[16];
	unsigned int count;
};

static int add_code(struct dl_phdr_info *info, size_t size, void *arg)
{
	struct ranges *r = arg;

	(void)size;
	if (info->dlpi_name[0] && !strstr(info->dlpi_name, "libc.so"))
		return 0;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];

		if (p->p_type != PT_LOAD || !(p->p_flags & PF_X))
			continue;
		if (r->count == sizeof(r->at) / sizeof(r->at[0]))
			return 1;
		r->at[r->count].start = info->dlpi_addr + p->p_vaddr;
		r->at[r->count++].end =
			info->dlpi_addr + p->p_vaddr + p->p_memsz;
	}
	return 0;
}

/* Six instructions: allow what comes from [start, end), within 4 GiB. */
static unsigned int filter_range(struct sock_filter *f, unsigned long start,
				 unsigned long last)
{
	const unsigned int ip = offsetof(struct seccomp_data,
					 instruction_pointer);
	const struct sock_filter piece[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, ip + 4),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, start >> 32, 0, 4),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, ip),
		BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, (__u32)start, 0, 2),
		BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, (__u32)last, 1, 0),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};

	memcpy(f, piece, sizeof(piece));
	return sizeof(piece) / sizeof(piece[0]);
}

static void hold_filter(void)
{
	struct sock_filter f[256] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
			 offsetof(struct seccomp_data, arch)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AUDIT_ARCH_X86_64, 1, 0),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
	};
	struct ranges r = { .count = 0 };
	struct sock_fprog prog = { .filter = f };
	unsigned int len = 3;

	dl_iterate_phdr(add_code, &r);
	for (unsigned int i = 0; i < r.count; i++) {
		unsigned long start = r.at[i].start, last = r.at[i].end - 1;

		if (start >> 32 != last >> 32) {
			unsigned long cut = last >> 32 << 32;

			len += filter_range(f + len, start, cut - 1);
			start = cut;
		}
		len += filter_range(f + len, start, last);
	}
	f[len++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K,
						SECCOMP_RET_TRAP);
	prog.len = (unsigned short)len;
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	    syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &prog))
		fail("seccomp filter");
}

/* Every address that a program can run at is allowed: only the check costs. */
static void hold_dispatch(void)
{
	if (prctl(PR_SET_SYSCALL_USER_DISPATCH, PR_SYS_DISPATCH_ON,
		  4096UL, 0x7fffffffe000UL, NULL))
		fail("syscall user dispatch");
}

/*
 * The least that a trap can cost: every call becomes SIGSYS, the handler makes
 * it from the allowed range and returns.  Handler's call and sigreturn must
 * both come from that range, hence the section of their own.
 */
__asm__(".pushsection .text\n"
	".balign 64\n"
	"trap_range_start:\n"
	"trap_call:\n"
	"	mov %rdi, %r11\n"
	"	mov 0x00(%r11), %rax\n"
	"	mov 0x08(%r11), %rdi\n"
	"	mov 0x10(%r11), %rsi\n"
	"	mov 0x18(%r11), %rdx\n"
	"	mov 0x20(%r11), %r10\n"
	"	mov 0x28(%r11), %r8\n"
	"	mov 0x30(%r11), %r9\n"
	"	syscall\n"
	"	ret\n"
	"trap_return:\n"
	"	mov $15, %eax\n"
	"	syscall\n"
	"	ud2\n"		/* the kernel checks the address after a call */
	"trap_range_end:\n"
	".popsection\n");
extern char trap_range_start[], trap_range_end[];
void trap_return(void);
long trap_call(const long *nr_and_args);

static void on_sigsys(int sig, siginfo_t *info, void *ctx)
{
	greg_t *g = ((ucontext_t *)ctx)->uc_mcontext.gregs;
	const long regs[] = {
		g[REG_RAX], g[REG_RDI], g[REG_RSI], g[REG_RDX],
		g[REG_R10], g[REG_R8], g[REG_R9],
	};

	(void)sig;
	(void)info;
	g[REG_RAX] = trap_call(regs);
}

static void hold_trap(void)
{
	static char selector = DISPATCH_BLOCK;
	const struct {
		void (*handler)(int, siginfo_t *, void *);
		unsigned long flags;
		void (*restorer)(void);
		unsigned long mask;
	} act = { on_sigsys, SA_SIGINFO | SA_NODEFER | 0x04000000,
		  trap_return, 0 };

	if (syscall(SYS_rt_sigaction, SIGSYS, &act, NULL, 8))
		fail("rt_sigaction");
	if (prctl(PR_SET_SYSCALL_USER_DISPATCH, PR_SYS_DISPATCH_ON,
		  trap_range_start, trap_range_end - trap_range_start,
		  &selector))
		fail("syscall user dispatch");
}

static void hold_nothing(void)
{
}

static const struct hold {
	const char *name;
	void (*start)(void);
} holds[] = {
	{ "native", hold_nothing },
	{ "filter", hold_filter },
	{ "dispatch", hold_dispatch },
	{ "trap", hold_trap },
};

static double now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec * 1e9 + (double)ts.tv_nsec;
}

static double time_batch(const struct op *op, long n)
{
	const double start = now_ns();
	const long good = op->loop(n);
	const double took = now_ns() - start;

	if (good != n) {
		fprintf(stderr, "call: %s by %s: %ld of %ld calls failed\n",
			op->name, op->way, n - good, n);
		exit(3);
	}
	return took;
}

/*
 * What is measured is the steady state: mve patches a program's own call only
 * after it has been made a thousand times.  Slow ways need no more than a taste.
 */
#define WARM_CALLS	4096
#define WARM_NS		50e6

static void warm_up(const struct op *op)
{
	const double start = now_ns();

	for (long n = 0; n < WARM_CALLS && now_ns() - start < WARM_NS; n += 32)
		time_batch(op, 32);
}

/* The batch that takes at least ms. */
static long batch_size(const struct op *op, double ms)
{
	long n = 32;

	for (;;) {
		const double took = time_batch(op, n);

		if (took >= ms * 1e6 || n > LONG_MAX / 16)
			return n;
		if (took < ms * 1e5)
			n *= 8;
		else
			n = (long)((double)n * ms * 1.1e6 / took) + 1;
	}
}

static void run(int rounds, double ms)
{
	for (size_t i = 0; i < OPS; i++) {
		double ns[ROUNDS_MAX];
		long n;

		warm_up(&ops[i]);
		n = batch_size(&ops[i], ms);

		for (int r = 0; r < rounds; r++)
			ns[r] = time_batch(&ops[i], n) / (double)n;
		printf("%s %s", ops[i].name, ops[i].way);
		for (int r = 0; r < rounds; r++)
			printf(" %.2f", ns[r]);
		printf("\n");
	}
}

static void usage(void)
{
	fprintf(stderr, "usage: call [--under=native|filter|dispatch|trap]"
		" [--rounds=N] [--ms=N]\n");
	exit(2);
}

static const struct hold *find_hold(const char *name)
{
	for (size_t i = 0; i < sizeof(holds) / sizeof(holds[0]); i++)
		if (!strcmp(name, holds[i].name))
			return &holds[i];
	usage();
	return NULL;
}

int main(int argc, char **argv)
{
	const struct hold *under = &holds[0];
	double ms = 5;
	int rounds = 3;

	for (int i = 1; i < argc; i++) {
		if (!strncmp(argv[i], "--under=", 8))
			under = find_hold(argv[i] + 8);
		else if (!strncmp(argv[i], "--rounds=", 9))
			rounds = atoi(argv[i] + 9);
		else if (!strncmp(argv[i], "--ms=", 5))
			ms = atof(argv[i] + 5);
		else
			usage();
	}
	if (rounds < 1 || rounds > ROUNDS_MAX || ms <= 0)
		usage();
	zero_fd = open("/dev/zero", O_RDONLY);
	null_fd = open("/dev/null", O_WRONLY);
	if (zero_fd < 0 || null_fd < 0)
		fail("/dev/zero or /dev/null");
	under->start();
	run(rounds, ms);
	return 0;
}
