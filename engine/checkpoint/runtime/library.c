/*
 * Which calls of the program go to libraries (library.h).  Before the program begins each address
 * in its tables that leads out of it, to a function without a row ONLY, is made a thunk's.
 *
 * A thunk is written once, by whoever takes the number; who finds a pointer meanwhile takes one of
 * its own.
 */
#include <elf.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include "engine/checkpoint/runtime/heap.h"
#include "engine/checkpoint/runtime/kernel.h"
#include "engine/checkpoint/runtime/library.h"
#include "engine/checkpoint/runtime/stacks.h"
#include "engine/checkpoint/ways/pages.h"
#include "engine/core/pairs.h"

#define PAGE	4096ul
#define FINDS	(2 * LIBRARY_FUNCTIONS)		/* a power of two */
#define FINDS_NEAR	(FINDS / 8)
#define NEAR_TRIES	16

__thread struct library_calls library_calls = { .call = { { ~0ul, 0 } } };
uintptr_t library_targets[LIBRARY_FUNCTIONS] __attribute__((visibility("hidden")));
uintptr_t mve_checkpoint_text[2];

extern const char library_thunks[] __attribute__((visibility("hidden")));
extern const Elf64_Ehdr __ehdr_start __attribute__((visibility("hidden")));
extern const Elf64_Dyn _DYNAMIC[] __attribute__((visibility("hidden")));

static uint32_t finds[FINDS];	/* by a function's address: the number of its thunk, and 1 */
static uint32_t thunks;
static int looking;

static const char *const only[] = {
#define WRITES(name, argument, length)
#define NONE(name)
#define WAITS(name)
#define RENAME(name, own)
#define ONLY(name)	#name,
#include "engine/checkpoint/pass/known.def"
};

/* --- thunks ------------------------------------------------------------------------------ */

SAVES void library_strange(void)
{
	state->strange = 1;
}

/* Of a thread that has just begun nothing is known, and nothing calls the program. */
SAVES void library_foreign(void)
{
	if (own_stack.room)
		library_strange();
}

static void *thunk_at(uint32_t n)
{
	return (void *)(library_thunks + (size_t)n * LIBRARY_THUNK);
}

static uint32_t thunk_make(uintptr_t function)
{
	uint32_t n = __atomic_fetch_add(&thunks, 1, __ATOMIC_RELAXED);

	if (n < LIBRARY_FUNCTIONS)
		library_targets[n] = function;
	return n;
}

/* Where it is looked for: first near the beginning, for most programs call few, and what is not
 * used of a table is in no page of a process'. */
static uint32_t find_place(uintptr_t function, unsigned tries)
{
	uint32_t first = (uint32_t)((function >> 4) * 0x9E3779B1u);

	return (first + tries) % (tries < NEAR_TRIES ? FINDS_NEAR : FINDS);
}

/* A function's thunk, or, if there are no more, the function. */
static void *thunk_of(uintptr_t function)
{
	uint32_t at, n, none;

	for (unsigned tries = 0; tries < FINDS + NEAR_TRIES; tries++) {
		at = find_place(function, tries);
		n = CONSUME(library_find, &finds[at]);
		if (n && library_targets[n - 1] == function)
			return thunk_at(n - 1);
		if (n)
			continue;
		n = thunk_make(function);
		if (n >= LIBRARY_FUNCTIONS)
			break;
		none = 0;
		PUBLISH_IF(library_find, &finds[at], &none, n + 1);
		return thunk_at(n);
	}
	library_strange();
	return (void *)function;
}

static int is_program(uintptr_t at)
{
	return at - mve_checkpoint_text[0] < mve_checkpoint_text[1];
}

__attribute__((preserve_most)) void *mve_checkpoint_callee(void *function)
{
	return mve_checkpoint_text[1] ? thunk_of((uintptr_t)function) : function;
}

/* --- the program's tables ---------------------------------------------------------------- */

struct tables {
	uintptr_t base, sealed, sealed_end;	/* what is read-only by now */
	const Elf64_Sym *symbols;
	const char *names;
	int written;	/* code, or what is read-only */
	const Elf64_Rela *rela[2];
	size_t size[2];
};

static void segments_read(struct tables *t)
{
	const Elf64_Phdr *p = (const void *)(t->base + __ehdr_start.e_phoff);
	uintptr_t begin = ~0ul, end = 0;

	for (int n = 0; n < __ehdr_start.e_phnum; n++, p++) {
		if (p->p_type == PT_GNU_RELRO) {
			t->sealed = (t->base + p->p_vaddr) & -PAGE;
			t->sealed_end = (t->base + p->p_vaddr + p->p_memsz) & -PAGE;
		}
		if (p->p_type != PT_LOAD || !(p->p_flags & PF_X))
			continue;
		if (t->base + p->p_vaddr < begin)
			begin = t->base + p->p_vaddr;
		if (t->base + p->p_vaddr + p->p_memsz > end)
			end = t->base + p->p_vaddr + p->p_memsz;
	}
	MUST(begin < end);
	mve_checkpoint_text[0] = begin;
	mve_checkpoint_text[1] = end - begin;
}

/* libc has made some of these addresses what they are here, and others not. */
static const void *place(const struct tables *t, uintptr_t at)
{
	return (const void *)(at < t->base ? t->base + at : at);
}

static void dynamic_read(struct tables *t)
{
	for (const Elf64_Dyn *d = _DYNAMIC; d->d_tag != DT_NULL; d++)
		switch (d->d_tag) {
		case DT_SYMTAB:
			t->symbols = place(t, d->d_un.d_ptr);
			break;
		case DT_STRTAB:
			t->names = place(t, d->d_un.d_ptr);
			break;
		case DT_RELA:
			t->rela[0] = place(t, d->d_un.d_ptr);
			break;
		case DT_RELASZ:
			t->size[0] = d->d_un.d_val;
			break;
		case DT_JMPREL:
			t->rela[1] = place(t, d->d_un.d_ptr);
			break;
		case DT_TEXTREL:
			t->written = 1;
			break;
		case DT_FLAGS:
			t->written |= (d->d_un.d_val & DF_TEXTREL) != 0;
			break;
		case DT_PLTRELSZ:
			t->size[1] = d->d_un.d_val;
			break;
		}
}

static int writes_only(const char *name)
{
	for (size_t n = 0; n < sizeof(only) / sizeof(only[0]); n++)
		if (only[n][0] == name[0] && !strcmp(only[n], name))
			return 1;
	return 0;
}

/* A function that is called, or whose address is kept. */
static void address_change(const struct tables *t, const Elf64_Rela *r)
{
	const Elf64_Sym *symbol = &t->symbols[ELF64_R_SYM(r->r_info)];
	uintptr_t *at = (uintptr_t *)(t->base + r->r_offset);
	unsigned type = ELF64_R_TYPE(r->r_info), what = ELF64_ST_TYPE(symbol->st_info);

	if (type != R_X86_64_JUMP_SLOT && type != R_X86_64_GLOB_DAT && type != R_X86_64_64)
		return;
	if (symbol->st_shndx != SHN_UNDEF || what == STT_OBJECT || what == STT_TLS || !*at)
		return;
	if (type != R_X86_64_JUMP_SLOT && what != STT_FUNC && what != STT_GNU_IFUNC)
		library_strange();	/* data, or a function that nobody calls one */
	else if (is_program(*at))
		library_strange();	/* not bound yet: -z lazy */
	else if (!writes_only(t->names + symbol->st_name))
		*at = (uintptr_t)thunk_of(*at);
}

static void addresses_change(const struct tables *t)
{
	for (int n = 0; n < 2; n++)
		for (size_t r = 0; r < t->size[n] / sizeof(Elf64_Rela); r++)
			address_change(t, &t->rela[n][r]);
}

/* Only the beginning reads symbols, relocations, and the rows of entries, so they need not stay in
 * memory.  These are pages of the file, as they were: who wants more of what lies with them finds
 * it there. */
static void tables_leave(const struct tables *t)
{
	const Elf64_Phdr *p = (const void *)(t->base + __ehdr_start.e_phoff);

	for (int n = 0; n < __ehdr_start.e_phnum && !t->written; n++, p++) {
		uintptr_t begin = (t->base + p->p_vaddr) & -PAGE;
		uintptr_t end = (t->base + p->p_vaddr + p->p_filesz + PAGE - 1) & -PAGE;

		if (p->p_type == PT_LOAD && p->p_flags == PF_R)
			KERNEL_3(SYS_madvise, begin, end - begin, MADV_DONTNEED);
	}
}

/* First of all: no pointer has been copied yet. */
__attribute__((constructor(101))) static void library_begin(void)
{
	struct tables t = { .base = (uintptr_t)&__ehdr_start };
	size_t sealed;

	own_first();
	if (!bodies_begin()) {
		mve_checkpoint_text[1] = ~0ul;	/* all of it */
		return;
	}
	libc_keeps();
	segments_read(&t);
	dynamic_read(&t);
	sealed = t.sealed_end - t.sealed;
	if (sealed && KERNEL_3(SYS_mprotect, t.sealed, sealed, PROT_READ | PROT_WRITE)) {
		library_strange();
		return;
	}
	addresses_change(&t);
	if (sealed)
		KERNEL_3(SYS_mprotect, t.sealed, sealed, PROT_READ);
	tables_leave(&t);
}

/* --- calls ------------------------------------------------------------------------------- */

/* One that has returned has mostly had its place on the stack overwritten. */
static int stands(const struct library_calls *calls, uint64_t at)
{
	return *(const uintptr_t *)calls->call[at / 16].at == calls->call[at / 16].to;
}

SAVES void library_full(void)
{
	struct library_calls *calls = &library_calls;
	uint64_t to = 0;

	for (uint64_t at = 16; at <= calls->top; at += 16) {
		if (!stands(calls, at))
			continue;
		to += 16;
		calls->call[to / 16] = calls->call[at / 16];
	}
	if (to == calls->top) {
		library_strange();
		to = 0;
	}
	calls->top = to;
}

static int any_stands(const struct library_calls *calls, uintptr_t above)
{
	for (uint64_t at = calls->top; at; at -= 16)
		if (calls->call[at / 16].at > above && stands(calls, at))
			return 1;
	return 0;
}

int library_stands(uintptr_t sp)
{
	if (any_stands(&library_calls, sp))
		return 1;
	for (int n = 0; n < state->stacks_most; n++) {
		const struct library_calls *calls = state_tables->stack[n].calls;

		if (state_tables->stack[n].begin && calls && calls != &library_calls &&
		    any_stands(calls, 0))
			return 1;
	}
	return 0;
}

/* Whoever comes second waits for the first: it must not write before all is looked at. */
static void enter(uint64_t *mask)
{
	const uint64_t all = ~0ull;

	KERNEL_4(SYS_rt_sigprocmask, SIG_SETMASK, &all, mask, sizeof(all));
	while (CONSUME_BY(library_look, exchange_n, &looking, 1))
		KERNEL_1(SYS_sched_yield, 0);
}

static void leave(const uint64_t *mask)
{
	PUBLISH(library_look, &looking, 0);
	KERNEL_4(SYS_rt_sigprocmask, SIG_SETMASK, mask, NULL, sizeof(*mask));
}

SAVES void library_look(void)
{
	uint64_t mask;
	int error;

	enter(&mask);
	if (state->watch) {
		error = pages_catch_up(state->depth);
		if (error)
			lost(-error, "the memory of libraries is not known");
		state->watch = 0;
	}
	leave(&mask);
}

/* Who held it is not in the child. */
void library_child(void)
{
	looking = 0;
}
