/*
 * A request of a program with checkpoints (engine/checkpoint) fails: by a fault, an abort, a
 * trap.  The thread is sent to the program's own runtime, on a stack of its own, where it asks
 * whether it may go back (record/back.c), and takes memory back.
 *
 * What holds: nothing of the inside's memory goes back (`own`); a thread goes back only if its
 * request is open, nothing has happened in it that others have seen or that the kernel keeps,
 * and no handler has begun in it that still runs.
 *
 * The structure is the program's own memory, as believed as its libc is: who writes over it harms
 * himself.
 */
#include <linux/signal.h>

#include "engine/core/must.h"
#include "engine/core/pairs.h"
#include "engine/inside/gate/block.h"
#include "engine/inside/gate/memory.h"
#include "engine/inside/gate/request.h"
#include "engine/inside/gate/thread.h"
#include "engine/inside/lanes/patience.h"
#include "engine/inside/lanes/window.h"
#include "engine/inside/rollback/rollback.h"

#define STACK_ALIGNED	16ull
#define FLAGS_CLEARED	0x10500ull	/* TF, DF, RF */

/* What failed last: one thread has requests, so there is one. */
static struct {
	int sig;
	uint64_t at;
	bool told;	/* by the leader's event */
	bool under_way;	/* until it is taken back */
	bool given_up;	/* it was tried, and the program dies of it */
} failure;

void rollback_begin(void)
{
	struct rollback *r = rollback_of();

	if (!r)
		return;
	MUST(boot.text < boot.block);
	r->own[0].from = boot.text & ~0xfffull;
	r->own[0].to = boot.block + BLOCK_SIZE;
	own_range(&r->own[1].from, &r->own[1].to);
	r->reply = (uint64_t)brief()->amends.reply;
	r->reply_size = brief()->amends.size;
	r->refuse = brief()->amends.refuse;
	r->brings = brief()->amends.brings;
	r->follows = boot.role == ROLE_FOLLOWER;
	r->held = 1;
}

void rollback_lead(struct thread *t)
{
	(void)t;
	if (rollback_of())
		rollback_of()->follows = 0;
}

void rollback_follow(struct thread *t)
{
	(void)t;
	if (rollback_of())
		rollback_of()->follows = 1;
}

static bool is_owner(const struct thread *t)
{
	int32_t owner = rollback_of()->owner;

	return owner && (owner == t->vtid || owner == t->tid);
}

bool rollback_is_open(const struct thread *t)
{
	const struct rollback *r = rollback_of();

	return r && r->open && is_owner(t);
}

void rollback_spoil(const char *why)
{
	if (!rollback_of()->spoilt)
		rollback_of()->spoilt = (uint64_t)why;
}

void rollback_handler(struct thread *t, bool begins)
{
	struct rollback *r = rollback_of();

	if (!r || !is_owner(t))
		return;
	if (begins)
		r->handlers++;
	else if (r->handlers)
		r->handlers--;
}

bool rollback_keeps(int32_t fd)
{
	const struct rollback *r = rollback_of();

	for (unsigned i = 0; r && fd > 0 && i < sizeof(r->kernel) / sizeof(r->kernel[0]); i++)
		if (r->kernel[i] == fd)
			return true;
	return false;
}

void rollback_over(bool taken_back)
{
	failure.under_way = false;
	failure.given_up = !taken_back;
}

bool rollback_failed(int *sig, uint64_t *at)
{
	*sig = failure.sig;
	*at = failure.at;
	return failure.told;
}

/*
 * A follower's thread that waits for its next event has not run since it began to, however often
 * it was woken.  Places only grow: their sum is the same if each is.
 */
static long others_read(const struct thread *t)
{
	const struct thread *o;
	uint64_t places = 0;

	for (uint32_t i = 0; (o = block_next(&i)); i++) {
		if (o == t || o->pid != t->pid)
			continue;
		if (!o->following || CONSUME(thread_waits, &o->waits) != 1)
			return -1;
		places += __atomic_load_n(&o->reader.pos, __ATOMIC_RELAXED);
	}
	return (long)(places & INT64_MAX);
}

/* The leader's stood when its request began; ours may not be there yet. */
long rollback_others(const struct thread *t, bool begins)
{
	static bool at_work;	/* they were, for longer than is waited for */
	struct patience p = PATIENCE(WAIT_idle);
	long read;

	while ((read = others_read(t)) < 0 && begins && !at_work && patience_step(&p))
		;
	patience_end(&p);
	if (begins)
		at_work = read < 0;
	return read;
}

/* It is the program's memory: what failed may have written there. */
static bool is_ready(void)
{
	const struct rollback *r = rollback_of();

	return r && r->go && r->stack;
}

/* Words; NULL: it may be tried. */
static const char *refusal(const struct thread *t)
{
	const struct rollback *r = rollback_of();

	if (!is_owner(t))
		return "it came in another thread than requests, or before the first";
	if (failure.under_way)
		return "it failed again while it was taken back";
	if (!r->open)
		return r->ended ? (const char *)r->ended : "no request had begun";
	if (r->spoilt)
		return (const char *)r->spoilt;
	return r->handlers != r->handlers_then ? "it came in a handler" : NULL;
}

static uint64_t runtime_stack(void)
{
	return (rollback_of()->stack & ~(STACK_ALIGNED - 1)) - sizeof(uint64_t);
}

static void goes_back(struct gregs *regs)
{
	failure.under_way = true;
	regs->rip = rollback_of()->go;
	regs->rsp = runtime_stack();
	regs->rdi = (uint64_t)failure.sig;
	regs->flags &= ~FLAGS_CLEARED;
}

bool rollback_fault(struct thread *t, int sig, uint64_t at, struct gregs *r)
{
	const char *why;

	if (!is_ready() || failure.given_up)
		return false;
	why = refusal(t);
	place_note(t, r->rip, r->rsp,
		   (uint64_t[SAVED]){ r->rbx, r->rbp, r->r12, r->r13, r->r14, r->r15 });
	if (why) {
		if (!t->following)
			request_ask(t, REQ_ROLLBACK, ROLLBACK_NOT, (uint64_t)sig, (uint64_t)why);
		return false;
	}
	failure.sig = sig;
	failure.at = at;
	failure.told = false;
	goes_back(r);
	return true;
}

/* By the call in the frame, which is not made. */
static void call_goes_back(struct thread *t)
{
	struct frame *f = &t->frame;

	failure.under_way = true;
	f->resume = rollback_of()->go;
	f->rsp = runtime_stack();
	f->rdi = (uint64_t)failure.sig;
	f->flags &= ~FLAGS_CLEARED;
}

bool rollback_call(struct thread *t, int sig)
{
	const struct frame *f = &t->frame;

	if (!is_ready() || refusal(t))
		return false;
	place_note(t, f->site_end, f->rsp,
		   (uint64_t[SAVED]){ f->rbx, f->rbp, f->r12, f->r13, f->r14, f->r15 });
	failure.sig = sig;
	failure.at = 0;
	failure.told = false;
	call_goes_back(t);
	return true;
}

bool rollback_told(struct thread *t)
{
	if (!is_ready() || refusal(t))
		return false;
	failure.sig = SIGKILL;
	failure.told = true;
	call_goes_back(t);
	return true;
}
