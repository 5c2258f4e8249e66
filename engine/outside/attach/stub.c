/* See stub.h. */
#include <errno.h>
#include <string.h>
#include <sys/ptrace.h>

#include "engine/core/must.h"
#include "engine/outside/attach/stub.h"
#include "engine/outside/session/memory.h"
#include "engine/outside/takeover/takeover.h"

#define PAGE		4096u
#define ALL_BLOCKED	(~0ull)

/*
 * The code, with holes for numbers:
 *	syscall
 *	rt_sigprocmask(SIG_SETMASK, &mask, NULL, 8)	by mov, which leave the flags alone
 *	the registers that a call takes or changes
 *	jmp to where it was
 */
struct __attribute__((packed)) code {
	uint8_t call[2];
	uint8_t mask_nr[5], mask_how[5], mask_at[2];
	uint64_t mask_address;
	uint8_t mask_none[5], mask_size[6], mask_call[2];
	struct __attribute__((packed)) { uint8_t move[2]; uint64_t value; } reg[9];
	uint8_t jump[6];
	uint64_t rip;
	uint64_t mask;
};

static const struct code code_plain = {
	{ 0x0f, 0x05 },
	{ 0xb8, 14 }, { 0xbf, 2 }, { 0x48, 0xbe }, 0, { 0xba }, { 0x41, 0xba, 8 }, { 0x0f, 0x05 },
	{ { { 0x48, 0xb8 }, 0 }, { { 0x48, 0xbf }, 0 }, { { 0x48, 0xbe }, 0 },
	  { { 0x48, 0xba }, 0 }, { { 0x49, 0xba }, 0 }, { { 0x49, 0xb8 }, 0 },
	  { { 0x49, 0xb9 }, 0 }, { { 0x48, 0xb9 }, 0 }, { { 0x49, 0xbb }, 0 } },
	{ 0xff, 0x25 }, 0, 0,
};

static bool room_is(int memory, uint64_t end, uint8_t *bytes)
{
	if (memory_read(memory, end - sizeof(struct code), bytes, sizeof(struct code)))
		return false;
	for (size_t i = 0; i < sizeof(struct code); i++)
		if (bytes[i])
			return false;
	return true;
}

uint64_t stub_room(int memory, const struct maps *maps)
{
	uint8_t bytes[sizeof(struct code)];

	for (size_t i = 0; i < maps->n; i++) {
		const struct map *m = &maps->map[i];

		if (m->exec && !m->inode && !strcmp(m->path, "[vdso]") &&
		    room_is(memory, m->end, bytes))
			return m->end - sizeof(struct code);
	}
	return 0;
}

static struct stander *who(struct stub *s)
{
	MUST(s->crowd->n);
	return &s->crowd->stander[0];
}

/* Where it goes back to by itself may have changed since. */
static int code_write(struct stub *s)
{
	const struct stander *w = who(s);
	const struct user_regs_struct *r = &w->regs;
	const uint64_t value[9] = { r->rax, r->rdi, r->rsi, r->rdx, r->r10, r->r8, r->r9, r->rcx,
				    r->r11 };
	struct code c = code_plain;

	for (int i = 0; i < 9; i++)
		c.reg[i].value = value[i];
	c.mask_address = s->at + offsetof(struct code, mask);
	c.mask = w->mask;
	c.rip = r->rip;
	return memory_write(s->memory, s->at, &c, sizeof(c));
}

/* The call begins, and has been made: it stands at both. */
static long call_made(struct stub *s, pid_t tid)
{
	const struct step_time time = step_time_begin(s->crowd, tid);
	struct user_regs_struct regs;
	int result = stander_step_call(s->crowd, &time);

	if (!result)
		result = stander_step_call(s->crowd, &time);
	if (!result && ptrace(PTRACE_GETREGS, tid, 0, &regs) < 0)
		result = -errno;
	return result ? result : (long)regs.rax;
}

/* Before it may go wrong again it is where it was. */
static long stub_call(void *stub, long nr, const uint64_t args[6])
{
	struct stub *s = stub;
	const struct stander was = *who(s);
	struct user_regs_struct regs = was.regs;
	uint64_t blocked = ALL_BLOCKED;
	long result;

	regs.rip = s->at;
	regs.rax = (uint64_t)nr;
	regs.rdi = args[0];
	regs.rsi = args[1];
	regs.rdx = args[2];
	regs.r10 = args[3];
	regs.r8 = args[4];
	regs.r9 = args[5];
	result = code_write(s);
	/* The registers first: killed between the two, it gets its mask back by the code. */
	if (!result && (ptrace(PTRACE_SETREGS, was.tid, 0, &regs) < 0 ||
			ptrace(PTRACE_SETSIGMASK, was.tid, 8, &blocked) < 0))
		result = -errno;
	if (!result)
		result = call_made(s, was.tid);
	if (stander_set(who(s), &was.regs, was.mask))
		result = -ESRCH;
	return result;
}

void stub_begin(struct stub *s, struct crowd *c, uint64_t at, int memory, struct remote *r)
{
	MUST(at && at % PAGE + sizeof(struct code) <= PAGE && c->n);
	*s = (struct stub){ c, at, memory };
	*r = (struct remote){ .pid = c->pid, .memory = memory, .regs = c->stander[0].regs,
			      .way = stub_call, .way_of = s };
}

void stub_end(struct stub *s)
{
	static const uint8_t none[sizeof(struct code)];

	memory_write(s->memory, s->at, none, sizeof(none));
}
