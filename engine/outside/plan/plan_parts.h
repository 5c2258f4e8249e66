/*
 * What the files of the planner share among themselves.  Users of a plan
 * include plan.h.
 */
#ifndef MVE_OUTSIDE_PLAN_PARTS_H
#define MVE_OUTSIDE_PLAN_PARTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "engine/outside/plan/plan.h"

/* plan_elf.c: a checked view of an ELF file in memory. */

#define ELF_LOADS_MAX	64

struct elf_load {
	uint64_t vaddr, off, len;	/* len: bytes that the file really has */
	bool exec;
};

struct elf_section {
	uint64_t vaddr, off, len, flags;
	uint32_t name, type, link, entsize;
};

struct elf_view {
	const uint8_t *bytes;
	uint64_t size;
	int fd;			/* -1: everything is in memory already */
	bool headers_only;
	uint64_t entry, loaded;
	unsigned nload;
	struct elf_load load[ELF_LOADS_MAX];
	uint64_t eh_frame_hdr, eh_frame_hdr_len;	/* vaddr; 0: none */
	uint8_t build_id_len;
	uint8_t build_id[PLAN_BUILD_ID_MAX];
};

/*
 * Opens memory or a file; elf_close() is due after success only.  With
 * ELF_HEADERS only headers and notes are read: enough for the build id.
 */
enum elf_how { ELF_WHOLE, ELF_HEADERS };
int elf_open_image(struct elf_view *v, const void *bytes, size_t size);
int elf_open_file(struct elf_view *v, int fd, enum elf_how how);
void elf_close(struct elf_view *v);

/* Bytes [off, off+len) of the file, or NULL. */
const uint8_t *elf_bytes(const struct elf_view *v, uint64_t off, uint64_t len);

/* Bytes that the file loads at [vaddr, vaddr+len), or NULL. */
const uint8_t *elf_at(const struct elf_view *v, uint64_t vaddr, uint64_t len);

/* The executable segment that holds vaddr, or NULL. */
const struct elf_load *elf_exec(const struct elf_view *v, uint64_t vaddr);

/* Section i; false past the end or when damaged.  Damaged tables have no sections. */
bool elf_section(const struct elf_view *v, unsigned i, struct elf_section *s);

/* The content of a section, read from the file when need be, or NULL. */
const uint8_t *elf_section_bytes(const struct elf_view *v, const struct elf_section *s);
bool elf_section_named(const struct elf_view *v, const struct elf_section *s, const char *name);

static inline uint32_t get32(const uint8_t *p)
{
	uint32_t x;

	__builtin_memcpy(&x, p, sizeof(x));
	return x;
}

static inline uint64_t get64(const uint8_t *p)
{
	uint64_t x;

	__builtin_memcpy(&x, p, sizeof(x));
	return x;
}

/*
 * A candidate: a byte pair in an executable segment, and what is known of its
 * surroundings.  `exact` and `maybe` have one bit per byte from NEAR_BEFORE
 * bytes before the pair: something branches there.
 */
#define NEAR_BEFORE	40
#define NEAR_AFTER	24	/* together 64: one bit each */
#define NEAR_INSNS	8	/* instructions kept on each side */

enum insn_flags {
	INSN_MOVES	= 0x0001,	/* may run from a board */
	INSN_MEMORY	= 0x0002,	/* touches memory, so may fault */
	INSN_RET	= 0x0004,
	INSN_JUMP	= 0x0008,	/* direct jmp */
	INSN_ENDS	= 0x0010,	/* what follows is not reached from it */
	INSN_CHECKS_RAX	= 0x0020,	/* compares rax with an error number, or with 0 */
	INSN_PAD	= 0x0040,	/* nop or int3 */
	INSN_SETS_NR	= 0x0080,	/* mov $imm,%eax or the like; value in `imm` */
	INSN_BRANCH	= 0x0100,	/* has a relative target, in `imm` as an address */
	INSN_INDIRECT	= 0x0200,	/* jmp through a register or memory; table in `imm` */
	INSN_SYSCALL	= 0x0400,
	INSN_INT80	= 0x0800,
	INSN_SYSENTER	= 0x1000,
	INSN_LOCK	= 0x2000,	/* lock prefix first: a branch may skip it */
	INSN_RIP	= 0x4000,	/* RIP-relative operand; address in `imm` */
	INSN_WRITES_RAX	= 0x8000,	/* may change eax (guessed wide) */
	INSN_LEA	= 0x10000,	/* takes the address in `imm` */
	INSN_CALL	= 0x20000,	/* direct call */
	INSN_MACHINE	= 0x40000,	/* its result is the machine's: rdtsc, rdrand */
};

struct insn {
	uint64_t at;
	uint64_t imm;
	uint32_t flags;
	uint8_t len;
	uint8_t disp_at;	/* where its displacement is, when INSN_RIP */
};

enum cand_state {
	CAND_UNKNOWN,	/* nothing explains these bytes */
	CAND_INSIDE,	/* part of another instruction */
	CAND_SITE,	/* an instruction, in a function that decodes without doubt */
	CAND_DOUBT,	/* an instruction, but its function is not to be trusted */
};

struct cand {
	uint64_t vaddr, off;
	uint64_t exact, maybe;
	uint8_t state;
	uint8_t pair;		/* enum site_kind: SITE_TRAP, _INT80, _SYSENTER, _INSN */
	bool closed;		/* every branch into the function's windows was seen */
	uint8_t nbefore, nafter;
	struct insn before[NEAR_INSNS];	/* nearest first */
	struct insn after[NEAR_INSNS];
};

struct cands {
	struct cand *at;	/* in order of vaddr */
	unsigned n, room;
};

static inline uint64_t near_bit(const struct cand *c, uint64_t target)
{
	uint64_t i = target - (c->vaddr - NEAR_BEFORE);

	return i < 64 ? (uint64_t)1 << i : 0;
}

/* plan_scan.c: fast looks at many bytes. */

int scan_pairs(const struct elf_view *v, struct cands *cs);
bool scan_vsyscall(const struct elf_view *v);
/* Marks in `maybe` what looks like a branch from anywhere in the file. */
int scan_far(const struct elf_view *v, struct cands *cs);
/* The same for short branches from outside [start, end) to this candidate. */
void scan_short(const struct elf_view *v, struct cand *c, uint64_t start, uint64_t end);
/* First candidate at or after vaddr. */
unsigned cands_from(const struct cands *cs, uint64_t vaddr);
/* Marks a branch target in `exact` of every candidate near it. */
void cands_mark(struct cands *cs, uint64_t target);

/* plan_func.c: which function holds an address. */

enum span_kind {
	SPAN_FUNC,	/* a function, start and end known */
	SPAN_PART,	/* perhaps a part of one: other parts may branch into it */
	SPAN_GAP,	/* code between known functions */
};

struct span {
	uint64_t start, end;
	uint64_t next;		/* no known function starts in [end, next) */
	enum span_kind kind;
	bool pads;		/* has exception landing pads */
};

struct funcs;
int funcs_open(const struct elf_view *v, struct funcs **out);
void funcs_close(struct funcs *f);
bool funcs_find(struct funcs *f, uint64_t vaddr, struct span *out);

/* plan_go.c: Go's own table of functions. */

struct go_table {
	const uint8_t *rows;	/* offsets of functions from `text`, n + 1 */
	uint64_t n, text;
};

/* False: the file has none that can be used. */
bool go_table_open(const struct elf_view *v, struct go_table *g);
/* Function i; false past the last. */
bool go_func(const struct go_table *g, uint64_t i, uint64_t *start, uint64_t *end);

/* plan_fde.c: the unwind tables' view of functions. */

struct fde_table {
	const struct elf_view *v;
	const uint8_t *rows;	/* NULL: no usable table */
	uint64_t base;
	uint64_t n;
};

void fde_open(struct fde_table *t, const struct elf_view *v);
/*
 * Finds the function that holds vaddr.  When none does, narrows [*lo, *hi) to
 * the gap between its neighbours.
 */
bool fde_find(const struct fde_table *t, uint64_t vaddr, struct span *out, uint64_t *lo,
	      uint64_t *hi);

/* plan_flow.c: exact decoding. */

/* Decodes one span and fills in the candidates [first, last) that it holds. */
int flow_span(const struct elf_view *v, const struct span *s, struct cands *cs, unsigned first,
	      unsigned last);

/* plan_insn.c: one instruction.  false: not an instruction. */
bool insn_decode(const uint8_t *p, size_t len, uint64_t at, struct insn *out);

/* plan_window.c: the choice of a window. */
void window_choose(const struct cand *c, struct plan_site *s);

/* plan_store.c: plans on disk; failing only means to plan anew. */
struct plan *store_load(int fd, uint64_t file_size, const struct elf_view *v);
void store_save(int fd, uint64_t file_size, const struct plan *p);

/* plan.c: an empty plan with room for n sites and one reference. */
struct plan *plan_new(unsigned n);
void plan_ref(struct plan *p);

#endif
