/*
 * Signals that are not the program's: SIGSYS of the dispatch, SIGILL of a mark,
 * SIGSEGV of a watched page, and the word of another thread that the seal is
 * broken.  The first two are calls on their way to the gate.
 *
 * A program may send itself these signals, block them and wait for them like any other:
 * hidden.c.
 */
#include <asm/unistd.h>
#include <linux/errno.h>
#include <linux/signal.h>

#include "engine/abi/knock.h"
#include "engine/core/must.h"
#include "engine/core/pairs.h"
#include "engine/inside/gate/above.h"
#include "engine/inside/gate/block.h"
#include "engine/inside/gate/gate.h"
#include "engine/inside/gate/request.h"
#include "engine/inside/gate/seal.h"
#include "engine/inside/gate/thread.h"
#include "engine/inside/rewind/stand.h"
#include "engine/inside/signal/caught.h"
#include "engine/inside/signal/hidden.h"
#include "engine/inside/signal/insn.h"
#include "engine/inside/signal/leave.h"
#include "engine/inside/signal/signals.h"
#include "engine/inside/signal/ucontext.h"
#include "engine/inside/takeover/standing.h"

#define DISPATCH_CODE	2	/* si_code SYS_USER_DISPATCH */
#define ARCH_X86_64	((int32_t)0xc000003e)
#define VSYSCALL_PAGE	0xffffffffff600000ull
#define PREFIXES_MAX	4
#define FAULT_FETCH	16	/* of the page fault's error code */
#define JUMP		0xe9	/* the first byte of a patched site */
#define HOT_CALLS	1000	/* trapped calls after which a site is patched */
_Static_assert(CODE_LOOK >= PREFIXES_MAX + 2, "mark_find reads so far");

extern char gate_net[];

/* Counts a trapped call by its site; how many there were. */
static uint32_t site_note(uint64_t address)
{
	struct area *a = (struct area *)boot.area;
	uint64_t hash = (address >> 1) * 0x9e3779b97f4a7c15ull >> 32;

	for (unsigned i = 0; i < 16; i++) {
		struct site_row *row = &a->site[(hash + i) % AREA_SITES];
		uint64_t empty = 0;

		if (BOTH_IF(site_address, &row->address, &empty, address))
			row->image = boot.image;
		if (row->address == address && row->image == boot.image) {
			return __atomic_add_fetch(&row->count, 1, __ATOMIC_RELAXED);
		}
	}
	__atomic_fetch_add(&a->sites_lost, 1, __ATOMIC_RELAXED);
	return 0;
}

/* rip stands behind the call. */
static void go_to_gate(struct ucontext_raw *uc)
{
	uc->regs.rcx = uc->regs.rip;
	uc->regs.rip = (uint64_t)gate_net;
}

static void refuse(struct thread *t, uint32_t reason, uint64_t address)
{
	struct area *a = (struct area *)boot.area;

	MUST(reason < sizeof(a->refused) / sizeof(a->refused[0]));

	if (!__atomic_fetch_add(&a->refused[reason], 1, __ATOMIC_RELAXED))
		request_tell(t, REQ_REFUSED, reason, address);
}

/* A call that strict mode forbids ends the thread, as the kernel would. */
static void strict_act(const struct thread *t, int data)
{
	if (data == STRICT_TRAP)
		OWN3(__NR_tgkill, t->pid, t->tid, SIGKILL);
}

/* The dispatch caught a call outside the gate; true when that is what it was. */
static bool dispatch_caught(struct thread *t, const uint8_t *info,
			    struct ucontext_raw *uc)
{
	uint64_t from = info_long(info, INFO_CALL_ADDR);
	int32_t code = info_int(info, INFO_CODE);

	if (code == SECCOMP_CODE && from - VSYSCALL_PAGE < 0x1000) {
		site_note(from);
		go_to_gate(uc);
		return true;
	}
	if (code == SECCOMP_CODE)
		strict_act(t, info_int(info, INFO_ERRNO));
	if (code != DISPATCH_CODE)
		return false;
	if (info_int(info, INFO_ARCH) != ARCH_X86_64) {
		uc->regs.rax = (uint64_t)-ENOSYS;
		refuse(t, REFUSED_INT80, from - 2);
		return true;
	}
	site_note(uc->regs.rip - 2);
	go_to_gate(uc);
	return true;
}

/* Code that others may be running is not changed under them. */
static bool alone(const struct thread *t)
{
	for (uint32_t i = 0; i < AREA_THREADS; i++)
		if (i != t->index && block_live(i))
			return false;
	return true;
}

/*
 * A marked site of the program's own code that proves hot is patched, if the
 * jump leaves the address behind the call whole or begins at the call.
 */
static void hot_patch(struct thread *t, uint64_t site)
{
	struct board_room *room = &boot.near_program;
	long used;

	if (t->busy || !room->len || !alone(t))
		return;
	MUST(room->used <= room->len && room->len <= UINT32_MAX);
	used = request_ask(t, REQ_SITE_HOT, site, room->at, room->len << 32 | room->used);
	if (used > 0 && (uint64_t)used <= room->len)
		room->used = (uint64_t)used;
}

/*
 * The mark at rip, behind prefixes that mean nothing to a call; 0: it is none.  What was
 * met may end with its page, and nothing lie behind it.
 */
static uint16_t mark_find(const uint8_t *code, unsigned *prefixes)
{
	uint16_t mark;
	unsigned i = 0;

	while (i < PREFIXES_MAX && ((code[i] & 0xf0) == 0x40 || code[i] == 0x66 ||
				    code[i] == 0xf2 || code[i] == 0xf3))
		i++;
	*prefixes = i;
	mark = (uint16_t)(code[i] | code[i + 1] << 8);
	return mark == MARK_SYSCALL || mark == MARK_COMPAT ? mark : 0;
}

/* A mark was met where a call stood; true when that is what it was. */
static bool mark_caught(struct thread *t, const uint8_t *info, struct ucontext_raw *uc)
{
	uint8_t code[CODE_LOOK];
	unsigned prefixes;
	uint64_t site;
	uint16_t mark;

	if (info_int(info, INFO_CODE) <= 0)
		return false;
	mark = mark_find(code_at(uc->regs.rip, code), &prefixes);
	site = uc->regs.rip + prefixes;
	if (!mark)
		return false;
	uc->regs.rip = site + 2;
	if (mark == MARK_COMPAT) {
		uc->regs.rax = (uint64_t)-ENOSYS;
		refuse(t, REFUSED_INT80, site);
		return true;
	}
	if (site_note(site) == HOT_CALLS)
		hot_patch(t, site);
	if (*(const uint8_t *)site == JUMP)
		uc->regs.rip = site;	/* patched just now: through its board */
	else
		go_to_gate(uc);
	return true;
}

/* Somebody wants something of this thread; or wanted, and it was long in coming. */
static void knock_serve(struct thread *t, struct ucontext_raw *uc)
{
	if (t->arm_wanted)
		seal_arm_wanted(t);
	if (t->turns)
		return;
	if (boot.leaving && t->busy && !t->pending && !t->at_boundary) {
		boundary_ask(t, uc);
		return;
	}
	if ((standing_wanted() || company_wanted()) && !stand_comes(t)) {
		above.stand(t, uc);
		return;
	}
	if (stand_wanted() && (!t->busy || stand_comes(t) || call_begins(&uc->regs)))
		stand(t);
	/* A call that the signal which waits has ended is not made again: nothing would end it. */
	if (!t->busy || !t->pending)
		call_again(t, &uc->regs);
}

/* Signals that are mve's own, not the program's. */
bool hidden_serve(struct thread *t, int sig, const uint8_t *info,
			 struct ucontext_raw *uc)
{
	if (sig == SIGSYS && info_int(info, INFO_CODE) == KNOCK_CODE) {
		knock_serve(t, uc);
		return true;
	}
	if (sig == SIGSYS && info_int(info, INFO_CODE) == SI_TIMER && t->timer) {
		signal_overdue(t, uc);
		return true;
	}
	if (sig == SIGSYS && dispatch_caught(t, info, uc))
		return true;
	if (sig == SIGILL && mark_caught(t, info, uc))
		return true;
	if (sig == SIGILL && info_int(info, INFO_CODE) > 0 && insn_caught(t, uc))
		return true;
	if (sig == SIGSEGV && uc->regs.err & FAULT_FETCH &&
	    guard_met(t, info_long(info, INFO_ADDR)))
		return true;
	if (!(HIDDEN_SIGNALS & SIG_BIT(sig)) ||
	    (!hidden_kept(t, sig, info) && !hidden_ignored(t, sig, info)))
		return false;
	call_again(t, &uc->regs);	/* the kernel would not have cut it short */
	return true;
}
