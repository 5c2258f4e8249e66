/*
 * Hooks: every lock function of this machine's libc can be hooked, a function runs
 * from its entry board as it does from its own place, and what cannot be hooked is
 * left alone.
 */
#include <asm/prctl.h>
#include <criterion/criterion.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "engine/abi/thread.h"
#include "engine/outside/patch/hook.h"

static const char *const names[LOCK_KINDS] = {
#define LOCK(kind, function, undo, deadline, how) [LOCK_##kind] = #function,
#include "engine/abi/locks.def"
};

static struct hook_plan plan;

/* The library that is loaded under this name, and its plan. */
static struct link_map *library_plan(const char *name)
{
	void *handle = dlopen(name, RTLD_NOW);
	struct link_map *l;
	int fd;

	cr_assert(handle, "%s", dlerror());
	cr_assert_eq(dlinfo(handle, RTLD_DI_LINKMAP, &l), 0);
	cr_assert(hook_is_library(l->l_name), "%s", l->l_name);
	fd = open(l->l_name, O_RDONLY | O_CLOEXEC);
	cr_assert_geq(fd, 0);
	cr_assert_eq(hook_plan_file(fd, HOOKS_DYNAMIC, &plan), 0);
	close(fd);
	return l;
}

/* The hook of the function that a program gets under this name. */
static const struct hook *hook_of(const struct link_map *l, unsigned kind)
{
	/* The library's own: a sanitizer's runtime has some of these names, too. */
	uint64_t at = (uint64_t)dlsym((void *)l, names[kind]) - l->l_addr;

	for (unsigned i = 0; i < plan.n; i++)
		if (plan.hook[i].vaddr == at)
			return &plan.hook[i];
	return NULL;
}

Test(hook, all_of_libc)
{
	struct link_map *l = library_plan("libc.so.6");

	for (unsigned k = 1; k < LOCK_KINDS; k++) {
		const struct hook *h = k == LOCK_GUARD ? NULL : hook_of(l, k);

		if (k == LOCK_GUARD)
			continue;
		cr_assert(h, "%s: not found", names[k]);
		cr_expect_eq(h->kind, k, "%s", names[k]);
		cr_expect(!h->why, "%s: %s", names[k], h->why);
	}
}

Test(hook, statics_of_libstdcxx)
{
	if (!dlopen("libstdc++.so.6", RTLD_NOW | RTLD_GLOBAL))
		cr_skip_test("no libstdc++");
	const struct hook *h = hook_of(library_plan("libstdc++.so.6"), LOCK_GUARD);

	cr_assert(h);
	cr_expect(!h->why, "%s", h->why);
}

/* One lock must not be told twice. */
Test(hook, older_functions_that_go_on)
{
	struct link_map *l = library_plan("libc.so.6");
	uint64_t newer = (uint64_t)dlsym(l, "pthread_cond_wait") - l->l_addr;

	for (unsigned i = 0; i < plan.n; i++)
		if (plan.hook[i].kind == LOCK_COND_WAIT && plan.hook[i].vaddr != newer)
			cr_expect(plan.hook[i].why);
}

/* --- libc's functions, run from boards -------------------------------------------------- */

asm(".pushsection .text\ngate:\n\tmov %eax,gate_kind(%rip)\n\tjmp *%r11\n.popsection");
unsigned gate_kind;
extern char gate[];

typedef int any_function(void *, void *, void *, void *);

static uint8_t *room;
static uint64_t block[T_LOCK_GATE / 8 + 1];

static void room_make(const struct link_map *l)
{
	room = mmap((void *)(l->l_addr - (64 << 20)), HOOKS_ROOM,
		    PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	cr_assert_neq(room, MAP_FAILED);
	block[T_LOCK_GATE / 8] = (uint64_t)gate;
	cr_assert_eq(syscall(SYS_arch_prctl, ARCH_SET_GS, block), 0);
}

static any_function *board_of(const struct link_map *l, unsigned kind)
{
	static const uint64_t helper[3] = { 1, 2, 3 };
	const struct hook *h = hook_of(l, kind);
	uint8_t *at = room + kind * HOOK_BOARD_MAX;
	long size;

	cr_assert(h && !h->why, "%s", names[kind]);
	size = hook_emit(h, l->l_addr + h->at, (uint64_t)at, helper, at, HOOK_BOARD_MAX);
	cr_assert_gt(size, 0, "%s: %ld", names[kind], size);
	cr_expect_eq(memcmp(at + HOOK_ORIGINAL + HOOK_RELOCK, helper, sizeof(helper)), 0);
	return (any_function *)at;
}

static struct link_map *libc_map;

static int run(unsigned kind, void *a, void *b, void *c, void *d)
{
	int result;

	gate_kind = 0;
	result = board_of(libc_map, kind)(a, b, c, d);
	cr_expect_eq(gate_kind, kind, "%s: not through the gate", names[kind]);
	return result;
}

#define RUN1(kind, a)		run(LOCK_##kind, a, NULL, NULL, NULL)
#define RUN2(kind, a, b)	run(LOCK_##kind, a, b, NULL, NULL)
#define RUN3(kind, a, b, c)	run(LOCK_##kind, a, (void *)(long)(b), c, NULL)

static struct timespec past = { 0, 0 };

static void boards_begin(void)
{
	libc_map = library_plan("libc.so.6");
	room_make(libc_map);
}

TestSuite(hook_board, .init = boards_begin);

Test(hook_board, mutex)
{
	pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;

	cr_expect_eq(RUN1(MUTEX_LOCK, &m), 0);
	cr_expect_eq(pthread_mutex_trylock(&m), EBUSY);
	cr_expect_eq(RUN1(MUTEX_TRYLOCK, &m), EBUSY);
	cr_expect_eq(RUN2(MUTEX_TIMEDLOCK, &m, &past), ETIMEDOUT);
	cr_expect_eq(RUN3(MUTEX_CLOCKLOCK, &m, CLOCK_MONOTONIC, &past), ETIMEDOUT);
	cr_expect_eq(RUN3(MUTEX_CLOCKLOCK, &m, 77, &past), EINVAL);
	cr_expect_eq(pthread_mutex_unlock(&m), 0);
	cr_expect_eq(RUN1(MUTEX_TRYLOCK, &m), 0);
	cr_expect_eq(pthread_mutex_unlock(&m), 0);
}

Test(hook_board, rwlock)
{
	pthread_rwlock_t l = PTHREAD_RWLOCK_INITIALIZER;

	cr_expect_eq(RUN1(RWLOCK_RDLOCK, &l), 0);
	cr_expect_eq(RUN1(RWLOCK_TRYRDLOCK, &l), 0);
	cr_expect_eq(RUN2(RWLOCK_TIMEDRDLOCK, &l, &past), 0);
	cr_expect_eq(RUN3(RWLOCK_CLOCKRDLOCK, &l, CLOCK_REALTIME, &past), 0);
	cr_expect_eq(RUN1(RWLOCK_TRYWRLOCK, &l), EBUSY);
	for (int i = 0; i < 4; i++)
		cr_expect_eq(pthread_rwlock_unlock(&l), 0);
	cr_expect_eq(RUN1(RWLOCK_WRLOCK, &l), 0);
	cr_expect_eq(RUN1(RWLOCK_TRYRDLOCK, &l), EBUSY);
	cr_expect_eq(RUN2(RWLOCK_TIMEDWRLOCK, &l, &past), EDEADLK);
	cr_expect_eq(RUN3(RWLOCK_CLOCKWRLOCK, &l, CLOCK_REALTIME, &past), EDEADLK);
	cr_expect_eq(pthread_rwlock_unlock(&l), 0);
}

Test(hook_board, spin)
{
	pthread_spinlock_t l;

	pthread_spin_init(&l, 0);
	cr_expect_eq(RUN1(SPIN_LOCK, (void *)&l), 0);
	cr_expect_eq(RUN1(SPIN_TRYLOCK, (void *)&l), EBUSY);
	cr_expect_eq(pthread_spin_unlock(&l), 0);
	cr_expect_eq(RUN1(SPIN_TRYLOCK, (void *)&l), 0);
}

Test(hook_board, semaphore)
{
	sem_t s;

	sem_init(&s, 0, 4);
	cr_expect_eq(RUN1(SEM_WAIT, &s), 0);
	cr_expect_eq(RUN1(SEM_TRYWAIT, &s), 0);
	cr_expect_eq(RUN2(SEM_TIMEDWAIT, &s, &past), 0);
	cr_expect_eq(RUN3(SEM_CLOCKWAIT, &s, CLOCK_MONOTONIC, &past), 0);
	cr_expect_eq(RUN1(SEM_TRYWAIT, &s), -1);
	cr_expect_eq(errno, EAGAIN);
	cr_expect_eq(RUN2(SEM_TIMEDWAIT, &s, &past), -1);
	cr_expect_eq(errno, ETIMEDOUT);
}

Test(hook_board, wait)
{
	pthread_cond_t c = PTHREAD_COND_INITIALIZER;
	pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
	pthread_barrier_t b;

	pthread_mutex_lock(&m);
	cr_expect_eq(run(LOCK_COND_TIMEDWAIT, &c, &m, &past, NULL), ETIMEDOUT);
	cr_expect_eq(run(LOCK_COND_CLOCKWAIT, &c, &m, (void *)CLOCK_MONOTONIC, &past), ETIMEDOUT);
	board_of(libc_map, LOCK_COND_WAIT);
	pthread_barrier_init(&b, NULL, 1);
	cr_expect_eq(RUN1(BARRIER_WAIT, &b), PTHREAD_BARRIER_SERIAL_THREAD);
}

static int ran;

static void run_once(void)
{
	ran++;
}

Test(hook_board, once)
{
	pthread_once_t once = PTHREAD_ONCE_INIT;

	cr_expect_eq(RUN2(ONCE, &once, run_once), 0);
	cr_expect_eq(RUN2(ONCE, &once, run_once), 0);
	cr_expect_eq(ran, 1);
}

/* --- shapes ---------------------------------------------------------------------------------- */

/* A library whose pthread_mutex_lock is this code; the plan's only hook. */
static const struct hook *shape(const char *code)
{
	char name[] = "/tmp/hook-XXXXXX.s", command[256];
	int fd = mkstemps(name, 2);
	FILE *f = fdopen(fd, "w");

	fprintf(f, ".text\n.globl pthread_create, pthread_mutex_unlock, pthread_mutex_lock\n"
		   ".type pthread_create, @function\npthread_create: ret\n"
		   ".type pthread_mutex_unlock, @function\npthread_mutex_unlock: ret\n"
		   ".balign 16\n.type pthread_mutex_lock, @function\n"
		   "pthread_mutex_lock:\n.cfi_startproc\n%s\n.cfi_endproc\n"
		   ".size pthread_mutex_lock, . - pthread_mutex_lock\n", code);
	fclose(f);
	snprintf(command, sizeof(command),
		 "gcc -shared -nostdlib -Wl,--eh-frame-hdr -z noexecstack -o %s.so %s", name, name);
	cr_assert_eq(system(command), 0);
	unlink(name);
	snprintf(command, sizeof(command), "%s.so", name);
	fd = open(command, O_RDONLY);
	unlink(command);
	cr_assert_eq(hook_plan_file(fd, HOOKS_DYNAMIC, &plan), 0);
	close(fd);
	cr_assert_eq(plan.n, 1);
	return &plan.hook[0];
}

Test(hook_shape, plain)
{
	const struct hook *h = shape("push %rbx; mov %rdi,%rbx; mov (%rdi),%eax; ret");

	cr_expect(!h->why);
	cr_expect_eq(h->len, 6);
	cr_expect_eq(h->at, h->vaddr);
}

Test(hook_shape, behind_endbr64)
{
	const struct hook *h = shape("endbr64; mov (%rdi),%eax; mov %eax,%edx; nop; ret");

	cr_expect(!h->why);
	cr_expect_eq(h->at, h->vaddr + 4);
	cr_expect_eq(h->len, 5);
}

Test(hook_shape, too_short)
{
	cr_expect(shape("xor %eax,%eax; ret; nop; nop; nop")->why);
	cr_expect(shape("ret")->why);
}

Test(hook_shape, cannot_be_moved)
{
	cr_expect(shape("call *%rax; nop; nop; nop; ret")->why);
	cr_expect(shape("syscall; nop; nop; nop; ret")->why);
}

Test(hook_shape, comes_back)
{
	const struct hook *h = shape("1: lock decl (%rdi); jne 1b; xor %eax,%eax; ret");

	cr_expect(!h->why);
	cr_expect(h->whole);
	/* Too long to be copied. */
	h = shape("1: lock decl (%rdi); jne 1b; .skip 80,0x90; ret");
	cr_expect(h->why);
}

Test(hook_shape, comes_back_behind)
{
	const struct hook *h = shape("mov (%rdi),%eax; 1: mov %eax,%edx; test %edx,%edx; jne 1b;"
				     "ret; .byte 0x66,0x0f,0x1f,0x44,0,0; mov x(%rip),%eax; ret; x:");

	cr_expect(!h->why, "%s", h->why);
	cr_expect(h->pad);
	cr_expect_eq(h->len, 2);
}

Test(hook_shape, branches_at_the_start)
{
	static const uint64_t helper[3];
	const struct hook *h = shape("cmp $1,%esi; ja 1f; xor %eax,%eax; ret; 1: mov $22,%eax; ret");
	uint8_t board[HOOK_BOARD_MAX];
	long size = hook_emit(h, 0x10000000, 0x10100000, helper, board, sizeof(board));

	cr_expect(!h->why);
	/* cmp, a long ja, a jump back. */
	cr_expect_eq(size, HOOK_ORIGINAL + 3 + 6 + 5);
	cr_expect_eq(board[HOOK_ORIGINAL + 4], 0x87);
	cr_expect_eq(hook_emit(h, 0x10000000, 0x910000000, helper, board, sizeof(board)), -ERANGE);
	cr_expect_eq(hook_emit(h, 0x10000000, 0x10100000, helper, board, 50), -ENOSPC);
}
