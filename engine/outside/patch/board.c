/*
 * Boards: where a patched site jumps to.
 *
 *	<the window's instructions before the syscall>
 *	lea	resume(%rip),%rcx
 *	jmp	*%gs:T_GATE
 *	.quad	site_end		where the program thinks it returns to
 * resume:
 *	lea	site_end(%rip),%rcx	as the processor leaves it
 *	<the window's instructions after the syscall>
 *	jmp	window_end
 *
 * The program must not notice: a board changes no register but rcx, which the
 * syscall instruction changes too, touches neither flags nor stack nor the red
 * zone, and the instructions that it runs for the program stay in their order.
 * Moved instructions keep their length, so the offsets are known beforehand; a
 * RIP-relative operand gets a new displacement, and a closing `jmp` a long one.
 */
#include <errno.h>
#include <string.h>
#include "engine/abi/thread.h"
#include "engine/core/must.h"
#include "engine/outside/patch/board.h"
#include "engine/outside/patch/hook.h"
#include "engine/outside/plan/plan_parts.h"

/* Code in the making; the first error stays. */
struct code {
	uint8_t *out;
	size_t cap, len;
	uint64_t at;		/* run-time address of out[0] */
	int err;
};

static void put(struct code *c, const void *bytes, size_t n)
{
	if (c->len + n > c->cap)
		c->err = c->err ? c->err : -ENOSPC;
	if (c->err)
		return;
	memcpy(c->out + c->len, bytes, n);
	c->len += n;
}

/* A displacement to target, counted from the end of the four bytes. */
static void put_rel32(struct code *c, uint64_t target)
{
	int64_t rel = (int64_t)(target - (c->at + c->len + 4));
	int32_t low = (int32_t)rel;

	if (rel != low)
		c->err = c->err ? c->err : -ERANGE;
	put(c, &low, sizeof(low));
}

static void put_lea_rcx(struct code *c, uint64_t target)
{
	put(c, "\x48\x8d\x0d", 3);
	put_rel32(c, target);
}

static void put_jmp(struct code *c, uint64_t target)
{
	put(c, "\xe9", 1);
	put_rel32(c, target);
}

/* jmp *%gs:gate */
static void put_gate(struct code *c, uint32_t gate)
{
	put(c, "\x65\xff\x24\x25", 4);
	put(c, &gate, sizeof(gate));
}

/* The call proper: BOARD_CALL_BYTES long. */
static void put_call(struct code *c, uint64_t site_end)
{
	_Static_assert(BOARD_CALL_BYTES == 7 + 8 - BOARD_SITE_END, "lea, jmp, and the quad");
	put_lea_rcx(c, c->at + c->len + BOARD_CALL_BYTES);
	put_gate(c, T_GATE);
	put(c, &site_end, sizeof(site_end));
}

static void put_moved(struct code *c, const struct insn *i, const uint8_t *bytes)
{
	if (!(i->flags & INSN_RIP)) {
		put(c, bytes, i->len);
		return;
	}
	/* The displacement counts from the instruction's end, behind any immediate. */
	MUST(i->disp_at && i->disp_at + 4 <= i->len);
	put(c, bytes, i->disp_at);
	put_rel32(c, i->imm - (i->len - i->disp_at - 4u));
	put(c, bytes + i->disp_at + 4, i->len - i->disp_at - 4u);
}

/* Instructions [bytes, bytes+n) at run-time address `at`, none of them a branch. */
static void put_before(struct code *c, const uint8_t *bytes, size_t n, uint64_t at)
{
	struct insn i;

	for (size_t k = 0; !c->err && k < n; k += i.len) {
		if (!insn_decode(bytes + k, n - k, at + k, &i) || !(i.flags & INSN_MOVES)) {
			c->err = -EINVAL;
			return;
		}
		put_moved(c, &i, bytes + k);
	}
}

/* The same after the call; `ret` and `jmp` end it, and padding follows them. */
static void put_after(struct code *c, const uint8_t *bytes, size_t n, uint64_t at)
{
	struct insn i;

	for (size_t k = 0; !c->err && k < n; k += i.len) {
		if (!insn_decode(bytes + k, n - k, at + k, &i) ||
		    !(i.flags & (INSN_MOVES | INSN_RET | INSN_JUMP))) {
			c->err = -EINVAL;
			return;
		}
		if (i.flags & INSN_JUMP)
			put_jmp(c, i.imm);
		else
			put_moved(c, &i, bytes + k);
		if (i.flags & INSN_ENDS)
			return;
	}
	put_jmp(c, at + n);
}

long board_emit(const struct plan_site *s, const uint8_t *window, uint64_t site, uint64_t board,
		uint8_t *out, size_t cap)
{
	struct code c = { .out = out, .cap = cap, .at = board };
	uint64_t site_end = site + SITE_BYTES;

	if (!site_is_patched(s) || site_window(s) > SITE_WINDOW_MAX ||
	    s->before + s->after + SITE_BYTES < SITE_JUMP || window[s->before] != 0x0f ||
	    window[s->before + 1] != 0x05)
		return -EINVAL;
	put_before(&c, window, s->before, site - s->before);
	put_call(&c, site_end);
	MUST(c.err || c.len == board_resume(s));	/* where the gate comes back to */
	put_lea_rcx(&c, site_end);
	put_after(&c, window + s->before + SITE_BYTES, s->after, site_end);
	return c.err ? c.err : (long)c.len;
}

int board_jump(const struct plan_site *s, uint64_t site, uint64_t board, uint8_t jump[SITE_JUMP])
{
	struct code c = { .out = jump, .cap = SITE_JUMP, .at = site - s->before };

	MUST(s->kind != SITE_BEFORE || s->before >= SITE_JUMP);
	put_jmp(&c, board);
	return c.err;
}

/* --- entry boards: engine/abi/locks.h has their layout ------------------------------ */

/*
 * A call from the function's own place: unwinders must find the return address
 * of the original.  It begins as a call, for the processor to expect a return.
 */
static void put_call_from(struct code *c, uint64_t target, uint64_t back)
{
	uint32_t low = (uint32_t)back, high = (uint32_t)(back >> 32);

	put(c, "\xe8\x02\x00\x00\x00\x0f\x0b", 7);	/* call over an ud2 */
	put(c, "\xc7\x04\x24", 3);		/* mov to (%rsp) */
	put(c, &low, sizeof(low));
	put(c, "\xc7\x44\x24\x04", 4);	/* mov to 4(%rsp) */
	put(c, &high, sizeof(high));
	put_jmp(c, target);
}

static void put_branch(struct code *c, const struct insn *i, const uint8_t *bytes)
{
	bool is_short = (bytes[0] & 0xf0) == 0x70;
	bool is_near = bytes[0] == 0x0f && (bytes[1] & 0xf0) == 0x80;
	uint8_t jcc[2] = { 0x0f, (uint8_t)(0x80 | (bytes[is_near] & 0x0f)) };

	if (i->flags & INSN_JUMP) {
		put_jmp(c, i->imm);
	} else if (i->flags & INSN_CALL) {
		put_call_from(c, i->imm, i->at + i->len);
	} else if (is_short || is_near) {
		put(c, jcc, sizeof(jcc));
		put_rel32(c, i->imm);
	} else {
		c->err = -EINVAL;
	}
}

static void put_displaced(struct code *c, const struct hook *h, uint64_t at)
{
	struct insn i;

	for (size_t k = 0; !c->err && k < h->len; k += i.len) {
		if (!insn_decode(h->bytes + k, h->len - k, at + k, &i))
			c->err = -EINVAL;
		else if (i.flags & INSN_BRANCH)
			put_branch(c, &i, h->bytes + k);
		else if (i.flags & INSN_MOVES)
			put_moved(c, &i, h->bytes + k);
		else
			c->err = -EINVAL;
		if (c->err)
			return;
	}
	put_jmp(c, at + h->len);
}

/*
 * A request begins here.  What the function was given is as it was when it begins:
 * the gate changes rax, rcx and r11 only.
 */
static long seam_emit(struct code *c, const struct hook *h, uint64_t at)
{
	static const uint64_t no_site;
	uint32_t call = SEAM_HERE;

	put(c, "\x50\x51\x41\x53", 4);		/* push rax, rcx, r11 */
	put(c, "\xb8", 1);
	put(c, &call, sizeof(call));
	put(c, "\x48\x8d\x0d", 3);		/* lea back(%rip),%rcx */
	put_rel32(c, c->at + c->len + 4 + 8 + sizeof(no_site));	/* behind jmp and quad */
	put_gate(c, T_GATE);
	put(c, &no_site, sizeof(no_site));
	put(c, "\x41\x5b\x59\x58", 4);		/* back: pop them */
	put_displaced(c, h, at);
	return c->err ? c->err : (long)c->len;
}

long hook_emit(const struct hook *h, uint64_t at, uint64_t board, const uint64_t helper[3],
	       uint8_t *out, size_t cap)
{
	struct code c = { .out = out, .cap = cap, .at = board };
	uint32_t kind = h->kind;

	if (kind == LOCK_NONE)
		return seam_emit(&c, h, at);
	put(&c, "\xb8", 1);
	put(&c, &kind, sizeof(kind));
	put(&c, "\x4c\x8d\x1d", 3);		/* lea original(%rip),%r11 */
	put_rel32(&c, board + HOOK_ORIGINAL);
	put_gate(&c, T_LOCK_GATE);
	put(&c, helper, 3 * sizeof(helper[0]));
	_Static_assert(HOOK_ORIGINAL == 5 + 7 + 8 - HOOK_RELOCK, "mov, lea, jmp, and the quads");
	MUST(c.err || c.len == HOOK_ORIGINAL);
	if (h->whole)
		put(&c, h->bytes, h->len);
	else
		put_displaced(&c, h, at);
	return c.err ? c.err : (long)c.len;
}

int hook_jump(uint64_t at, uint64_t board, uint8_t jump[HOOK_JUMP])
{
	struct code c = { .out = jump, .cap = HOOK_JUMP, .at = at };

	put_jmp(&c, board);
	return c.err;
}
