/*
 * Leaving the gate.  A signal may find a thread at any instruction of ours, and
 * what the program is then shown, and comes back to, must be a place of its own.
 * The labels of gate.S say what has been done up to each instruction: a thread
 * on the short way, or in a board, is taken to just before its call or to just
 * behind it; one in C code is sent where it learns that a signal waits.
 */
#include <asm/unistd.h>
#include <linux/errno.h>
#include <linux/signal.h>

#include "engine/core/must.h"
#include "engine/inside/gate/gate.h"
#include "engine/inside/gate/memory.h"
#include "engine/inside/gate/thread.h"
#include "engine/inside/lanes/rest.h"
#include "engine/inside/signal/leave.h"
#include "engine/inside/signal/sigcalls.h"
#include "engine/inside/signal/ucontext.h"

#define SYSCALL_BYTES	0x050f	/* the instruction, as it is read */
#define SYSCALL_LEN	2
#define RDTSC_LEN	2

extern char gate_net[], held_exit[], call_interrupted[], slow_interrupted[];

struct code_range {
	const char *from, *to, *go;
};

/* Sends a thread that stands in a range elsewhere. */
static bool range_redirect(uint64_t *rip, const struct code_range *r)
{
	if (*rip < (uint64_t)r->from || *rip >= (uint64_t)r->to)
		return false;
	*rip = (uint64_t)r->go;
	return true;
}

#define RANGE(n, goes) (&(struct code_range){ n, n##_end, goes })

void window_leave(uint64_t *rip)
{
	extern char exit_window[], exit_window_end[];
	extern char sigreturn_window[], sigreturn_window_end[];
	extern char stack_window[], stack_window_end[], stack_held[];
	extern char told_window[], told_window_end[], told_held[];
	extern char clock_gettime_window[], clock_gettime_window_end[], clock_gettime_held[];
	extern char gettimeofday_window[], gettimeofday_window_end[], gettimeofday_held[];
	extern char time_window[], time_window_end[], time_held[];
	extern char call_kernel_patch_window[], call_kernel_patch_window_end[];
	extern char call_kernel_net_window[], call_kernel_net_window_end[];
	extern char tell_patch_window[], tell_patch_window_end[];
	extern char tell_net_window[], tell_net_window_end[];
	extern char ask_patch_window[], ask_patch_window_end[], ask_patch_interrupted[];
	extern char ask_net_window[], ask_net_window_end[], ask_net_interrupted[];

	if (!range_redirect(rip, RANGE(exit_window, held_exit)) &&
	    !range_redirect(rip, RANGE(stack_window, stack_held)) &&
	    !range_redirect(rip, RANGE(told_window, told_held)) &&
	    !range_redirect(rip, RANGE(clock_gettime_window, clock_gettime_held)) &&
	    !range_redirect(rip, RANGE(gettimeofday_window, gettimeofday_held)) &&
	    !range_redirect(rip, RANGE(time_window, time_held)) &&
	    !range_redirect(rip, RANGE(sigreturn_window, held_exit)) &&
	    !range_redirect(rip, RANGE(tell_patch_window, slow_interrupted)) &&
	    !range_redirect(rip, RANGE(tell_net_window, slow_interrupted)) &&
	    !range_redirect(rip, RANGE(ask_patch_window, ask_patch_interrupted)) &&
	    !range_redirect(rip, RANGE(ask_net_window, ask_net_interrupted)) &&
	    !range_redirect(rip, RANGE(call_kernel_patch_window, call_interrupted)))
		range_redirect(rip, RANGE(call_kernel_net_window, call_interrupted));
}

/*
 * The program's own instruction is whole where a site was patched before it.  Its code may
 * be gone by now: another thread has unmapped it.
 */
static bool site_whole(uint64_t site_end)
{
	uint16_t call;

	return !code_read(&call, site_end - 2, 2) &&
	       (call == SYSCALL_BYTES || call == MARK_SYSCALL);
}

/*
 * Makes the context one that the program could be in: behind its call, or at
 * it.  Where the jump lies over the call itself there is no such address, and
 * the gate's or the board's must do.
 */
void call_context(struct gregs *r, uint64_t resume, enum tier tier, bool done)
{
	extern char gate_patch[];
	uint64_t end = tier == TIER_PATCH ? *(uint64_t *)(resume + BOARD_SITE_END) : resume;
	bool whole = end && site_whole(end);	/* our vDSO's calls have no site */

	r->rcx = whole ? end : resume;
	if (done)
		r->rip = r->rcx;
	else if (whole)
		r->rip = end - 2;
	else
		r->rip = tier == TIER_PATCH ? (uint64_t)gate_patch : (uint64_t)gate_net;
}

const uint8_t *code_at(uint64_t rip, uint8_t to[CODE_LOOK])
{
	unsigned left = 4096 - (rip & 4095);

	if (left >= CODE_LOOK)
		return (const uint8_t *)rip;
	bytes_zero(to, CODE_LOOK);
	if (code_read(to, rip, CODE_LOOK))
		bytes_copy(to, (const void *)rip, left);
	return to;
}

/* The gate's labels, in the order of their addresses. */
struct gate_labels {
	const char *entry, *busy, *counter, *counter_end;
	const char *saved, *call, *after, *restored, *counted, *end;
	enum tier tier;
};

#define GATE_LABELS(n, t) \
	{ n, n##_busy, n##_counter, n##_counter_end, n##_saved, n##_call, n##_after,		\
	  n##_restored, n##_counted, n##_end, t }
#define GATE_EXTERN(n) \
	extern char n[], n##_busy[], n##_counter[], n##_counter_end[], n##_saved[],		\
		n##_call[], n##_after[], n##_restored[], n##_counted[], n##_end[]

static bool gate_left_by(const struct thread *t, struct gregs *r, const struct gate_labels *g)
{
	const char *at = (const char *)r->rip;
	uint64_t resume = at == g->entry ? r->rcx : t->frame.resume;

	if (at < g->entry || at >= g->end)
		return false;
	if (at >= g->saved && at < g->restored)
		r->r15 = t->r15;
	if (at > g->restored)
		r->r11 = t->flags;
	if (at >= g->counter && at < g->counter_end) {
		r->rax = t->frame.rax;
		r->rdx = t->frame.rdx;
	}
	call_context(r, resume, g->tier, at >= g->after);
	return true;
}

/*
 * Boards lie anywhere; they are known by their bytes, which end with the jump
 * through GS that nothing else contains (board.c of the planner writes it):
 *	[mov $nr,%eax] lea resume(%rip),%rcx; jmp *%gs:T_GATE; .quad end;
 *	resume: lea end(%rip),%rcx; ... jmp window_end
 */
#define LEA_BYTES	7
#define JUMP_BYTES	8
#define MOV_BYTES	5
#define BOARD_BACK	24	/* bytes of it that may lie before an instruction, */
#define BOARD_LOOK	40	/* and from it on */
_Static_assert(BOARD_BACK >= LEA_BYTES + 2 * JUMP_BYTES, "from its jump back to its lea");
_Static_assert(BOARD_LOOK >= MOV_BYTES + LEA_BYTES + 2 * JUMP_BYTES, "from its mov on");

/* A piece of code around an instruction; what cannot be read is zero. */
struct code {
	uint8_t bytes[BOARD_BACK + BOARD_LOOK];
};

static uint64_t code_word(const struct code *c, int at, unsigned bytes)
{
	uint64_t word = 0;

	MUST(at >= -BOARD_BACK && at + (int)bytes <= BOARD_LOOK && bytes <= sizeof(word));

	bytes_copy(&word, c->bytes + BOARD_BACK + at, bytes);
	return word;
}

static bool is_lea_rcx(const struct code *c, int at)
{
	return code_word(c, at, 3) == 0x0d8d48;
}

static bool is_gate_jump(const struct code *c, int at)
{
	return code_word(c, at, 8) == ((uint64_t)T_GATE << 32 | 0x2524ff65);
}

/* Where the displacement at `at` leads, in an instruction that ends at `end`. */
static uint64_t code_target(const struct code *c, uint64_t rip, int at, int end)
{
	return rip + (uint64_t)end + (uint64_t)(int64_t)(int32_t)code_word(c, at, 4);
}

/* A thread in a board: at its call, or behind it. */
static void board_leave_by(struct gregs *r, const struct code *c)
{
	uint64_t rip = r->rip;
	int at = 0;

	if (is_lea_rcx(c, 0) && is_gate_jump(c, -2 * JUMP_BYTES)) {
		call_context(r, rip, TIER_PATCH, true);
		return;
	}
	if (code_word(c, 0, 1) == 0xb8 && is_lea_rcx(c, MOV_BYTES) &&
	    is_gate_jump(c, MOV_BYTES + LEA_BYTES)) {
		r->rax = code_word(c, 1, 4);
		at += MOV_BYTES;
	}
	if (is_lea_rcx(c, at) && is_gate_jump(c, at + LEA_BYTES))
		call_context(r, code_target(c, rip, at + 3, at + LEA_BYTES), TIER_PATCH, false);
	else if (is_gate_jump(c, at))
		call_context(r, rip + (uint64_t)at + 2 * JUMP_BYTES, TIER_PATCH, false);
	else if (code_word(c, at, 1) == 0xe9 && is_lea_rcx(c, at - LEA_BYTES) &&
		 is_gate_jump(c, at - LEA_BYTES - 2 * JUMP_BYTES))
		r->rip = code_target(c, rip, at + 1, at + 5);
}

/* The thread may have jumped to where no code is. */
static void board_leave(struct gregs *r)
{
	struct code c;

	if ((r->rip & 4095) >= BOARD_BACK && (r->rip & 4095) <= 4096 - BOARD_LOOK &&
	    !code_read(&c, r->rip - BOARD_BACK, sizeof(c)))
		board_leave_by(r, &c);
}

/*
 * One that is about to give its frame to the kernel is taken back to its rt_sigreturn:
 * its stack is the program's already, but nothing has been done.
 */
void sigreturn_leave(struct thread *t, struct gregs *r)
{
	extern char sigreturn_window_end[], sigreturn_end[];
	extern char sigreturn_patch[], sigreturn_patch_end[];
	extern char sigreturn_net[], sigreturn_net_end[];

	if ((r->rip < (uint64_t)sigreturn_window_end || r->rip >= (uint64_t)sigreturn_end) &&
	    (r->rip < (uint64_t)sigreturn_patch || r->rip >= (uint64_t)sigreturn_patch_end) &&
	    (r->rip < (uint64_t)sigreturn_net || r->rip >= (uint64_t)sigreturn_net_end))
		return;
	call_context(r, t->frame.resume, t->tier, false);
	sigreturn_undo(t);
	t->restart = 0;
}

static void gate_left(const struct thread *t, struct gregs *r)
{
	GATE_EXTERN(gate_patch);
	GATE_EXTERN(gate_net);

	if (!gate_left_by(t, r, &(struct gate_labels)GATE_LABELS(gate_patch, TIER_PATCH)) &&
	    !gate_left_by(t, r, &(struct gate_labels)GATE_LABELS(gate_net, TIER_NET)))
		board_leave(r);
}

/* Its call has been made, and is not counted yet. */
static void call_count(struct thread *t, uint64_t rip)
{
	GATE_EXTERN(gate_patch);
	GATE_EXTERN(gate_net);

	if (rip - (uint64_t)gate_patch_after < (uint64_t)(gate_patch_counted - gate_patch_after))
		t->counts[TIER_PATCH * SLOT_CALLS + t->call_slot]++;
	if (rip - (uint64_t)gate_net_after < (uint64_t)(gate_net_counted - gate_net_after))
		t->counts[TIER_NET * SLOT_CALLS + t->call_slot]++;
}

void gate_leave(struct thread *t, struct gregs *r)
{
	call_count(t, r->rip);
	gate_left(t, r);
}

uint64_t gate_place(const struct thread *t, const struct gregs *r)
{
	struct gregs left = *r;

	gate_left(t, &left);
	return left.rip;
}

/* Right behind a call of the program's that it did not make on the short way. */
static bool is_call_end(uint64_t rip)
{
	extern char call_kernel_patch_window_end[], call_kernel_net_window_end[];
	extern char tell_patch_window_end[], tell_net_window_end[];
	extern char ask_patch_window_end[], ask_net_window_end[];

	return rip == (uint64_t)call_kernel_patch_window_end ||
	       rip == (uint64_t)call_kernel_net_window_end ||
	       rip == (uint64_t)tell_patch_window_end || rip == (uint64_t)tell_net_window_end ||
	       rip == (uint64_t)ask_patch_window_end || rip == (uint64_t)ask_net_window_end;
}

bool call_begins(const struct gregs *r)
{
	return is_call_end(r->rip) ? r->rax == (uint64_t)-EINTR :
				     is_call_end(r->rip + SYSCALL_LEN);
}

/* The same for a thread in C code: the call will be made again from the start. */
void call_interrupt(struct thread *t, struct gregs *r)
{
	if (is_call_end(r->rip) && r->rax == (uint64_t)-EINTR) {
		rest_cut(t, (int32_t)t->frame.rax, t->frame.arg);
		r->rip--;	/* the last byte of its syscall: in the window */
	}
	window_leave(&r->rip);
}

void boundary_ask(struct thread *t, struct ucontext_raw *uc)
{
	MUST(t->busy && !t->pending);
	bytes_zero(t->held_info, SIGINFO_SIZE);
	t->held_mask = uc->mask;
	t->pending = 1;
	uc->mask = ALL_SIGNALS & ~HIDDEN_SIGNALS;
	call_interrupt(t, &uc->regs);
}

/* Memory of the program was bad: the copy ends with -EFAULT. */
bool copy_failed_at(struct gregs *r)
{
	extern char copy_try[], copy_try_end[], copy_failed[];
	extern char clock_gettime_try[], clock_gettime_try_end[], clock_gettime_failed[];
	extern char gettimeofday_try[], gettimeofday_try_end[], gettimeofday_failed[];

	return range_redirect(&r->rip, RANGE(copy_try, copy_failed)) ||
	       range_redirect(&r->rip, RANGE(clock_gettime_try, clock_gettime_failed)) ||
	       range_redirect(&r->rip, RANGE(gettimeofday_try, gettimeofday_failed));
}

/* A program may have it fault (PR_SET_TSC): then it is not known when the call came. */
bool counter_failed_at(struct gregs *r)
{
	GATE_EXTERN(gate_patch);
	GATE_EXTERN(gate_net);

	if (r->rip != (uint64_t)gate_patch_counter && r->rip != (uint64_t)gate_net_counter)
		return false;
	r->rax = r->rdx = 0;
	r->rip += RDTSC_LEN;
	return true;
}

/* The thread stands behind such a call, cut short; its number, or -1. */
long call_cut(const struct thread *t, const struct gregs *r)
{
	GATE_EXTERN(gate_patch);
	GATE_EXTERN(gate_net);
	bool gate = r->rip == (uint64_t)gate_patch_after || r->rip == (uint64_t)gate_net_after;

	return gate && r->rax == (uint64_t)-EINTR ? (long)t->call_slot - 1 : -1;
}

/* The kernel has taken it back there, to make the call again; or it was never made. */
static const char *call_ahead(const struct gregs *r)
{
	GATE_EXTERN(gate_patch);
	GATE_EXTERN(gate_net);

	return r->rip == (uint64_t)gate_patch_call ? gate_patch_after :
	       r->rip == (uint64_t)gate_net_call ? gate_net_after : NULL;
}

long call_pending(const struct thread *t, const struct gregs *r)
{
	return call_ahead(r) ? (long)t->call_slot - 1 : call_cut(t, r);
}

void call_end(struct gregs *r, long result)
{
	const char *after = call_ahead(r);

	if (after)
		r->rip = (uint64_t)after;
	r->rax = (uint64_t)result;
}

/*
 * A signal of ours cut a call short that the program must not see cut: it is
 * made again.  Calls that the kernel restarts by itself stand at the call.
 */
void call_again(struct thread *t, struct gregs *r)
{
	GATE_EXTERN(gate_patch);
	GATE_EXTERN(gate_net);
	bool gate = r->rip == (uint64_t)gate_patch_after || r->rip == (uint64_t)gate_net_after;
	bool busy = is_call_end(r->rip);

	if (r->rax != (uint64_t)-EINTR || (!gate && !busy) || (gate && !t->call_slot))
		return;
	r->rax = gate ? (uint64_t)t->call_slot - 1 : t->frame.rax;
	r->rip -= 2;
}

/*
 * The same by the long way: what is left of its time is made out there.  The gate has noted
 * where the call came from.
 */
void call_again_timed(const struct thread *t, struct gregs *r)
{
	extern char slow_patch[], slow_net[], gate_patch[], gate_patch_end[];
	bool patch = r->rip >= (uint64_t)gate_patch && r->rip < (uint64_t)gate_patch_end;

	r->rax = (uint64_t)t->call_slot - 1;
	r->r15 = t->r15;
	r->rip = patch ? (uint64_t)slow_patch : (uint64_t)slow_net;
}
