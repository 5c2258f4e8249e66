/*
 * Whose call is it?  A sanitizer's runtime works for itself by libc's functions,
 * too: it looks at limits, reads /proc/self/maps, starts a thread.  Such a call
 * stands in libc, as the program's do; only the stack tells them apart.
 *
 * So the frames above the call are walked, by the unwind tables of libc and of the
 * runtime, up to the first that is neither.  If the runtime is not among them, the
 * call is the program's.  If it is, either the program has called an interceptor,
 * which passes its call on, or the runtime calls for itself: the monitor has the
 * symbols and says which, once for each place (REQ_CALLER).
 *
 * What is found is kept in two tables that all threads share without a lock: a row
 * is two words, of which one is masked with the other, so half of one never fits
 * half of another.  Children share them, too: each would have to ask anew, and in a
 * server that forks for each connection that is most of what a child does.
 */
#include <asm/unistd.h>
#include <linux/signal.h>

#include "engine/core/must.h"
#include "engine/core/pairs.h"
#include "engine/core/walk.h"
#include "engine/inside/gate/gate.h"
#include "engine/inside/gate/memory.h"
#include "engine/inside/gate/request.h"
#include "engine/inside/gate/thread.h"
#include "engine/inside/gate/ways.h"
#include "engine/inside/lanes/host.h"
#include "engine/inside/runtime/callers.h"

/* What is said of a way from the program to libc; as the table's rows have it. */
enum caller { CALLER_PROGRAM, CALLER_RUNTIME, CALLER_INTERCEPTOR };

#define FRAMES_MAX	40
#define RECORD_MAX	512	/* bytes of an FDE; longer ones are not walked */
#define SAVED_STATES	4
#define ROWS		1024	/* of each table; a power of two */
#define HEADER_SIZE	12	/* of eh_frame_hdr, in the only form that linkers write */
#define POINTER_PCREL4	0x1b	/* DW_EH_PE_pcrel | DW_EH_PE_sdata4 */
_Static_assert(ROWS == 1 << (64 - 54), "rows are found by a hash's upper bits");

enum { REG_RBP = 6, REG_RSP = 7, REG_RA = 16 };

/* How to get from a frame to its caller's. */
struct rule {
	bool known;
	bool by_rbp;		/* what the CFA is counted from; else rsp */
	bool outermost;		/* nobody called it: a thread begins there */
	int32_t cfa;
	int32_t rbp;		/* where it was saved, from the CFA; 0: it was not */
};

/* --- what has been found ----------------------------------------------------------- */

struct row {
	uint64_t masked, value;
};

struct tables {
	struct row rules[ROWS], callers[ROWS];
};

static struct tables *tables(void)
{
	static struct tables *made;
	struct tables *now = __atomic_load_n(&made, __ATOMIC_RELAXED), *none = NULL;
	long at;

	if (now)
		return now;
	at = own_share(sizeof(*now));
	if (at < 0)
		return NULL;
	if (__atomic_compare_exchange_n(&made, &none, (struct tables *)at, false,
					__ATOMIC_RELAXED, __ATOMIC_RELAXED))
		return (struct tables *)at;
	OWN2(__NR_munmap, at, sizeof(*now));
	return none;
}

static struct row *rule_row(uint64_t pc)
{
	struct tables *t = tables();

	return t ? &t->rules[(pc * 0x9e3779b97f4a7c15ull) >> 54] : NULL;
}

static struct row *caller_row(uint64_t key)
{
	struct tables *t = tables();

	return t ? &t->callers[(key * 0x9e3779b97f4a7c15ull) >> 54] : NULL;
}

static bool row_find(const struct row *r, uint64_t key, uint64_t *value)
{
	if (!r)
		return false;
	*value = __atomic_load_n(&r->value, __ATOMIC_RELAXED);
	return *value && (__atomic_load_n(&r->masked, __ATOMIC_RELAXED) ^ *value) == key;
}

static void row_keep(struct row *r, uint64_t key, uint64_t value)
{
	if (!r)
		return;
	__atomic_store_n(&r->masked, key ^ value, __ATOMIC_RELAXED);
	__atomic_store_n(&r->value, value, __ATOMIC_RELAXED);
}

static uint64_t rule_pack(const struct rule *r)
{
	return 1ull << 63 | (uint64_t)r->known << 62 | (uint64_t)r->by_rbp << 61 |
	       (uint64_t)r->outermost << 60 |
	       (uint64_t)((uint32_t)r->cfa & 0xfffffff) << 28 | ((uint32_t)r->rbp & 0xfffffff);
}

static struct rule rule_unpack(uint64_t v)
{
	return (struct rule){ v >> 62 & 1, v >> 61 & 1, v >> 60 & 1,
			      (int32_t)((uint32_t)(v >> 28) << 4) >> 4,
			      (int32_t)((uint32_t)v << 4) >> 4 };
}

/* --- reading tables ------------------------------------------------------------------ */

struct bytes {
	const uint8_t *at, *end;
	bool failed;
};

static uint64_t number(struct bytes *b, unsigned size)
{
	uint64_t v = 0;

	if ((size_t)(b->end - b->at) < size) {
		b->failed = true;
		b->at = b->end;
		return 0;
	}
	for (unsigned i = 0; i < size; i++)
		v |= (uint64_t)b->at[i] << 8 * i;
	b->at += size;
	return v;
}

static uint64_t uleb(struct bytes *b)
{
	uint64_t v = 0;

	for (unsigned shift = 0; shift < 64; shift += 7) {
		uint8_t byte = (uint8_t)number(b, 1);

		v |= (uint64_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80))
			return v;
	}
	b->failed = true;
	return v;
}

static int64_t sleb(struct bytes *b)
{
	uint64_t v = 0;

	for (unsigned shift = 0; shift < 64; shift += 7) {
		uint8_t byte = (uint8_t)number(b, 1);

		v |= (uint64_t)(byte & 0x7f) << shift;
		if (byte & 0x80)
			continue;
		return byte & 0x40 && shift < 57 ? (int64_t)(v | ~0ull << (shift + 7)) : (int64_t)v;
	}
	b->failed = true;
	return 0;
}

static void skip(struct bytes *b, uint64_t n)
{
	b->failed |= n > (uint64_t)(b->end - b->at);
	b->at = b->failed ? b->end : b->at + n;
}

struct record {
	uint64_t from, pc;	/* its function, and where in it */
	uint32_t code_align;
	int32_t data_align;
	bool augmented;
	struct rule first;	/* what its CIE begins with */
	uint8_t cie[RECORD_MAX / 4], fde[RECORD_MAX];
};

/* Copies a record and the length before it; its bytes, or none. */
static struct bytes record_read(uint64_t at, uint8_t *to, uint32_t room)
{
	struct bytes none = { to, to, true };
	uint32_t len;

	if (target_in(&len, at, 4) || len < 4 || len > room || target_in(to, at + 4, len))
		return none;
	return (struct bytes){ to, to + len, false };
}

/* --- a function's rules --------------------------------------------------------------- */

struct state {
	struct rule now, saved[SAVED_STATES];
	unsigned depth;
	uint64_t at;
};

static void saved_at(struct state *s, uint64_t reg, int64_t offset)
{
	if (reg == REG_RBP)
		s->now.rbp = (int32_t)offset;
}

static void cfa_by(struct state *s, uint64_t reg)
{
	s->now.known = reg == REG_RBP || reg == REG_RSP;
	s->now.by_rbp = reg == REG_RBP;
}

static void step_long(struct state *s, struct bytes *b, const struct record *r, uint8_t op)
{
	uint64_t reg;

	MUST(s->depth <= SAVED_STATES);

	switch (op) {
	case 0x02: case 0x03: case 0x04:	/* advance_loc1, 2, 4 */
		s->at += number(b, 1u << (op - 2)) * r->code_align;
		return;
	case 0x05:				/* offset_extended */
		reg = uleb(b);
		saved_at(s, reg, (int64_t)uleb(b) * r->data_align);
		return;
	case 0x06:				/* restore_extended */
		if (uleb(b) == REG_RBP)
			s->now.rbp = r->first.rbp;
		return;
	case 0x07:				/* undefined */
		if (uleb(b) == REG_RA)
			s->now.outermost = true;
		return;
	case 0x08:				/* same_value */
	case 0x2e:				/* GNU_args_size */
		uleb(b);
		return;
	case 0x0a:				/* remember_state */
		b->failed |= s->depth == SAVED_STATES;
		if (!b->failed)
			s->saved[s->depth++] = s->now;
		return;
	case 0x0b:				/* restore_state */
		b->failed |= !s->depth;
		if (!b->failed)
			s->now = s->saved[--s->depth];
		return;
	case 0x0c:				/* def_cfa */
		cfa_by(s, uleb(b));
		s->now.cfa = (int32_t)uleb(b);
		return;
	case 0x0d:				/* def_cfa_register */
		cfa_by(s, uleb(b));
		return;
	case 0x0e:				/* def_cfa_offset */
		s->now.cfa = (int32_t)uleb(b);
		return;
	case 0x0f:				/* def_cfa_expression */
		s->now.known = false;
		skip(b, uleb(b));
		return;
	case 0x10: case 0x16:			/* expression, val_expression */
		if (uleb(b) == REG_RBP)
			s->now.known = false;
		skip(b, uleb(b));
		return;
	case 0x11:				/* offset_extended_sf */
		reg = uleb(b);
		saved_at(s, reg, sleb(b) * r->data_align);
		return;
	default:
		b->failed |= op != 0;		/* nop */
	}
}

static void steps_run(struct state *s, struct bytes *b, const struct record *r)
{
	while (b->at < b->end && !b->failed) {
		uint8_t op = (uint8_t)number(b, 1), low = op & 0x3f;
		struct state was = *s;

		switch (op >> 6) {
		case 1:				/* advance_loc */
			s->at += (uint64_t)low * r->code_align;
			break;
		case 2:				/* offset */
			saved_at(s, low, (int64_t)uleb(b) * r->data_align);
			break;
		case 3:				/* restore */
			if (low == REG_RBP)
				s->now.rbp = r->first.rbp;
			break;
		default:
			step_long(s, b, r, op);
		}
		if (s->at > r->pc) {
			*s = was;
			return;
		}
	}
}

static bool cie_run(struct record *r, uint64_t at)
{
	struct bytes b = record_read(at, r->cie, sizeof(r->cie));
	struct state s = { .now = { .known = true } };
	const uint8_t *name;

	skip(&b, 5);				/* its id, its version */
	for (name = b.at; !b.failed && number(&b, 1);)
		;
	r->code_align = (uint32_t)uleb(&b);
	r->data_align = (int32_t)sleb(&b);
	b.failed |= uleb(&b) != REG_RA;
	r->augmented = name < b.end && *name == 'z';
	if (b.failed || (*name && !r->augmented))
		return false;
	if (r->augmented)
		skip(&b, uleb(&b));
	s.at = 0;
	steps_run(&s, &b, &(struct record){ .pc = ~0ull, .code_align = r->code_align,
					    .data_align = r->data_align });
	r->first = s.now;
	return !b.failed;
}

/* The rule at r->pc by the record at `at`. */
static struct rule fde_run(struct record *r, uint64_t at)
{
	struct rule none = { 0 };
	struct bytes b = record_read(at, r->fde, sizeof(r->fde));
	uint64_t back = number(&b, 4), len;
	struct state s;

	if (b.failed || !cie_run(r, at + 4 - back))
		return none;
	r->from = at + 8 + (uint64_t)(int64_t)(int32_t)number(&b, 4);
	len = number(&b, 4);
	if (r->augmented)
		skip(&b, uleb(&b));
	if (b.failed || r->pc - r->from >= len)
		return none;
	s = (struct state){ .now = r->first, .at = r->from };
	steps_run(&s, &b, r);
	return b.failed ? none : s.now;
}

/* The record of the function that may hold pc, by the sorted table; or 0. */
static uint64_t fde_find(const struct code_part *m, uint64_t pc)
{
	struct { uint8_t version, pointer, count_as, table_as; int32_t at; uint32_t n; } h;
	int32_t row[2], want = (int32_t)(pc - m->unwind);
	uint32_t low = 0, high;

	_Static_assert(sizeof(h) == HEADER_SIZE, "as it lies in memory");
	if (!m->unwind || target_in(&h, m->unwind, sizeof(h)) || h.version != 1 ||
	    h.count_as != 0x03 || h.table_as != 0x3b)
		return 0;
	for (high = h.n; low < high;) {
		uint32_t middle = low + (high - low) / 2;

		if (target_in(row, m->unwind + HEADER_SIZE + 8ull * middle, sizeof(row)))
			return 0;
		if (row[0] <= want)
			low = middle + 1;
		else
			high = middle;
	}
	if (!low || target_in(row, m->unwind + HEADER_SIZE + 8ull * (low - 1), sizeof(row)))
		return 0;
	return m->unwind + (uint64_t)(int64_t)row[1];
}

static uint64_t function_at(const struct code_part *m, uint64_t pc)
{
	struct record record = { .pc = pc };
	uint64_t fde = fde_find(m, pc);

	if (!fde)
		return 0;
	fde_run(&record, fde);
	return record.from;
}

static struct rule rule_at(const struct code_part *m, uint64_t pc)
{
	struct record record = { .pc = pc };
	struct rule r = { 0 };
	uint64_t value, fde;

	if (row_find(rule_row(pc), pc, &value))
		return rule_unpack(value);
	fde = fde_find(m, pc);
	if (fde)
		r = fde_run(&record, fde);
	row_keep(rule_row(pc), pc, rule_pack(&r));
	return r;
}

/* --- the walk ------------------------------------------------------------------------- */

static const struct code_part *part_of(uint64_t pc)
{
	uint32_t n = CONSUME(boot_parts, &boot.parts);

	for (uint32_t i = 0; i < n && i < BOOT_PARTS; i++)
		if (pc >= boot.part[i].from && pc < boot.part[i].to)
			return &boot.part[i];
	return NULL;
}

/* To the caller; where nothing is said (clone) the return address is on top. */
static bool step_up(const struct code_part *m, struct caller_place *p, bool first)
{
	struct rule r = rule_at(m, p->pc - 1);
	uint64_t cfa;

	if ((!r.known && !first) || r.outermost)
		return false;
	cfa = r.known ? (r.by_rbp ? p->rbp : p->rsp) + (uint64_t)(int64_t)r.cfa : p->rsp + 8;
	if (cfa <= p->rsp || target_in(&p->pc, cfa - 8, 8))
		return false;
	p->rsp = cfa;
	return !r.rbp || !target_in(&p->rbp, cfa + (uint64_t)(int64_t)r.rbp, 8);
}

/* What the monitor says of a way from the program to libc. */
static enum caller caller_asked(struct thread *t, uint64_t libc, uint64_t inner, uint64_t outer)
{
	uint64_t key = libc ^ (inner << 20 | inner >> 44) ^ (outer << 40 | outer >> 24), value;

	if (!row_find(caller_row(key), key, &value)) {
		long reply;

		request_of(t)->call[0] = t->frame.rax;
		reply = request_ask(t, REQ_CALLER, libc, inner, outer);
		if (reply < 0)
			return CALLER_RUNTIME;
		value = reply ? CALLER_RUNTIME : CALLER_INTERCEPTOR;
		row_keep(caller_row(key), key, value);
	}
	return (enum caller)value;
}

static enum caller caller_from(struct thread *t, struct caller_place p)
{
	uint64_t libc = 0, inner = 0, outer = 0;

	for (int i = 0; boot.runtimes && i < FRAMES_MAX; i++) {
		const struct code_part *m = part_of(p.pc - 1);

		if (!m || m->kind == PART_ALLOCATOR || (inner && m->kind != PART_RUNTIME))
			break;
		if (m->kind == PART_LIBC) {
			libc = p.pc;
		} else {
			inner = inner ? inner : p.pc;
			outer = p.pc;
		}
		if (!step_up(m, &p, !i))
			break;
	}
	return inner ? caller_asked(t, libc, inner, outer) : CALLER_PROGRAM;
}

static enum caller caller_of(struct thread *t)
{
	struct caller_place p = { t->frame.site_end, t->frame.rsp, t->frame.rbp };

	/* A clock of our vDSO: its function has nothing on the stack. */
	if (!p.pc && boot.runtimes && !target_in(&p.pc, p.rsp, 8))
		p.rsp += 8;
	return caller_from(t, p);
}

/*
 * glibc readies its own signals at the first pthread_create, which in a runtime's
 * version is the runtime's.
 */
#define SIGNAL_SETXID	33
#define LIBC_SIGNALS	(3ull << 31)	/* 32, 33 */

static bool is_thread_setup(const struct thread *t, long nr)
{
	uint64_t set;

	if (nr == __NR_rt_sigaction)
		return t->frame.rdi == SIGNAL_SETXID;
	return nr == __NR_rt_sigprocmask && t->frame.rdi == SIG_UNBLOCK && t->frame.rsi &&
	       !target_in(&set, t->frame.rsi, sizeof(set)) && set == LIBC_SIGNALS;
}

/* An allocator's thread for its own work: libc has made it for code that is local. */
static bool is_allocators(struct thread *t)
{
	struct caller_place p = { t->frame.site_end, t->frame.rsp, t->frame.rbp };

	for (int i = 0; i < FRAMES_MAX; i++) {
		const struct code_part *m = part_of(p.pc - 1);

		if (!m || m->kind != PART_LIBC)
			return local_code(p.pc);
		if (!step_up(m, &p, !i))
			break;
	}
	return false;
}

bool caller_is_allocators(struct caller_place p)
{
	bool allocator = false;

	for (int i = 0; i < FRAMES_MAX; i++) {
		const struct code_part *m = part_of(p.pc - 1);

		if (!m || m->kind == PART_RUNTIME)
			return false;
		allocator |= m->kind == PART_ALLOCATOR;
		if (rule_at(m, p.pc - 1).outermost)
			return allocator;
		if (!step_up(m, &p, !i))
			return false;
	}
	return false;
}

bool caller_up(struct caller_place *p, uint64_t *function, bool first)
{
	const struct code_part *m = part_of(p->pc - 1);

	if (!m || m->kind != PART_LIBC)
		return false;
	*function = function_at(m, p->pc - 1);
	return step_up(m, p, first);
}

bool caller_in_known_libc(uint64_t pc)
{
	const struct code_part *m = part_of(pc - 1);
	bool known = false;

	for (uint32_t i = 0; i < boot.parts; i++)
		known |= boot.part[i].kind == PART_LIBC;
	return !known || (m && m->kind == PART_LIBC);
}

bool caller_in_libc(uint64_t return_address)
{
	const struct code_part *m = boot.runtimes ? part_of(return_address - 1) : NULL;

	return m && m->kind == PART_LIBC;
}

bool caller_locks(struct thread *t, uint64_t return_address, uint64_t rsp)
{
	struct caller_place p = { return_address, rsp, t->frame.rbp };

	return caller_from(t, p) == CALLER_RUNTIME;
}

bool caller_is_runtime(const struct thread *t)
{
	const struct code_part *m = boot.runtimes ? part_of(t->frame.site_end - 1) : NULL;

	return m && m->kind == PART_RUNTIME;
}

bool caller_is_local(struct thread *t, long nr)
{
	bool local = local_site(t) || caller_is_runtime(t);
	enum caller caller;

	t->intercepted = 0;
	if (is_thread_setup(t, nr))
		return true;
	if ((nr == __NR_clone || nr == __NR_clone3) && is_allocators(t))
		return true;
	/* A runtime's interceptor of sigaction makes the program's call by itself. */
	if (local && nr != __NR_rt_sigaction)
		return true;
	caller = caller_of(t);
	t->intercepted = caller == CALLER_INTERCEPTOR;
	return caller == CALLER_RUNTIME || (caller == CALLER_PROGRAM && local);
}

void part_add(uint64_t from, uint64_t len, uint32_t kind, uint64_t unwind)
{
	if (boot.parts >= BOOT_PARTS)
		return;
	MUST(from < from + len && kind <= PART_RUNTIME);
	boot.part[boot.parts] = (struct code_part){ from, from + len, unwind, kind, 0 };
	/* Another thread reads the row after the count. */
	PUBLISH(boot_parts, &boot.parts, boot.parts + 1);
	boot.runtimes += kind == PART_RUNTIME;
	if (boot.runtimes)
		tell_stop(TELL_RUNTIME);
}
