/*
 * One instruction, in the planner's terms.  Zydis decodes; this says what may
 * be moved into a board.
 *
 * May be moved: instructions that only move, compute and compare, listed by
 * Zydis's categories below.  They mean the same at any address, save for a
 * RIP-relative operand, which board.c mends.  Everything else stays where it
 * is: transfers of control, system instructions, and whatever this list does
 * not know.
 */
#include <Zydis/Zydis.h>
#include <string.h>
#include "engine/core/must.h"
#include "engine/outside/plan/plan_parts.h"

static const bool movable[ZYDIS_CATEGORY_MAX_VALUE + 1] = {
	[ZYDIS_CATEGORY_BINARY] = true,
	[ZYDIS_CATEGORY_LOGICAL] = true,
	[ZYDIS_CATEGORY_DATAXFER] = true,
	[ZYDIS_CATEGORY_CMOV] = true,
	[ZYDIS_CATEGORY_SETCC] = true,
	[ZYDIS_CATEGORY_CONVERT] = true,
	[ZYDIS_CATEGORY_SHIFT] = true,
	[ZYDIS_CATEGORY_ROTATE] = true,
	[ZYDIS_CATEGORY_BITBYTE] = true,
	[ZYDIS_CATEGORY_PUSH] = true,
	[ZYDIS_CATEGORY_POP] = true,
	[ZYDIS_CATEGORY_NOP] = true,
	[ZYDIS_CATEGORY_WIDENOP] = true,
	[ZYDIS_CATEGORY_SSE] = true,
	[ZYDIS_CATEGORY_LOGICAL_FP] = true,
	[ZYDIS_CATEGORY_AVX] = true,
};

static bool names_segment(const ZydisDecodedInstruction *z)
{
	return z->mnemonic == ZYDIS_MNEMONIC_MOV && z->opcode_map == ZYDIS_OPCODE_MAP_DEFAULT &&
	       (z->opcode == 0x8e || z->opcode == 0x8c);
}

static bool may_move(const ZydisDecodedInstruction *z)
{
	/* pop fs and pop gs live in the second map. */
	bool pops_segment = (z->meta.category == ZYDIS_CATEGORY_POP ||
			     z->meta.category == ZYDIS_CATEGORY_PUSH) &&
			    z->opcode_map != ZYDIS_OPCODE_MAP_DEFAULT;
	bool control = z->mnemonic == ZYDIS_MNEMONIC_MOV &&
		       z->opcode_map == ZYDIS_OPCODE_MAP_0F;

	return (movable[z->meta.category] || z->mnemonic == ZYDIS_MNEMONIC_LEA) &&
	       !z->raw.imm[0].is_relative && !names_segment(z) && !pops_segment && !control;
}

static bool touches_memory(const ZydisDecodedInstruction *z)
{
	if (z->mnemonic == ZYDIS_MNEMONIC_LEA || z->meta.category == ZYDIS_CATEGORY_NOP ||
	    z->meta.category == ZYDIS_CATEGORY_WIDENOP)
		return false;
	return ((z->attributes & ZYDIS_ATTRIB_HAS_MODRM) && z->raw.modrm.mod != 3) ||
	       z->meta.category == ZYDIS_CATEGORY_PUSH || z->meta.category == ZYDIS_CATEGORY_POP ||
	       (z->mnemonic == ZYDIS_MNEMONIC_MOV && z->opcode >= 0xa0 && z->opcode <= 0xa3);
}

/* cmp $-4095,%rax and its kin, test %rax,%rax: what follows a system call. */
static bool checks_rax(const uint8_t *p, const ZydisDecodedInstruction *z)
{
	unsigned rex = (p[0] & 0xf7) == 0x40 ? p[0] == 0x48 : 0;

	p += rex;
	switch (z->length - rex) {
	case 2:
		return p[0] == 0x85 && p[1] == 0xc0;
	case 3:
		return p[0] == 0x83 && p[1] == 0xf8;
	case 5:
		return p[0] == 0x3d && z->raw.imm[0].value.s < 0;
	}
	return false;
}

/* mov $nr,%eax or %rax, xor %eax,%eax. */
static bool sets_nr(const uint8_t *p, const ZydisDecodedInstruction *z, uint64_t *nr)
{
	bool zero = z->length == 2 && (p[0] == 0x31 || p[0] == 0x33) && p[1] == 0xc0;
	bool mov32 = z->length == 5 && p[0] == 0xb8;
	bool mov64 = z->length == 7 && p[0] == 0x48 && p[1] == 0xc7 && p[2] == 0xc0;

	*nr = zero ? 0 : z->raw.imm[0].value.u & 0x7fffffff;
	return zero || mov32 || mov64;
}

/* Wider than true: any instruction with a one-operand or register form on eax. */
static bool may_write_rax(const ZydisDecodedInstruction *z)
{
	const struct ZydisDecodedInstructionModRm_ *m = &z->raw.modrm;

	if (!(z->attributes & ZYDIS_ATTRIB_HAS_MODRM))
		return z->meta.category != ZYDIS_CATEGORY_PUSH &&
		       z->meta.category != ZYDIS_CATEGORY_NOP && (z->opcode & 7) == 0;
	if (z->mnemonic == ZYDIS_MNEMONIC_CMP || z->mnemonic == ZYDIS_MNEMONIC_TEST)
		return false;
	return (m->reg == 0 && !z->raw.rex.R) || (m->mod == 3 && m->rm == 0 && !z->raw.rex.B) ||
	       z->meta.category == ZYDIS_CATEGORY_BINARY;
}

static uint32_t branch_flags(const ZydisDecodedInstruction *z)
{
	uint32_t f = 0;

	if (z->raw.imm[0].is_relative)
		f |= INSN_BRANCH;
	switch (z->meta.category) {
	case ZYDIS_CATEGORY_CALL:
		return f | (f & INSN_BRANCH ? INSN_CALL : 0);
	case ZYDIS_CATEGORY_RET:
		return f | INSN_RET | INSN_ENDS;
	case ZYDIS_CATEGORY_UNCOND_BR:
		if (f & INSN_BRANCH)
			return f | INSN_JUMP | INSN_ENDS;
		/* Through a fixed place in memory it is a call of another function. */
		if (z->raw.modrm.mod == 0 && z->raw.modrm.rm == 5)
			return f | INSN_ENDS;
		return f | INSN_INDIRECT | INSN_ENDS;
	default:
		if (z->mnemonic == ZYDIS_MNEMONIC_HLT || z->mnemonic == ZYDIS_MNEMONIC_UD2)
			f |= INSN_ENDS;
		return f;
	}
}

static uint32_t kind_flags(const uint8_t *p, const ZydisDecodedInstruction *z)
{
	switch (z->mnemonic) {
	case ZYDIS_MNEMONIC_SYSCALL:
		return INSN_SYSCALL;
	case ZYDIS_MNEMONIC_SYSENTER:
		return INSN_SYSENTER;
	case ZYDIS_MNEMONIC_INT:
		return p[1] == 0x80 ? INSN_INT80 : 0;
	case ZYDIS_MNEMONIC_RDTSC:
	case ZYDIS_MNEMONIC_RDTSCP:
	case ZYDIS_MNEMONIC_RDRAND:
	case ZYDIS_MNEMONIC_RDSEED:
		return INSN_MACHINE;
	case ZYDIS_MNEMONIC_NOP:
		return INSN_PAD;
	case ZYDIS_MNEMONIC_INT3:
		return INSN_PAD | INSN_ENDS;
	default:
		return 0;
	}
}

static const ZydisDecoder *decoder(void)
{
	static _Thread_local ZydisDecoder d;
	static _Thread_local bool ready;

	if (!ready) {
		ZydisDecoderInit(&d, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
		ready = true;
	}
	return &d;
}

bool insn_decode(const uint8_t *p, size_t len, uint64_t at, struct insn *out)
{
	ZydisDecodedInstruction z;
	uint32_t f;

	if (ZYAN_FAILED(ZydisDecoderDecodeInstruction(decoder(), NULL, p, len, &z)))
		return false;
	MUST(z.length && z.length <= len);	/* whoever walks goes on by it */
	out->at = at;
	out->len = z.length;
	out->imm = 0;
	out->disp_at = 0;
	f = branch_flags(&z) | kind_flags(p, &z);
	f |= may_move(&z) ? INSN_MOVES : 0;
	f |= touches_memory(&z) ? INSN_MEMORY : 0;
	f |= checks_rax(p, &z) ? INSN_CHECKS_RAX : 0;
	f |= p[0] == 0xf0 ? INSN_LOCK : 0;
	f |= may_write_rax(&z) ? INSN_WRITES_RAX : 0;
	if (sets_nr(p, &z, &out->imm))
		f |= INSN_SETS_NR;
	if (f & INSN_BRANCH) {
		out->imm = at + z.length + z.raw.imm[0].value.u;
	} else if (f & INSN_INDIRECT) {
		out->imm = (uint64_t)z.raw.disp.value;
	} else if ((z.attributes & ZYDIS_ATTRIB_HAS_MODRM) && z.raw.modrm.mod == 0 &&
		   z.raw.modrm.rm == 5) {
		f |= INSN_RIP | (z.mnemonic == ZYDIS_MNEMONIC_LEA ? INSN_LEA : 0);
		out->imm = at + z.length + (uint64_t)z.raw.disp.value;
		out->disp_at = z.raw.disp.offset;
	}
	out->flags = f;
	return true;
}
