/*
 * Which functions of a file can be hooked, and how.
 *
 * The jump takes the place of a function's first instructions, which go to the
 * board; so nothing may come back to them but from outside, by the entry.  The
 * whole function is decoded for that, and all code of the file is searched for
 * branches.  A short function that loops back to its entry (pthread_spin_lock) is
 * copied whole; in one that loops back to just behind it, a short jump leads to
 * padding near by, which has room for the long one.
 *
 * A library may have several functions of one name, for programs that were linked
 * long ago.  Such an older one that goes on to the newer is left alone: one lock
 * must not be told twice.  So is a libc that only passes on to libpthread (glibc
 * before 2.34: it has no pthread_create).
 */
#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "engine/core/must.h"
#include "engine/outside/patch/hook.h"
#include "engine/outside/plan/plan_parts.h"

#define VERSION_HIDDEN	0x8000	/* not the default version of its name */

_Static_assert(LOCK_KINDS <= UINT8_MAX, "a hook's kind is a byte");

static const struct row {
	const char *function, *undo;
	uint8_t how;
} rows[LOCK_KINDS] = {
#define LOCK(kind, function, undo, deadline, how) \
	[LOCK_##kind] = { #function, #undo, LOCK_BY_##how },
#include "engine/abi/locks.def"
};

/* A table of symbols. */
struct symbols {
	const struct elf_view *v;
	const uint8_t *at, *names, *versions;	/* versions: of dynamic ones, or NULL */
	uint64_t n, names_len;
};

static bool section_of_type(const struct elf_view *v, uint32_t type, struct elf_section *s)
{
	for (unsigned i = 0; elf_section(v, i, s); i++)
		if (s->type == type)
			return true;
	return false;
}

static int symbols_open(struct symbols *y, const struct elf_view *v, uint32_t type)
{
	struct elf_section s, names, versions;

	*y = (struct symbols){ .v = v };
	if (!section_of_type(v, type, &s) || !elf_section(v, s.link, &names))
		return -ENOENT;
	y->at = elf_section_bytes(v, &s);
	y->n = s.len / sizeof(Elf64_Sym);
	y->names = elf_section_bytes(v, &names);
	y->names_len = names.len;
	if (!y->at || !y->names || !names.len || y->names[names.len - 1])
		return -ENOENT;
	if (type == SHT_DYNSYM && section_of_type(v, SHT_GNU_versym, &versions) &&
	    versions.len / 2 >= y->n)
		y->versions = elf_section_bytes(v, &versions);
	return 0;
}

/* Symbol i, when it is a function of this file. */
static const char *symbol(const struct symbols *y, uint64_t i, Elf64_Sym *s, bool *is_default)
{
	uint16_t version = 0;

	memcpy(s, y->at + i * sizeof(*s), sizeof(*s));
	if (ELF64_ST_TYPE(s->st_info) != STT_FUNC || !s->st_shndx || s->st_name >= y->names_len)
		return NULL;
	if (y->versions)
		memcpy(&version, y->versions + i * 2, 2);
	*is_default = !(version & VERSION_HIDDEN);
	return (const char *)y->names + s->st_name;
}

/* The address of the default function of a name, or 0. */
static uint64_t symbol_find(const struct symbols *y, const char *name)
{
	bool is_default;
	Elf64_Sym s;

	for (uint64_t i = 0; i < y->n; i++) {
		const char *found = symbol(y, i, &s, &is_default);

		if (found && is_default && !strcmp(found, name))
			return s.st_value;
	}
	return 0;
}

/* --- one function ------------------------------------------------------------------- */

/* The instructions that are in the way of so many bytes. */
static const char *displace(const struct elf_view *v, struct hook *h, uint64_t least)
{
	static const uint8_t endbr64[] = { 0xf3, 0x0f, 0x1e, 0xfa };
	const uint8_t *p = elf_at(v, h->vaddr, h->size);
	uint64_t skip;
	struct insn i;

	if (!p || h->size < least)
		return "it is too short";
	skip = h->size > sizeof(endbr64) && !memcmp(p, endbr64, sizeof(endbr64)) ? 4 : 0;
	h->at = h->vaddr + skip;
	for (uint64_t n = 0; n < least; n += i.len) {
		if (!insn_decode(p + skip + n, h->size - skip - n, h->at + n, &i))
			return "it is not understood";
		if (!(i.flags & INSN_MOVES) && !(i.flags & INSN_BRANCH))
			return "an instruction at its start cannot be moved";
		if (i.flags & INSN_ENDS && n + i.len < least)
			return "it is too short";
		h->len = (uint8_t)(n + i.len);
	}
	MUST(h->len >= least && h->len <= sizeof(h->bytes) && skip + h->len <= h->size);
	memcpy(h->bytes, p + skip, h->len);
	return NULL;
}

/* What the rest of the function says against it. */
struct look {
	bool into;		/* a branch comes back behind the entry */
	bool entry;		/* or to it */
	bool fixed;		/* something in it must stay where it is */
	bool goes_on;		/* to another function that is hooked */
	bool calls;		/* from its start: slow from a board, for it must come back */
};

static bool is_hooked(const struct hook_plan *p, uint64_t vaddr)
{
	for (unsigned i = 0; i < p->n; i++)
		if (p->hook[i].vaddr == vaddr)
			return true;
	return false;
}

static void look_branch(const struct hook_plan *p, const struct hook *h, const struct insn *i,
			struct look *l)
{
	uint64_t to = i->imm;
	bool outside = to - h->vaddr >= h->size;

	if (to > h->at && to < h->at + h->len)
		l->into = true;
	if ((to == h->vaddr || to == h->at) && !(i->flags & INSN_CALL))
		l->entry = true;
	if (outside && is_hooked(p, to))
		l->goes_on = true;
	if (outside || i->flags & INSN_CALL)
		l->fixed = true;
	if (i->flags & INSN_CALL && i->at < h->at + h->len)
		l->calls = true;
}

static const char *look_through(const struct elf_view *v, const struct hook_plan *p,
				const struct hook *h, struct look *l)
{
	const uint8_t *bytes = elf_at(v, h->vaddr, h->size);
	struct insn i;

	for (uint64_t n = 0; n < h->size; n += i.len) {
		if (!insn_decode(bytes + n, h->size - n, h->vaddr + n, &i))
			return "it is not understood";
		if (i.flags & INSN_BRANCH)
			look_branch(p, h, &i, l);
		if (i.flags & (INSN_RIP | INSN_INDIRECT | INSN_SYSCALL))
			l->fixed = true;
	}
	return NULL;
}

/* All of it goes to the board. */
static bool copied(const struct elf_view *v, struct hook *h, const struct look *l)
{
	uint64_t left = h->vaddr + h->size - h->at;

	if (l->fixed || left > HOOK_BYTES_MAX)
		return false;
	MUST(left && left <= h->size);
	h->whole = true;
	h->len = (uint8_t)left;
	memcpy(h->bytes, elf_at(v, h->at, left), left);
	return true;
}

/* --- padding, for a long jump where only a short one has room ------------------------ */

/* Whether something in the function branches to [from, from + HOOK_JUMP). */
static bool is_target(const struct elf_view *v, const struct hook *h, uint64_t from)
{
	const uint8_t *bytes = elf_at(v, h->vaddr, h->size);
	struct insn i;

	for (uint64_t n = 0; n < h->size; n += i.len) {
		if (!insn_decode(bytes + n, h->size - n, h->vaddr + n, &i))
			return true;
		if (i.flags & INSN_BRANCH && i.imm - from < HOOK_JUMP)
			return true;
	}
	return false;
}

static bool in_short_reach(const struct hook *h, uint64_t target)
{
	int64_t rel = (int64_t)(target - (h->at + HOOK_SHORT));

	return rel == (int8_t)rel;
}

/* The first run of padding in [from, to), which nobody runs into, that can be used. */
static bool pad_in(const struct elf_view *v, struct hook *h, uint64_t from, uint64_t to,
		   bool ended)
{
	const uint8_t *p = elf_at(v, from, to - from);
	uint64_t run = from;
	struct insn i;

	for (uint64_t at = from; p && at < to; at += i.len) {
		if (!insn_decode(p + (at - from), to - at, at, &i))
			return false;
		if (!ended || !(i.flags & INSN_PAD)) {
			ended = i.flags & INSN_ENDS;
			run = at + i.len;
		} else if (at + i.len - run >= HOOK_JUMP && in_short_reach(h, run) &&
			   !is_target(v, h, run)) {
			MUST(run >= from && run + HOOK_JUMP <= to);
			h->pad = run;
			memcpy(h->pad_bytes, p + (run - from), HOOK_JUMP);
			return true;
		}
	}
	return false;
}

/* The same between the function before and this one. */
static bool pad_before(const struct elf_view *v, struct hook *h)
{
	uint64_t low = 0, high = UINT64_MAX;
	struct fde_table fdes;
	struct span span;

	fde_open(&fdes, v);
	return fdes.n && !fde_find(&fdes, h->vaddr - 1, &span, &low, &high) &&
	       h->vaddr - low <= 16 && pad_in(v, h, low, h->vaddr, true);
}

/* Two bytes are displaced, for a short jump to a long one. */
static bool padded(const struct elf_view *v, const struct hook_plan *p, struct hook *h)
{
	struct look l = { 0 };

	return !displace(v, h, HOOK_SHORT) && !look_through(v, p, h, &l) && !l.into &&
	       !l.entry && !l.calls &&
	       (pad_before(v, h) || pad_in(v, h, h->vaddr, h->vaddr + h->size, false));
}

static const char *judge(const struct elf_view *v, const struct hook_plan *p, struct hook *h)
{
	struct look l = { 0 };
	const char *why = displace(v, h, HOOK_JUMP);

	if (!why)
		why = look_through(v, p, h, &l);
	if (why)
		return why;
	if (l.goes_on)
		return "it goes on to another of them";
	if (!l.into && !l.entry && !l.calls)
		return NULL;
	if (copied(v, h, &l) || padded(v, p, h))
		return NULL;
	return l.into || l.entry ? "it comes back to its start" : displace(v, h, HOOK_JUMP);
}

/* --- a file --------------------------------------------------------------------------- */

static int by_address(const void *a, const void *b)
{
	const struct cand *x = a, *y = b;

	return x->vaddr < y->vaddr ? -1 : x->vaddr > y->vaddr;
}

/* Branches from anywhere in the file to behind a jump's first byte. */
static int look_around(const struct elf_view *v, struct hook_plan *p)
{
	struct cand at[HOOKS_MAX] = { 0 };
	struct cands cs = { at, p->n, p->n };
	int err;

	for (unsigned i = 0; i < p->n; i++)
		at[i].vaddr = p->hook[i].at;
	qsort(at, p->n, sizeof(*at), by_address);
	err = scan_far(v, &cs);
	for (unsigned i = 0; !err && i < p->n; i++) {
		struct hook *h = &p->hook[i];
		const struct cand *c = &at[cands_from(&cs, h->at)];

		MUST(c < at + p->n && c->vaddr == h->at);
		for (unsigned n = 1; !h->why && !h->whole && n < h->len; n++)
			if (c->maybe & near_bit(c, h->at + n))
				h->why = "something may jump behind its start";
	}
	return err;
}

static void hook_add(struct hook_plan *p, uint8_t kind, const Elf64_Sym *s)
{
	uint8_t how = rows[kind].how;

	if (p->n == HOOKS_MAX || !s->st_size || is_hooked(p, s->st_value))
		return;
	p->hook[p->n++] = (struct hook){
		.name = rows[kind].function, .kind = kind, .vaddr = s->st_value,
		.size = s->st_size,
		.sets_errno = how == LOCK_BY_SEM || how == LOCK_BY_SEM_TRY,
	};
}

static void functions_find(const struct symbols *y, struct hook_plan *p)
{
	bool is_default;
	Elf64_Sym s;

	for (uint64_t i = 0; i < y->n; i++) {
		const char *name = symbol(y, i, &s, &is_default);

		for (uint8_t k = 1; name && k < LOCK_KINDS; k++)
			if (!strcmp(name, rows[k].function))
				hook_add(p, k, &s);
	}
	p->error = symbol_find(y, "__errno_location");
	for (unsigned k = 1; k < LOCK_KINDS; k++)
		if (rows[k].undo[0])
			p->undo[k] = symbol_find(y, rows[k].undo);
}

static bool helpers_there(const struct hook_plan *p, const struct hook *h)
{
	return (!h->sets_errno || p->error) && (!rows[h->kind].undo[0] || p->undo[h->kind]);
}

static void hook_judge(const struct elf_view *v, const struct hook_plan *p, struct hook *h)
{
	MUST(h >= p->hook && h < p->hook + p->n);
	const struct elf_load *l = elf_exec(v, h->vaddr);

	h->why = l ? judge(v, p, h) : "it is no code";
	h->offset = l ? l->off + (h->at - l->vaddr) : 0;
}

static int plan_symbols(const struct symbols *y, struct hook_plan *p)
{
	bool locks = symbol_find(y, "pthread_create");

	if (!locks && !symbol_find(y, "__cxa_guard_acquire"))
		return 0;
	functions_find(y, p);
	for (unsigned i = 0; i < p->n; i++) {
		struct hook *h = &p->hook[i];

		hook_judge(y->v, p, h);
		if (!h->why && !helpers_there(p, h))
			h->why = "what it belongs to is missing";
	}
	return look_around(y->v, p);
}

/* musl's functions call each other: they are not for us. */
static bool is_glibc(const struct elf_view *v)
{
	struct elf_section s, names;
	const uint8_t *at;

	if (!section_of_type(v, SHT_SYMTAB, &s) || !elf_section(v, s.link, &names))
		return false;
	at = elf_section_bytes(v, &names);
	return at && memmem(at, names.len, "_IO_stdin_used", sizeof("_IO_stdin_used"));
}

/* A symbol by its name, in the table of this type. */
static bool function_find(const struct elf_view *v, uint32_t type, const char *name,
			  struct hook_plan *p)
{
	struct symbols y;
	bool is_default;
	Elf64_Sym s;

	if (symbols_open(&y, v, type))
		return false;
	for (uint64_t i = 0; i < y.n && !p->n; i++) {
		const char *found = symbol(&y, i, &s, &is_default);

		if (found && is_default && s.st_size && !strcmp(found, name))
			p->hook[p->n++] = (struct hook){ .name = name, .kind = LOCK_NONE,
							 .vaddr = s.st_value, .size = s.st_size };
	}
	return p->n;
}

bool hook_plan_fits(const struct hook_plan *p)
{
	for (unsigned i = 0; p->n <= HOOKS_MAX && i < p->n; i++) {
		const struct hook *h = &p->hook[i];

		if (h->kind >= LOCK_KINDS || h->len > sizeof(h->bytes) || (!h->len && !h->why))
			return false;
	}
	return p->n <= HOOKS_MAX;
}

int hook_plan_function(int fd, const char *name, struct hook *h)
{
	static struct hook_plan p;
	struct symbols y;
	struct elf_view v;
	int err = elf_open_file(&v, fd, ELF_WHOLE);

	if (err)
		return -ENOEXEC;
	p.n = 0;
	if (function_find(&v, SHT_SYMTAB, name, &p) || function_find(&v, SHT_DYNSYM, name, &p)) {
		hook_judge(&v, &p, &p.hook[0]);
		err = look_around(&v, &p);
		*h = p.hook[0];
	} else {
		err = symbols_open(&y, &v, SHT_SYMTAB) ? -ENODATA : -ENOENT;
	}
	elf_close(&v);
	return err;
}

int hook_plan_file(int fd, enum hook_source source, struct hook_plan *p)
{
	struct symbols y;
	struct elf_view v;
	int err = elf_open_file(&v, fd, ELF_WHOLE);

	memset(p, 0, sizeof(*p));
	if (err)
		return err;
	if (source == HOOKS_STATIC && !is_glibc(&v))
		err = -ENOENT;
	else
		err = symbols_open(&y, &v, source == HOOKS_STATIC ? SHT_SYMTAB : SHT_DYNSYM);
	if (!err)
		err = plan_symbols(&y, p);
	elf_close(&v);
	return err;
}
