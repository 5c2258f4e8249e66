/* Memory of our own, and bytes of anybody's; the program's memory is host.h's. */
#ifndef MVE_INSIDE_MEMORY_H
#define MVE_INSIDE_MEMORY_H

#include "engine/core/host.h"
#include "engine/core/inline.h"
#include "engine/core/must.h"
#include "engine/core/pairs.h"
#include "engine/inside/gate/thread.h"

/* Where all that own_map() gives lies, up to as much as nobody needs. */
void own_range(uint64_t *from, uint64_t *to);
extern uint64_t own_taken;	/* the monitor reads it: outside/attach/detach.c */
/* Zeroed memory of our own; an address or a negative errno. */
long own_map(uint64_t len);
/* The same, shared with children. */
long own_share(uint64_t len);
/*
 * Of what is written when a process comes to lead, while clients wait.  An image has all pages in
 * common with its process, and of each that is written the kernel makes a copy.
 */
#define LEADS	__attribute__((section(".bss.leads")))
/* The pages are there, and this process's alone. */
void pages_own(const void *from, uint64_t len);
/* Of what cannot stand there: the page that is written then. */
#define LEADS_ALSO	4
void leads_also(const void *page);
void leads_own(void);
void bytes_copy(void *to, const void *from, size_t len);
void bytes_zero(void *to, size_t len);

/* A piece of a table that grows: mapped when first asked for; NULL: there is no memory. */
void *table_page(void **page, uint64_t size);
/* NULL: it is not there yet. */
static inline void *table_had(void **page)
{
	/* The kernel has filled it with zeros. */
	return CONSUME(table_page, page);
}

/* Rows of one kind that grow in number, and never move: each is found by its own. */
#define ROWS_PAGES	256
/* `most`: a power of two. */
#define ROWS_OF(type, most)	{ .size = sizeof(type), \
				  .page_shift = __builtin_ctz((most) / ROWS_PAGES) }

struct rows {
	uint32_t size, page_shift;	/* of a row; a page has so many rows, as a power of two */
	uint32_t used;			/* numbers ever taken */
	void *page[ROWS_PAGES];
};

static inline void *rows_at(const struct rows *r, uint32_t n)
{
	MUST(n >> r->page_shift < ROWS_PAGES);
	return (uint8_t *)r->page[n >> r->page_shift] +
	       (uint64_t)(n & ((1u << r->page_shift) - 1)) * r->size;
}

/* The next number's row, in which anything may stand; NULL: there is no room. */
void *rows_more(struct rows *r);
/* There is room for the first: nobody waits for that. */
void rows_ready(struct rows *r);
/* None has ever been used, and all are zeros. */
void rows_clear(struct rows *r);

/*
 * target_in() where few registers change, and the compiler knows which: what a call is told by
 * need keep nothing from it.  Where the copy ends; NULL: a side was bad.
 */
static INLINE uint8_t *target_copy(uint8_t *to, uint64_t from, size_t len)
{
	/* With a result it is volatile only if it says so. */
	if (__builtin_constant_p(len) && len == 16)
		__asm__ volatile goto("call target_16\n\tjc %l[bad]"
				      : "+D"(to)
				      : "S"(from) : "rax", "rdx", "memory", "cc" : bad);
	else
		__asm__ volatile goto("call target_bytes\n\tjc %l[bad]"
				      : "+D"(to), "+S"(from), "+c"(len)
				      : : "rax", "rdx", "r9", "memory", "cc" : bad);
	if (!to)
		__builtin_unreachable();
	return to;
bad:
	return NULL;
}
#define RECORD_COPY target_copy

#endif
