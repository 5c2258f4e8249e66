/* Memory of our own, and bytes of anybody's. */
#include <asm/unistd.h>
#include <linux/errno.h>
#include <linux/mman.h>

#include "engine/core/must.h"
#include "engine/core/pairs.h"
#include "engine/inside/gate/gate.h"
#include "engine/inside/gate/memory.h"
#include "engine/inside/gate/thread.h"

struct boot boot;

void bytes_copy(void *to, const void *from, size_t len)
{
	__asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(len) : : "memory");
}

void bytes_zero(void *to, size_t len)
{
	__asm__ volatile("rep stosb" : "+D"(to), "+c"(len) : "a"(0) : "memory");
}

/*
 * Memory of our own, out of the way: what the program maps must come to lie where it
 * does in its twins, which may need other memory of ours, at other times.
 */
void own_range(uint64_t *from, uint64_t *to)
{
	*to = (boot.text - OWN_BELOW) & ~0xfffull;
	*from = *to - OWN_SPAN;
}

uint64_t own_taken;		/* so much of it has been, from its end down */

static long map(uint64_t len, int how)
{
	uint64_t at = boot.text - OWN_BELOW;

	MUST(len && boot.text > OWN_BELOW);
	len = (len + 0xfff) & ~0xfffull;
	at = (at & ~0xfffull) - __atomic_add_fetch(&own_taken, len, __ATOMIC_RELAXED);
	return OWN6(__NR_mmap, at, len, PROT_READ | PROT_WRITE,
		    how | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
}

long own_map(uint64_t len)
{
	return map(len, MAP_PRIVATE);
}

long own_share(uint64_t len)
{
	return map(len, MAP_SHARED);
}

void pages_own(const void *from, uint64_t len)
{
	uint64_t start = (uint64_t)from & ~0xfffull, end = (uint64_t)from + len;

	MUST(len);
	OWN3(__NR_madvise, start, (end - start + 0xfff) & ~0xfffull, MADV_POPULATE_WRITE);
}

LEADS static const void *also[LEADS_ALSO];

void leads_also(const void *page)
{
	uint32_t i = 0;

	while (i < LEADS_ALSO && also[i])
		i++;
	MUST(page && i < LEADS_ALSO);
	also[i] = page;
}

void leads_own(void)
{
	extern char leads_start[], leads_end[];

	pages_own(leads_start, (uint64_t)(leads_end - leads_start));
	for (uint32_t i = 0; i < LEADS_ALSO && also[i]; i++)
		pages_own(also[i], 1);
}

/* The compiler may call these two for structures; nobody else (poison.h). */
void *compilers_copy(void *restrict to, const void *restrict from, size_t len) __asm__("memcpy");
void *compilers_set(void *to, int byte, size_t len) __asm__("memset");

void *compilers_copy(void *restrict to, const void *restrict from, size_t len)
{
	bytes_copy(to, from, len);
	return to;
}

void *compilers_set(void *to, int byte, size_t len)
{
	void *at = to;

	__asm__ volatile("rep stosb" : "+D"(at), "+c"(len) : "a"(byte) : "memory");
	return to;
}

/* --- tables that grow --------------------------------------------------------------------- */

void *table_page(void **page, uint64_t size)
{
	void *have = table_had(page);
	long made;

	MUST(size);

	if (have)
		return have;
	made = own_map(size);
	if (made < 0)
		return NULL;
	if (BOTH_IF(table_page, page, &have, (void *)made))
		return (void *)made;
	OWN2(__NR_munmap, made, size);		/* another thread was first */
	return have;
}

void *rows_more(struct rows *r)
{
	uint32_t n = __atomic_load_n(&r->used, __ATOMIC_RELAXED);

	MUST(r->size);
	do
		if (n >> r->page_shift >= ROWS_PAGES ||
		    !table_page(&r->page[n >> r->page_shift], (uint64_t)r->size << r->page_shift))
			return NULL;
	while (!__atomic_compare_exchange_n(&r->used, &n, n + 1, false, __ATOMIC_RELAXED,
					    __ATOMIC_RELAXED));
	return rows_at(r, n);
}

void rows_ready(struct rows *r)
{
	MUST(r->size);
	table_page(&r->page[0], (uint64_t)r->size << r->page_shift);
}

void rows_clear(struct rows *r)
{
	uint32_t used = r->used ? ((r->used - 1) >> r->page_shift) + 1 : 0;

	MUST(used <= ROWS_PAGES);

	/* Where there are none nothing is written: a child's memory is its parent's till then. */
	for (uint32_t i = 0; i < used; i++)
		bytes_zero(r->page[i], (uint64_t)r->size << r->page_shift);
	if (used)
		r->used = 0;
}

/* By the thread: the process has no memory by its own id when its first one has ended. */
long code_read(void *to, uint64_t from, size_t len)
{
	struct { uint64_t base, len; } here = { (uint64_t)to, len }, there = { from, len };
	long n = OWN6(__NR_process_vm_readv, thread_self()->tid, &here, 1, &there, 1, 0);

	return n == (long)len ? 0 : -EFAULT;
}
