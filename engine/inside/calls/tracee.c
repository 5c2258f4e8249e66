/*
 * What a task that shares our memory is told of our threads' registers.
 *
 * A sanitizer's search for leaks stops all threads by such a task (ptrace does not let
 * a thread stop its siblings) and looks for pointers in their registers, and on their
 * stacks from the stack pointer up.  A thread that is in the gate has the program's
 * registers in its frame and its stack pointer in our block: the search would miss what
 * a register holds, and take the whole of the stack, with all that was ever on it.  So
 * it gets what the kernel would have said had the thread made its call natively.
 */
#include <asm/unistd.h>
#include <linux/elf.h>
#include <linux/ptrace.h>

#include "engine/core/host.h"
#include "engine/inside/calls/tracee.h"
#include "engine/inside/gate/block.h"
#include "engine/inside/gate/gate.h"
#include "engine/inside/gate/thread.h"
#include "engine/inside/gate/ways.h"

#define PTRACE_GETREGS	12

/* The kernel's struct user_regs_struct. */
struct user_regs {
	uint64_t r15, r14, r13, r12, rbp, rbx, r11, r10, r9, r8, rax, rcx, rdx, rsi, rdi;
	uint64_t orig_rax, rip, cs, flags, rsp, ss;
	uint64_t fs_base, gs_base, ds, es, fs, gs;
};

_Static_assert(sizeof(struct user_regs) == 216, "user_regs_struct");

static const struct thread *thread_of(int32_t tid)
{
	struct thread *t;

	for (uint32_t i = 0; (t = block_next(&i)); i++)
		if (t->tid == tid)
			return t;
	return NULL;
}

/* In C code of the long way: both pushed the program's stack pointer (`slow`, `quick`). */
static bool is_in_frame(const struct thread *t, const struct user_regs *r)
{
	return t->busy && r->rsp > (uint64_t)t && r->rsp < t->stack_top &&
	       *(const uint64_t *)(t->stack_top - 8) == t->frame.rsp;
}

static void frame_show(const struct frame *f, struct user_regs *r)
{
	r->rdi = f->rdi;
	r->rsi = f->rsi;
	r->rdx = f->rdx;
	r->r10 = f->r10;
	r->r8 = f->r8;
	r->r9 = f->r9;
	r->rbx = f->rbx;
	r->rbp = f->rbp;
	r->r12 = f->r12;
	r->r13 = f->r13;
	r->r14 = f->r14;
	r->r15 = f->r15;
	r->rsp = f->rsp;
	r->r11 = r->flags = f->flags;
	r->rcx = r->rip = f->site_end;
}

/* Where the answer is; 0: it is no such question, or not for all registers. */
static uint64_t regs_asked(const struct frame *f)
{
	uint64_t vector[2];

	if (f->rdi == PTRACE_GETREGS)
		return f->r10;
	if (f->rdi != PTRACE_GETREGSET || f->rdx != NT_PRSTATUS ||
	    target_in(vector, f->r10, sizeof(vector)) || vector[1] < sizeof(struct user_regs))
		return 0;
	return vector[0];
}

long serve_ptrace(struct thread *t)
{
	long result = call_kernel(t);
	uint64_t at = result < 0 ? 0 : regs_asked(&t->frame);
	const struct thread *of = at ? thread_of((int32_t)t->frame.rsi) : NULL;
	struct user_regs r;

	if (!of || target_in(&r, at, sizeof(r)))
		return result;
	if (is_in_frame(of, &r))
		frame_show(&of->frame, &r);
	else if (in_short_call(r.rip))
		r.r15 = of->r15;
	target_out(at, &r, sizeof(r));
	return result;
}
