/*
 * System calls from code that no file holds: written at run time into
 * writable and executable memory, made executable afterwards, copied, seen
 * through two mappings of a memfd, across a page boundary, and at addresses
 * where other code was before (whoever remembers sites must forget them).
 */
#include "check.h"

#define PAGE 4096
#define RW (PROT_READ | PROT_WRITE)
#define RX (PROT_READ | PROT_EXEC)
#define RWX (RW | PROT_EXEC)

typedef long code_fn(void);

/* mov $nr, %eax; syscall; ret */
static code_fn *emit(uint8_t *at, uint32_t nr)
{
	at[0] = 0xb8;
	memcpy(at + 1, &nr, 4);
	memcpy(at + 5, "\x0f\x05\xc3", 3);
	return (code_fn *)at;
}

static uint8_t *pages(size_t count, int prot)
{
	void *p = mmap(NULL, count * PAGE, prot, MAP_PRIVATE | MAP_ANONYMOUS,
		       -1, 0);

	CHECK(p != MAP_FAILED);
	return p;
}

static void written_in_place(void)
{
	uint8_t *p = pages(1, RWX);

	for (int i = 0; i < 200; i++) {
		CHECK_EQ(emit(p + i % 100, SYS_getpid)(), getpid());
		CHECK_EQ(emit(p + i % 100, SYS_gettid)(), gettid());
		CHECK_EQ(emit(p + i % 100, 9999)(), -ENOSYS);
	}
	munmap(p, PAGE);
}

static void only_number_rewritten(void)
{
	uint8_t *p = pages(1, RWX);
	code_fn *fn = emit(p, SYS_getpid);

	for (int i = 0; i < 100; i++)
		CHECK_EQ(fn(), getpid());
	p[1] = SYS_getppid;
	for (int i = 0; i < 100; i++)
		CHECK_EQ(fn(), getppid());
	munmap(p, PAGE);
}

static void protected_later(void)
{
	for (int i = 0; i < 200; i++) {
		uint8_t *p = pages(1, RW);
		code_fn *fn = emit(p + i, i & 1 ? SYS_getpid : SYS_getppid);
		CHECK_EQ(mprotect(p, PAGE, RX), 0);
		for (int j = 0; j < 10; j++)
			CHECK_EQ(fn(), i & 1 ? getpid() : getppid());
		munmap(p, PAGE);
	}
}

static void back_and_forth(void)
{
	uint8_t *p = pages(1, RW);

	for (int i = 0; i < 200; i++) {
		bool odd = i & 1;
		code_fn *fn = emit(p + 8, odd ? SYS_getpid : SYS_getppid);
		CHECK_EQ(mprotect(p, PAGE, RX), 0);
		CHECK_EQ(fn(), odd ? getpid() : getppid());
		CHECK_EQ(fn(), odd ? getpid() : getppid());
		CHECK_EQ(mprotect(p, PAGE, RW), 0);
	}
	munmap(p, PAGE);
}

/* The same address, other code: first a call, then none at all. */
static void replaced(void)
{
	uint8_t *p = pages(1, RWX);

	for (int i = 0; i < 100; i++) {
		CHECK(mmap(p, PAGE, RWX, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED,
			   -1, 0) == p);
		CHECK_EQ(p[0], 0);
		CHECK_EQ(emit(p, SYS_getpid)(), getpid());
		CHECK_EQ(emit(p, SYS_getpid)(), getpid());
		memcpy(p, "\xb8\x07\x00\x00\x00\x90\x90\xc3", 8);
		CHECK_EQ(((code_fn *)p)(), 7);
	}
	munmap(p, PAGE);
}

static void across_pages(void)
{
	uint8_t *p = pages(2, RWX);

	for (int at = PAGE - 8; at <= PAGE; at++)
		for (int i = 0; i < 20; i++)
			CHECK_EQ(emit(p + at, SYS_getpid)(), getpid());
	CHECK_EQ(mprotect(p, 2 * PAGE, RX), 0);
	CHECK_EQ(((code_fn *)(p + PAGE))(), getpid());
	munmap(p, 2 * PAGE);
}

/* The last bytes of the last page before nothing. */
static void at_the_end(void)
{
	uint8_t *p = pages(2, RWX);

	munmap(p + PAGE, PAGE);
	for (int i = 0; i < 20; i++)
		CHECK_EQ(emit(p + PAGE - 8, SYS_getpid)(), getpid());
	munmap(p, PAGE);
}

static void mapped_twice(void)
{
	int fd = memfd_create("jit", 0);

	CHECK_EQ(ftruncate(fd, PAGE), 0);
	uint8_t *rw = mmap(NULL, PAGE, RW, MAP_SHARED, fd, 0);
	uint8_t *rx = mmap(NULL, PAGE, RX, MAP_SHARED, fd, 0);
	CHECK(rw != MAP_FAILED && rx != MAP_FAILED);
	for (int i = 0; i < 200; i++) {
		bool odd = i & 1;
		emit(rw + i, odd ? SYS_getpid : SYS_getppid);
		CHECK_EQ(((code_fn *)(rx + i))(), odd ? getpid() : getppid());
		emit(rw + i, odd ? SYS_getppid : SYS_getpid);
		CHECK_EQ(((code_fn *)(rx + i))(), odd ? getppid() : getpid());
	}
	/* The file holds what was written, and nothing else. */
	CHECK(!memcmp(rw + 199, rx + 199, 8));
	uint8_t file[8];
	CHECK_EQ(pread(fd, file, 8, 199), 8);
	CHECK(!memcmp(file, rw + 199, 8));
	munmap(rw, PAGE);
	munmap(rx, PAGE);
	close(fd);
}

__attribute__((noinline, noclone, aligned(64))) static long template_fn(void)
{
	long ret;

	asm volatile("mov $39, %%eax\n\tsyscall" : "=a"(ret) : : "rcx", "r11");
	return ret;
}

static void copied(void)
{
	CHECK_EQ(template_fn(), getpid());
	for (int i = 0; i < 50; i++) {
		uint8_t *p = pages(1, RW);
		memcpy(p, template_fn, 64);
		CHECK_EQ(mprotect(p, PAGE, RX), 0);
		CHECK_EQ(((code_fn *)p)(), getpid());
		munmap(p, PAGE);
	}
}

static void moved(void)
{
	uint8_t *p = pages(1, RW), *q = pages(2, PROT_NONE);

	emit(p, SYS_getpid);
	CHECK_EQ(mprotect(p, PAGE, RX), 0);
	CHECK_EQ(((code_fn *)p)(), getpid());
	CHECK(mremap(p, PAGE, PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, q) == q);
	for (int i = 0; i < 10; i++)
		CHECK_EQ(((code_fn *)q)(), getpid());
	munmap(q, 2 * PAGE);
}

/* A file whose text is mapped privately, as a dynamic loader does it. */
static void from_a_file(void)
{
	uint8_t page[PAGE] = "";
	int fd = open("code", O_RDWR | O_CREAT | O_TRUNC, 0600);

	emit(page + 16, SYS_getpid);
	CHECK_EQ(write(fd, page, PAGE), PAGE);
	for (int i = 0; i < 50; i++) {
		uint8_t *p = mmap(NULL, PAGE, RX, MAP_PRIVATE, fd, 0);
		CHECK(p != MAP_FAILED);
		CHECK_EQ(((code_fn *)(p + 16))(), getpid());
		CHECK_EQ(((code_fn *)(p + 16))(), getpid());
		munmap(p, PAGE);
	}
	uint8_t again[PAGE];
	CHECK_EQ(pread(fd, again, PAGE, 0), PAGE);
	CHECK(!memcmp(page, again, PAGE));
	close(fd);
	unlink("code");
}

int main(void)
{
	written_in_place();
	only_number_rewritten();
	protected_later();
	back_and_forth();
	replaced();
	across_pages();
	at_the_end();
	mapped_twice();
	copied();
	moved();
	from_a_file();
	return passed("jit");
}
