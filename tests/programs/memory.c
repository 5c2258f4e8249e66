/*
 * The address space is the program's: brk grows and shrinks, fixed mappings
 * land where asked, growing stacks grow, moves keep contents, and what the
 * program did not map it does not find in the way at the usual places.
 */
#include <sys/resource.h>
#include <pthread.h>
#include "check.h"

#define MB (1ul << 20)
#define RW (PROT_READ | PROT_WRITE)
#define ANON (MAP_PRIVATE | MAP_ANONYMOUS)

static void grow_brk(void)
{
	char *start = sbrk(0);

	CHECK_EQ(raw3(SYS_brk, 0, 0, 0), start);
	for (int i = 1; i <= 64; i++) {
		char *old = sbrk(MB);
		CHECK(old == start + (i - 1) * MB);
		memset(old, i, MB);
	}
	CHECK(start[MB * 63] == 64 && start[0] == 1);
	CHECK_EQ(brk(start), 0);
	CHECK(sbrk(0) == start);
	CHECK(sbrk(4096) == start && start[0] == 0);
	CHECK_EQ(brk(start), 0);
}

static void fixed(void)
{
	static const uintptr_t at[] = {
		0x10000, 0x400000000, 0x7fff8000, 0x100000000000, 0x200000000000,
		0x600000000000, 0x7e0000000000 };

	for (size_t i = 0; i < COUNT(at); i++) {
		char *want = (char *)at[i];
		char *p = mmap(want, MB, RW, ANON | MAP_FIXED_NOREPLACE, -1, 0);
		CHECK(p == want);
		memset(p, 7, MB);
		CHECK(mmap(want, 4096, RW, ANON | MAP_FIXED_NOREPLACE, -1, 0) ==
		      MAP_FAILED && errno == EEXIST);
		CHECK(mmap(want, 4096, RW, ANON | MAP_FIXED, -1, 0) == want);
		CHECK(p[0] == 0 && p[4096] == 7);
		CHECK_EQ(munmap(p, MB), 0);
	}
}

static void moved(void)
{
	char *p = mmap(NULL, MB, RW, ANON, -1, 0);

	memset(p, 3, MB);
	for (int i = 1; i < 50; i++) {
		p = mremap(p, i * MB, (i + 1) * MB, MREMAP_MAYMOVE);
		CHECK(p != MAP_FAILED);
		CHECK(p[0] == 3 && p[i * MB] == 0);
		memset(p + i * MB, 3, MB);
	}
	CHECK_EQ(munmap(p, 50 * MB), 0);
}

static void grows_down(void)
{
	char *p = mmap(NULL, 16 * MB, PROT_NONE, ANON, -1, 0);

	CHECK_EQ(munmap(p, 16 * MB), 0);
	char *top = mmap(p + 15 * MB, 4096, RW, ANON | MAP_FIXED | MAP_GROWSDOWN,
			 -1, 0);
	CHECK(top != MAP_FAILED);
	for (char *at = top; at > top - MB; at -= 4096)
		*at = 1;
	CHECK_EQ(munmap(top - MB, MB + 4096), 0);
}

static void deep_stack(int depth)
{
	volatile char page[4096];

	page[0] = depth;
	if (depth)
		deep_stack(depth - 1);
	CHECK_EQ(raw0(SYS_getpid), getpid());
	CHECK_EQ(page[0], (char)depth);
}

/* Everything that is free is really free: a server may take 40 TiB of it. */
static void huge_reservation(void)
{
	size_t size = 40ull << 40;
	char *p = mmap(NULL, size, PROT_NONE, ANON | MAP_NORESERVE, -1, 0);

	CHECK(p != MAP_FAILED);
	CHECK_EQ(munmap(p, size), 0);
}

static void *churn(void *arg)
{
	for (int i = 0; i < 500; i++) {
		char *p = mmap(NULL, 64 * 1024, RW, ANON, -1, 0);
		CHECK(p != MAP_FAILED);
		p[i] = 1;
		CHECK_EQ(mprotect(p, 4096, PROT_READ), 0);
		CHECK_EQ(madvise(p, 65536, MADV_DONTNEED), 0);
		CHECK_EQ(p[i], 0);
		CHECK_EQ(munmap(p, 64 * 1024), 0);
	}
	return NULL;
}

static void from_threads(void)
{
	pthread_t threads[4];

	for (int i = 0; i < 4; i++)
		CHECK_EQ(pthread_create(&threads[i], NULL, churn, NULL), 0);
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
}

static void errors(void)
{
	CHECK_EQ(raw3(SYS_munmap, 1, 4096, 0), -EINVAL);
	CHECK_EQ(raw3(SYS_mprotect, 0x10000, 4096, PROT_READ), -ENOMEM);
	CHECK_EQ(raw3(SYS_mprotect, 0x10000, 4096, 0x7f00), -EINVAL);
	CHECK_EQ(raw6(SYS_mmap, 0, 0, RW, ANON, -1, 0), -EINVAL);
	CHECK_EQ(raw6(SYS_mmap, 0, 4096, RW, MAP_PRIVATE, -1, 0), -EBADF);
	CHECK_EQ(raw6(SYS_mmap, 0, 4096, PROT_EXEC, MAP_PRIVATE, 99, 0), -EBADF);
	CHECK_EQ(raw6(SYS_mmap, 0, 1ul << 60, RW | PROT_EXEC, ANON, -1, 0),
		 -ENOMEM);
}

static void limited(void)
{
	struct rlimit limit = { 512 * MB, 512 * MB };

	CHECK_EQ(setrlimit(RLIMIT_AS, &limit), 0);
	CHECK(mmap(NULL, 600 * MB, RW, ANON, -1, 0) == MAP_FAILED);
	CHECK_EQ(errno, ENOMEM);
	CHECK_EQ(raw0(SYS_getpid), getpid());
	pid_t pid = fork();
	if (!pid)
		_exit(3);
	CHECK_EQ(status_of(pid), EXITED(3));
}

int main(void)
{
	grow_brk();
	fixed();
	moved();
	grows_down();
	deep_stack(1000);
	huge_reservation();
	from_threads();
	errors();
	IN_CHILD(limited);
	return passed("memory");
}
