/*
 * The frame of a signal on the program's stack, as the kernel would have built it.  That
 * stack may be no stack at all: each page of the frame is first written to by the kernel,
 * for which a bad address is a result, and which lets a stack grow that may.  Our own
 * writing would be a fault in a handler of ours, and the end of the program without its
 * own handler.
 */
#include <asm/unistd.h>
#include <linux/signal.h>

#include "engine/inside/actions/actions.h"
#include "engine/inside/gate/gate.h"
#include "engine/inside/gate/memory.h"
#include "engine/inside/gate/thread.h"
#include "engine/inside/rules/rules_object.h"
#include "engine/inside/signal/sigframe.h"
#include "engine/inside/signal/signals.h"
#include "engine/inside/signal/ucontext.h"

#define RED_ZONE	128
#define PAGE		4096ull
_Static_assert(sizeof(struct rt_frame) % 8 == 0, "the kernel's frames end on words");

/* The program's handlers could be on it already. */
static bool stands_on(const struct altstack *a, uint64_t sp)
{
	return !(a->flags & AUTODISARM) && on_stack(a, sp);
}

static uint64_t fp_size(uint64_t fpstate)
{
	const uint8_t *fp = (const uint8_t *)fpstate;

	if (!fpstate)
		return 0;
	if (*(const uint32_t *)(fp + FP_MAGIC_AT) != FP_MAGIC1)
		return FP_PLAIN_SIZE;
	return *(const uint32_t *)(fp + FP_SIZE_AT);
}

bool frame_fp_take(uint64_t ours, uint64_t theirs)
{
	uint32_t magic[2], size[2];

	if (!ours || !theirs)
		return !ours && !theirs;
	if (target_in(&magic[0], ours + FP_MAGIC_AT, 4) ||
	    target_in(&size[0], ours + FP_SIZE_AT, 4) ||
	    target_in(&magic[1], theirs + FP_MAGIC_AT, 4) ||
	    target_in(&size[1], theirs + FP_SIZE_AT, 4) || magic[0] != magic[1] ||
	    (magic[0] == FP_MAGIC1 && size[0] != size[1]))
		return false;
	return !target_in((void *)ours, theirs, fp_size(ours));
}

static bool goes_over(const struct thread *t, const struct action *a, uint64_t sp)
{
	return a->flags & SA_ONSTACK && t->alt.size && !(t->alt.flags & SS_DISABLE) &&
	       !stands_on(&t->alt, sp - RED_ZONE);
}

static bool page_writable(uint64_t at)
{
	return !OWN4(__NR_rt_sigprocmask, SIG_BLOCK, 0, at, 8);
}

/* From the top on: a stack grows by what lies close below it. */
static bool room_writable(uint64_t from, uint64_t to)
{
	uint64_t at = (to - 8) & ~7ull;

	for (; at > from; at = at - from > PAGE ? at - PAGE : from)
		if (!page_writable(at))
			return false;
	return page_writable(from);
}

static uint64_t frame_place(struct thread *t, const struct action *a, uint64_t sp, uint64_t fpstate,
		     uint64_t *fp)
{
	bool over = goes_over(t, a, sp), nested = stands_on(&t->alt, sp);
	uint64_t top = over ? t->alt.sp + t->alt.size : sp - RED_ZONE, at;

	*fp = (top - fp_size(fpstate)) & ~63ull;
	at = ((*fp - sizeof(struct rt_frame)) & ~15ull) - 8;
	if ((over || nested) && !on_stack(&t->alt, at))
		return 0;
	return at < top && room_writable(at, *fp + fp_size(fpstate)) ? at : 0;
}

/*
 * What the program reads there.  Its handler ends at the gate, which gives the kernel what is
 * ours instead; while that is not sure, ours stands there, and the gate knows it (frame_settle).
 */
static void programs_say(const struct thread *t, struct ucontext_raw *uc)
{
	uc->stack = t->alt;
	if (!t->alt.size)
		uc->stack.flags = SS_DISABLE;
	uc->mask |= t->hidden_blocked;
}

uint64_t frame_build(struct thread *t, const struct action *a, const uint8_t *info,
		     const struct ucontext_raw *uc)
{
	uint64_t fp, at = frame_place(t, a, uc->regs.rsp, uc->fpstate, &fp);
	struct rt_frame *f = (struct rt_frame *)at;

	if (!at)
		return 0;
	bytes_copy((void *)fp, (const void *)uc->fpstate, fp_size(uc->fpstate));
	f->restorer = a->restorer;
	bytes_copy(&f->uc, uc, sizeof(*uc));
	bytes_copy(f->info, info, SIGINFO_SIZE);
	f->uc.fpstate = uc->fpstate ? fp : 0;
	if (!__atomic_load_n(&boot.between, __ATOMIC_RELAXED))
		programs_say(t, &f->uc);
	else
		f->uc.stack = (struct altstack){ (uint64_t)t + BLOCK_SIGSTACK, 0, 0,
						 BLOCK_SIGSTACK_SIZE };
	return at;
}
