/*
 * Unwinding and naming frames, by libdw.  Runs in a child of the monitor.
 *
 * libdwfl has an unwinder of its own, but it wants to stop the thread by ptrace
 * and to begin where it stands, which is in mve's own code.  So its tables are
 * used, and the walk is here: for each frame the rules that say where the caller's
 * registers are, until there is no caller.
 */
#include <dwarf.h>
#include <elfutils/libdwfl.h>
#include <stdlib.h>
#include <string.h>

#include "engine/outside/kernel/remote.h"
#include "engine/outside/report/stack_parts.h"

#define FRAMES_MAX	64
#define EVAL_DEPTH	32

/* Registers by DWARF's numbers for x86-64. */
enum { DW_RBX = 3, DW_RBP = 6, DW_RSP = 7, DW_R12 = 12, DW_R15 = 15, DW_RA = 16, DW_REGS };

struct walk_state {
	Dwfl *dwfl;
	pid_t pid;
	const struct stack_copy *copy;
	uint64_t reg[DW_REGS];	/* DW_RA: the place */
	uint32_t known;		/* as bits */
	bool exact;
	json_t *frames;
};

/* --- memory ------------------------------------------------------------------------ */

static bool word_read(const struct walk_state *s, uint64_t at, uint64_t *word)
{
	uint64_t from = at - s->copy->at;

	if (from < s->copy->len && s->copy->len - from >= sizeof(*word)) {
		memcpy(word, s->copy->bytes + from, sizeof(*word));
		return true;
	}
	return memory_peek(s->pid, at, word, sizeof(*word)) == sizeof(*word);
}

/* --- rules --------------------------------------------------------------------------- */

struct machine {
	const struct walk_state *s;
	uint64_t stack[EVAL_DEPTH];
	unsigned depth;
	bool value;		/* the result is the value, not its address */
	bool failed;
};

static void push(struct machine *m, uint64_t v)
{
	if (m->depth == EVAL_DEPTH)
		m->failed = true;
	else
		m->stack[m->depth++] = v;
}

static uint64_t pop(struct machine *m)
{
	if (!m->depth) {
		m->failed = true;
		return 0;
	}
	return m->stack[--m->depth];
}

static void push_register(struct machine *m, uint64_t reg, uint64_t offset)
{
	if (reg >= DW_REGS || !(m->s->known >> reg & 1))
		m->failed = true;
	else
		push(m, m->s->reg[reg] + offset);
}

static void step_binary(struct machine *m, uint8_t atom)
{
	uint64_t b = pop(m), a = pop(m);

	switch (atom) {
	case DW_OP_plus: push(m, a + b); break;
	case DW_OP_minus: push(m, a - b); break;
	case DW_OP_mul: push(m, a * b); break;
	case DW_OP_and: push(m, a & b); break;
	case DW_OP_or: push(m, a | b); break;
	case DW_OP_xor: push(m, a ^ b); break;
	case DW_OP_shl: push(m, b < 64 ? a << b : 0); break;
	case DW_OP_shr: push(m, b < 64 ? a >> b : 0); break;
	case DW_OP_ge: push(m, (int64_t)a >= (int64_t)b); break;
	case DW_OP_gt: push(m, (int64_t)a > (int64_t)b); break;
	case DW_OP_le: push(m, (int64_t)a <= (int64_t)b); break;
	case DW_OP_lt: push(m, (int64_t)a < (int64_t)b); break;
	case DW_OP_eq: push(m, a == b); break;
	case DW_OP_ne: push(m, a != b); break;
	default: m->failed = true;
	}
}

static void step(struct machine *m, const Dwarf_Op *op, uint64_t cfa)
{
	uint8_t atom = op->atom;
	uint64_t word = 0;

	if (atom >= DW_OP_breg0 && atom <= DW_OP_breg31) {
		push_register(m, atom - DW_OP_breg0, op->number);
		return;
	}
	if (atom >= DW_OP_lit0 && atom <= DW_OP_lit31) {
		push(m, atom - DW_OP_lit0);
		return;
	}
	switch (atom) {
	case DW_OP_bregx:
		push_register(m, op->number, op->number2);
		break;
	case DW_OP_regx:
		push_register(m, op->number, 0);
		m->value = true;
		break;
	case DW_OP_call_frame_cfa:
		push(m, cfa);
		break;
	case DW_OP_plus_uconst:
		push(m, pop(m) + op->number);
		break;
	case DW_OP_deref:
		m->failed |= !word_read(m->s, pop(m), &word);
		push(m, word);
		break;
	case DW_OP_dup:
		word = pop(m);
		push(m, word);
		push(m, word);
		break;
	case DW_OP_stack_value:
		m->value = true;
		break;
	case DW_OP_addr: case DW_OP_const1u: case DW_OP_const1s: case DW_OP_const2u:
	case DW_OP_const2s: case DW_OP_const4u: case DW_OP_const4s: case DW_OP_const8u:
	case DW_OP_const8s: case DW_OP_constu: case DW_OP_consts:
		push(m, op->number);
		break;
	default:
		step_binary(m, atom);
	}
}

static bool evaluate(struct machine *m, const Dwarf_Op *ops, size_t n, uint64_t cfa, uint64_t *v)
{
	for (size_t i = 0; i < n && !m->failed; i++) {
		if (ops[i].atom >= DW_OP_reg0 && ops[i].atom <= DW_OP_reg31) {
			push_register(m, ops[i].atom - DW_OP_reg0, 0);
			m->value = true;
			continue;
		}
		step(m, &ops[i], cfa);
	}
	*v = pop(m);
	return !m->failed;
}

/* --- one frame's caller --------------------------------------------------------------- */

static bool cfa_find(const struct walk_state *s, Dwarf_Frame *frame, uint64_t *cfa)
{
	struct machine m = { .s = s };
	Dwarf_Op *ops;
	size_t n;

	return !dwarf_frame_cfa(frame, &ops, &n) && n && evaluate(&m, ops, n, 0, cfa);
}

/* The caller's value of a register; false: it has none, or nobody knows it. */
static bool register_find(const struct walk_state *s, Dwarf_Frame *frame, int reg, uint64_t cfa,
			  uint64_t *v)
{
	struct machine m = { .s = s };
	Dwarf_Op room[3], *ops;
	size_t n;

	if (dwarf_frame_register(frame, reg, room, &ops, &n))
		return false;
	if (!n && ops == room)
		return false;
	if (!n) {
		*v = s->reg[reg];
		return s->known >> reg & 1;
	}
	if (!evaluate(&m, ops, n, cfa, v))
		return false;
	return m.value || word_read(s, *v, v);
}

static void set(struct walk_state *s, int reg, uint64_t v)
{
	s->reg[reg] = v;
	s->known |= 1u << reg;
}

static bool frame_leave(struct walk_state *s, Dwarf_Frame *frame)
{
	static const int kept[] = { DW_RBX, DW_RBP, 12, 13, 14, DW_R15, DW_RSP, DW_RA };
	struct walk_state caller = *s;
	bool signal = false;
	uint64_t cfa, v;

	if (!cfa_find(s, frame, &cfa))
		return false;
	dwarf_frame_info(frame, NULL, NULL, &signal);
	caller.known = 0;
	for (size_t i = 0; i < sizeof(kept) / sizeof(kept[0]); i++)
		if (kept[i] != DW_RSP && register_find(s, frame, kept[i], cfa, &v))
			set(&caller, kept[i], v);
	if (!signal || !register_find(s, frame, DW_RSP, cfa, &v))
		v = cfa;
	set(&caller, DW_RSP, v);
	caller.exact = signal;
	*s = caller;
	return s->known >> DW_RA & 1;
}

/* The address that belongs to the frame's own code: a return address may not. */
static uint64_t place_of(const struct walk_state *s)
{
	return s->reg[DW_RA] - !s->exact;
}

static bool by_tables(struct walk_state *s, Dwfl_Module *mod)
{
	Dwarf_Addr bias;
	Dwarf_Frame *frame = NULL;
	Dwarf_CFI *cfi = dwfl_module_eh_cfi(mod, &bias);
	bool left;

	if (!cfi || dwarf_cfi_addrframe(cfi, place_of(s) - bias, &frame)) {
		cfi = dwfl_module_dwarf_cfi(mod, &bias);
		if (!cfi || dwarf_cfi_addrframe(cfi, place_of(s) - bias, &frame))
			return false;
	}
	left = frame_leave(s, frame);
	free(frame);
	return left;
}

/* Code without tables: the chain of frame pointers, if it makes sense. */
static bool by_frame_pointer(struct walk_state *s)
{
	uint64_t fp = s->reg[DW_RBP], next, back;

	if (!(s->known >> DW_RBP & 1) || fp < s->reg[DW_RSP] || fp % 8 ||
	    fp - s->copy->at >= s->copy->len)
		return false;
	if (!word_read(s, fp, &next) || !word_read(s, fp + 8, &back))
		return false;
	s->known = 0;
	set(s, DW_RBP, next);
	set(s, DW_RSP, fp + 16);
	set(s, DW_RA, back);
	s->exact = false;
	return true;
}

/* --- names ---------------------------------------------------------------------------- */

static json_t *frame_new(const struct walk_state *s, Dwfl_Module *mod, const char *module)
{
	GElf_Addr bias = 0;
	char pc[24], address[24];

	snprintf(pc, sizeof(pc), "0x%llx", (unsigned long long)s->reg[DW_RA]);
	if (mod)
		dwfl_module_getelf(mod, &bias);
	snprintf(address, sizeof(address), "0x%llx", (unsigned long long)(place_of(s) - bias));
	return json_pack("{s:s, s:s*, s:s}", "pc", pc, "module", module, "address", address);
}

static void place_add(json_t *frame, const char *file, int line)
{
	if (!file || line <= 0)
		return;
	json_object_set_new(frame, "file", json_string(file));
	json_object_set_new(frame, "line", json_integer(line));
}

static void function_add(json_t *frame, const char *name)
{
	if (name)
		json_object_set_new(frame, "function", json_string(name));
}

/* Where the code of an inlined function was called. */
static void call_place(Dwarf_Die *cu, Dwarf_Die *die, const char **file, int *line)
{
	Dwarf_Attribute a;
	Dwarf_Files *files;
	Dwarf_Word n;

	*file = NULL;
	*line = 0;
	if (!dwarf_formudata(dwarf_attr(die, DW_AT_call_file, &a), &n) &&
	    !dwarf_getsrcfiles(cu, &files, NULL))
		*file = dwarf_filesrc(files, n, NULL, NULL);
	if (!dwarf_formudata(dwarf_attr(die, DW_AT_call_line, &a), &n))
		*line = (int)n;
}

/* The scopes that hold a place, innermost first, as the code lies. */
static int scopes_find(Dwfl_Module *mod, Dwarf_Die *cu, uint64_t place, Dwarf_Die **scopes)
{
	Dwarf_Addr bias;
	Dwarf_Die *innermost, die;
	Dwarf *dw = dwfl_module_getdwarf(mod, &bias);
	int n = dwarf_getscopes(cu, place - bias, &innermost);

	if (n <= 0)
		return 0;
	if (!dwarf_offdie(dw, dwarf_dieoffset(&innermost[0]), &die))
		n = 0;
	free(innermost);
	return n ? dwarf_getscopes_die(&die, scopes) : 0;
}

/* One frame, and those inlined into it. */
static bool frames_by_dwarf(struct walk_state *s, Dwfl_Module *mod, const char *module)
{
	Dwfl_Line *src = dwfl_module_getsrc(mod, place_of(s));
	Dwarf_Addr bias;
	Dwarf_Die *cu = dwfl_module_addrdie(mod, place_of(s), &bias), *scopes = NULL;
	int line = 0, n = cu ? scopes_find(mod, cu, place_of(s), &scopes) : 0;
	const char *file = src ? dwfl_lineinfo(src, NULL, &line, NULL, NULL, NULL) : NULL;
	bool done = false;

	for (int i = 0; i < n && !done; i++) {
		int tag = dwarf_tag(&scopes[i]);
		json_t *frame;

		if (tag != DW_TAG_subprogram && tag != DW_TAG_inlined_subroutine)
			continue;
		frame = frame_new(s, mod, module);
		function_add(frame, dwarf_diename(&scopes[i]));
		place_add(frame, file, line);
		json_array_append_new(s->frames, frame);
		done = tag == DW_TAG_subprogram;
		if (done)
			break;
		json_object_set_new(frame, "inlined", json_true());
		call_place(cu, &scopes[i], &file, &line);
	}
	free(scopes);
	return done;
}

static void frames_add(struct walk_state *s, Dwfl_Module *mod)
{
	const char *module = NULL, *path = NULL;
	GElf_Off offset;
	GElf_Sym sym;
	json_t *frame;

	if (mod)
		module = dwfl_module_info(mod, NULL, NULL, NULL, NULL, NULL, &path, NULL);
	module = path ? path : module;
	if (mod && frames_by_dwarf(s, mod, module))
		return;
	frame = frame_new(s, mod, module);
	if (mod)
		function_add(frame, dwfl_module_addrinfo(mod, place_of(s), &offset, &sym, NULL,
							 NULL, NULL));
	json_array_append_new(s->frames, frame);
}

/* --- the walk ------------------------------------------------------------------------- */

static void state_begin(struct walk_state *s, const struct stack_start *from)
{
	static const int order[KEPT] = { DW_RBX, DW_RBP, 12, 13, 14, DW_R15 };
	uint64_t place = from->place, stack = from->stack;

	for (int i = 0; i < KEPT; i++)
		set(s, order[i], from->kept[i]);
	s->exact = from->exact;
	if (!place && word_read(s, stack, &place))
		stack += 8;
	set(s, DW_RA, place);
	set(s, DW_RSP, stack);
}

static void frames_walk(struct walk_state *s)
{
	for (int i = 0; i < FRAMES_MAX && s->reg[DW_RA]; i++) {
		Dwfl_Module *mod = dwfl_addrmodule(s->dwfl, place_of(s));
		uint64_t sp = s->reg[DW_RSP];

		frames_add(s, mod);
		if (!(mod && by_tables(s, mod)) && !by_frame_pointer(s))
			return;
		/* A signal's handler may have had a stack of its own. */
		if (s->reg[DW_RSP] <= sp && !s->exact)
			return;
	}
}

json_t *unwind(pid_t pid, const struct stack_start *start, const struct stack_copy *copy)
{
	static char *path;
	static const Dwfl_Callbacks calls = {
		.find_elf = dwfl_linux_proc_find_elf,
		.find_debuginfo = dwfl_standard_find_debuginfo,
		.debuginfo_path = &path,
	};
	struct walk_state s = { .pid = pid, .copy = copy, .frames = json_array() };

	unsetenv("DEBUGINFOD_URLS");	/* nobody waits for a server in the net */
	s.dwfl = dwfl_begin(&calls);
	if (!s.dwfl || dwfl_linux_proc_report(s.dwfl, pid) || dwfl_report_end(s.dwfl, NULL, NULL))
		return s.frames;
	state_begin(&s, start);
	frames_walk(&s);
	return s.frames;
}
