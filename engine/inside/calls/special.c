/*
 * Calls that the inside takes part in, besides clone, signals and seccomp:
 * a new program (the monitor makes it ready), new code (the planner patches
 * it), the end of a thread, and the few that would undo what mve stands on.
 */
#include <asm/prctl.h>
#include <asm/unistd.h>
#include <linux/errno.h>
#include <linux/fcntl.h>
#include <linux/mman.h>
#include <linux/personality.h>
#include <linux/prctl.h>
#include <linux/resource.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <linux/shm.h>
#include <linux/signal.h>

#include "engine/core/host.h"
#include "engine/core/must.h"
#include "engine/inside/calls/pids.h"
#include "engine/inside/calls/seccomp.h"
#include "engine/inside/calls/segments.h"
#include "engine/inside/calls/special.h"
#include "engine/inside/calls/tracee.h"
#include "engine/inside/gate/above.h"
#include "engine/inside/calls/shelf.h"
#include "engine/inside/gate/block.h"
#include "engine/inside/gate/gate.h"
#include "engine/inside/gate/latch.h"
#include "engine/inside/gate/memory.h"
#include "engine/inside/gate/request.h"
#include "engine/inside/gate/seal.h"
#include "engine/inside/gate/thread.h"
#include "engine/inside/lanes/host.h"
#include "engine/inside/rules/overdue.h"
#include "engine/inside/rules/rules_object.h"
#include "engine/inside/runtime/callers.h"
#include "engine/inside/signal/sigcalls.h"
#include "engine/inside/state/space.h"
#include "engine/inside/takeover/robust.h"

uint64_t *block_bitmap(uint32_t index);

static void refused(struct thread *t, uint32_t reason)
{
	struct area *a = (struct area *)boot.area;

	MUST(reason < sizeof(a->refused) / sizeof(a->refused[0]));

	t->answered = 1;
	if (!__atomic_fetch_add(&a->refused[reason], 1, __ATOMIC_RELAXED))
		request_tell(t, REQ_REFUSED, reason, t->frame.site_end - 2);
}

/* A thread's end.  The slot goes first, the block with the last instruction. */
static long serve_exit(struct thread *t)
{
	uint64_t all = ALL_SIGNALS & ~HIDDEN_SIGNALS, was;

	OWN4(__NR_rt_sigprocmask, SIG_SETMASK, &all, &was, 8);
	if (t->pending)
		return CALL_RESTART;
	MUST(!t->latches && !t->standing);	/* nobody would give them back */
	robust_leave(t);
	overdue_forget(t);
	slot_release(t);
	if (t->clone_flags & CLONE_VFORK)	/* the parent frees the block */
		return call_kernel(t);
	thread_exit(block_bitmap(t->index), t->index % 64, (long)t->frame.rdi);
}

/*
 * Nothing keeps the process from it any more, no signal, and no wish that it stand: its twin has
 * ended already where it has been told, and nobody would take what it has.
 */
long exit_group_now(struct thread *t)
{
	long result;

	MUST(!t->latches);
	robust_leave(t);
	slot_release(t);
	do {
		t->pending = 0;
		result = call_kernel(t);
	} while (result == CALL_RESTART);
	return result;
}

static long serve_exit_group(struct thread *t)
{
	return t->pending ? CALL_RESTART : exit_group_now(t);
}

static struct mapped_answer mapped;	/* of the thread that has the latch */

/* Pages of the new mapping that hold bytes which nobody could explain. */
static void pages_watch(struct thread *t, uint64_t at, uint64_t len)
{
	for (uint32_t i = 0; i < mapped.guards && i < SLOT_GUARDS; i++) {
		uint64_t page = mapped.guard[i];

		if (boot.sealed == SEAL_WHOLE && page >= at && page < at + len)
			guard_add(t, page);
	}
}

static long mapped_ask(struct thread *t, uint64_t at, uint64_t len)
{
	struct request *r = request_of(t);
	long reply;

	MUST(boot.boards_used <= boot.boards_len);
	bytes_zero(&mapped, sizeof(mapped));
	r->call[0] = (uint64_t)&mapped;
	r->call[1] = boot.shelf_len;
	r->call[2] = boot.shelf_moved;
	reply = request_ask(t, REQ_MAPPED, at, len, boot.boards_used);
	boot.shelf_moved |= mapped.shelf_moved;
	return reply;
}

/*
 * File code that is mapped is planned and patched before the program can run
 * it.  The monitor writes its boards behind a cursor that is the process's
 * own, so one thread at a time asks.
 */
static void code_mapped(struct thread *t, uint64_t at, uint64_t len)
{
	long reply;

	latch_take(LATCH_map);
	reply = mapped_ask(t, at, len);
	if (reply >= 0 && mapped.moves && !shelf_move(&mapped.move)) {
		boot.shelf_len = 0;
		reply = mapped_ask(t, at, len);
	}
	if (reply > 0 && reply & MAPPED_LOCAL)
		local_add(at, len);
	if (reply > 0 && reply & (MAPPED_LIBC | MAPPED_RUNTIME))
		part_add(at, len, reply & MAPPED_LIBC ? PART_LIBC : PART_RUNTIME, mapped.unwind);
	if (reply > 0 && reply & MAPPED_RUNTIME && mapped.sigaction)
		boot.sigaction = mapped.sigaction;
	if (reply < 0 || reply & MAPPED_UNCLEAN)
		seal_break(t);
	pages_watch(t, at, len);
	reply &= ~(long)MAPPED_BITS;
	if (reply > 0 && (uint64_t)reply <= boot.boards_len)
		boot.boards_used = (uint64_t)reply;
	latch_give(LATCH_map);
}

/*
 * Twins shall have the same addresses: an address may be sent through a pipe, and tables go
 * by them.  Where the kernel chooses, that hangs on which of several threads asked first; so
 * what a thread maps besides a process's first lies in a part of the address space that goes
 * with its lane.  What was unmapped there is used again only when the part has been used up.
 */
#define MAPS_FROM	0x200000000000ull
#define MAPS_BITS	43		/* and somewhere behind: no attacker shall know */
#define MAPS_ROOM	(1ull << 34)	/* of each lane; 2^45 bytes together */
#define MAPS_NOT	(MAP_FIXED | MAP_FIXED_NOREPLACE | MAP_32BIT | MAP_GROWSDOWN | MAP_HUGETLB)
#define PAGE		4096ull
#define PAGE_LARGE	(1ull << 21)
#define HEAP		(1ull << 26)	/* what glibc makes one of lies at such a place */
_Static_assert(MAPS_FROM + (1ull << MAPS_BITS) + LANES * MAPS_ROOM < 1ull << 47,
	       "the last lane's part ends below the stack and libraries");
_Static_assert(!(MAPS_ROOM % HEAP) && !(HEAP % PAGE_LARGE), "parts begin where heaps do");

static bool maps_by_lane(const struct thread *t)
{
	const struct frame *f = &t->frame;

	return t->has_lane && t->tid != t->pid && !boot.runtimes && !f->rdi &&
	       f->r10 & MAP_ANONYMOUS && !(f->r10 & MAPS_NOT) && !(f->rdx & PROT_EXEC) && f->rsi &&
	       f->rsi <= MAPS_ROOM - 2 * PAGE_LARGE;
}

static long map_by_lane(struct thread *t)
{
	static uint64_t used[LANES];
	struct frame *f = &t->frame;
	uint64_t len = (f->rsi + PAGE - 1) & ~(PAGE - 1), flags = f->r10;
	uint64_t unit = len < PAGE_LARGE ? PAGE : PAGE_LARGE;
	uint64_t at = (used[t->lane] + unit - 1) & ~(unit - 1);
	uint64_t random = streams.conduct->maps & ((1ull << MAPS_BITS) - HEAP);
	long result;

	MUST(t->lane < LANES);

	if (at + len > MAPS_ROOM)
		at = 0;
	/* Else glibc need not cut it, and keeps what is left for whichever thread is the next. */
	if (len > HEAP && !(at & (HEAP - 1)))
		at += PAGE_LARGE;
	f->rdi = MAPS_FROM + random + t->lane * MAPS_ROOM + at;
	f->r10 |= MAP_FIXED_NOREPLACE;
	result = call_kernel(t);
	f->rdi = 0;
	f->r10 = flags;
	if (result != CALL_RESTART)
		used[t->lane] = at + len;
	return result;
}

/* Code from elsewhere than a file's private mapping: the net must catch it. */
static long serve_mmap(struct thread *t)
{
	const struct frame *f = &t->frame;
	bool code = f->rdx & PROT_EXEC;
	bool of_file = !(f->r10 & MAP_ANONYMOUS) && (f->r10 & MAP_TYPE) == MAP_PRIVATE &&
		       !(f->rdx & PROT_WRITE);
	long at = -EEXIST;

	if (code && !of_file)
		seal_break(t);
	if (maps_by_lane(t))
		at = map_by_lane(t);
	if (at < 0 && at != CALL_RESTART)
		at = call_kernel(t);
	if (at > 0 && code && of_file && (boot.tier == TIER_PATCH || boot.streams))
		code_mapped(t, (uint64_t)at, f->rsi);
	return at;
}

/* Memory becomes code, or code may be written: nobody knows what it holds. */
static long serve_mprotect(struct thread *t)
{
	if (t->frame.rdx & PROT_EXEC)
		seal_break(t);
	return call_kernel(t);
}

static long serve_shmat(struct thread *t)
{
	if (t->frame.rdx & SHM_EXEC)
		seal_break(t);
	return call_kernel(t);
}

static long serve_personality(struct thread *t)
{
	if (t->frame.rdi != 0xffffffff && t->frame.rdi & READ_IMPLIES_EXEC)
		seal_break(t);
	return call_kernel(t);
}

static long serve_prctl(struct thread *t)
{
	const struct frame *f = &t->frame;

	if (f->rdi == PR_SET_SECCOMP && f->rsi == SECCOMP_MODE_STRICT)
		return serve_seccomp_strict(t);
	if (f->rdi == PR_SET_SECCOMP && f->rsi == SECCOMP_MODE_FILTER)
		return serve_seccomp_filter(t, f->rdx);
	if (f->rdi == PR_SET_SYSCALL_USER_DISPATCH) {
		refused(t, REFUSED_DISPATCH);
		return -EINVAL;
	}
	return call_kernel(t);
}

static long serve_seccomp(struct thread *t)
{
	const struct frame *f = &t->frame;

	if (f->rdi == SECCOMP_SET_MODE_STRICT && !f->rsi && !f->rdx)
		return serve_seccomp_strict(t);
	if (f->rdi == SECCOMP_SET_MODE_FILTER)
		return serve_seccomp_filter(t, f->rdx);
	return call_kernel(t);
}

/*
 * libc's area of restartable sequences, where the kernel would write the processor's number, to
 * be read without a call.  There is none where others follow: what is registered is taken back
 * when they come.  Who was made before that, and registers after it, would end the program if
 * it could not: it believes that it has, and knows no processor.
 */
#define RSEQ_SIZE	32
#define RSEQ_SIGN	0x53053053u
#define RSEQ_LEAVE	1		/* RSEQ_FLAG_UNREGISTER */
#define RSEQ_CPU_ID	4		/* where its number is; none: */
static const int32_t cpu_unknown = -1;	/* RSEQ_CPU_ID_UNINITIALIZED */
static bool rseq_was;
static uint64_t rseq_left[AREA_THREADS];	/* of threads in company: where it was */

static bool is_libcs_rseq(uint64_t at, uint64_t len, uint32_t sign)
{
	return at && len == RSEQ_SIZE && sign == RSEQ_SIGN;
}

void rseq_note(struct thread *t, uint64_t at, uint64_t len, uint32_t sign)
{
	if (is_libcs_rseq(at, len, sign))
		t->rseq = at;
}

void rseq_none(struct thread *t)
{
	MUST(t->index < AREA_THREADS);
	t->rseq = rseq_left[t->index] = 0;
}

void rseq_leave(struct thread *t)
{
	rseq_was = true;
	if (!t->rseq)
		return;
	OWN4(__NR_rseq, t->rseq, RSEQ_SIZE, RSEQ_LEAVE, RSEQ_SIGN);
	rseq_left[t->index] = t->rseq;
	t->rseq = 0;
}

void rseq_back(struct thread *t)
{
	MUST(t->index < AREA_THREADS);
	if (rseq_left[t->index])
		OWN4(__NR_rseq, rseq_left[t->index], RSEQ_SIZE, 0, RSEQ_SIGN);
	rseq_left[t->index] = 0;
}

/* A thread that is made in company by a program that has one believes that it has, too. */
static long rseq_believed(struct thread *t)
{
	const struct frame *f = &t->frame;

	MUST(t->index < AREA_THREADS);
	rseq_left[t->index] = 0;
	if (!rseq_was || target_out(f->rdi + RSEQ_CPU_ID, &cpu_unknown, sizeof(cpu_unknown)))
		return -ENOSYS;
	if (is_libcs_rseq(f->rdi, f->rsi, (uint32_t)f->r10) && !(f->rdx & RSEQ_LEAVE))
		rseq_left[t->index] = f->rdi;
	return 0;
}

static long serve_rseq(struct thread *t)
{
	const struct frame *f = &t->frame;
	long result;

	if (boot.streams)
		return rseq_believed(t);
	result = call_kernel(t);
	if (!result && f->rdx & RSEQ_LEAVE)
		t->rseq = 0;
	else if (!result)
		rseq_note(t, f->rdi, f->rsi, (uint32_t)f->r10);
	return result;
}

/* GS is ours: the program sees the 0 that it would have, and cannot set it. */
static long serve_arch_prctl(struct thread *t)
{
	uint64_t zero = 0;

	t->answered = t->frame.rdi == ARCH_GET_GS || t->frame.rdi == ARCH_SET_GS;
	if (t->frame.rdi == ARCH_GET_GS)
		return target_out(t->frame.rsi, &zero, sizeof(zero));
	if (t->frame.rdi == ARCH_SET_GS && t->frame.rsi) {
		refused(t, REFUSED_GS);
		return -EPERM;
	}
	if (t->frame.rdi == ARCH_SET_GS)
		return 0;
	return call_kernel(t);
}

/* What is done by calls that nobody makes, and whose answers stand in memory the kernel shares. */
static long serve_io_setup(struct thread *t, bool uring)
{
	if (!uring && !boot.streams)
		return call_kernel(t);
	refused(t, uring ? REFUSED_IO_URING : REFUSED_AIO);
	return -ENOSYS;
}

/* Where the kernel says that the thread has ended (hold_leave). */
static long serve_tid_address(struct thread *t)
{
	t->clear_tid = t->frame.rdi;
	return call_kernel(t);
}

/*
 * Most of what followers need is mapped and never touched: rings, and what may become of them.
 * All of it at once may be more memory than there is.
 */
static long serve_mlockall(struct thread *t)
{
	const uint64_t asked = t->frame.rdi;
	long result;

	if (streams.conduct && asked & (MCL_CURRENT | MCL_FUTURE))
		t->frame.rdi |= MCL_ONFAULT;
	result = call_kernel(t);
	t->frame.rdi = asked;
	return result;
}

static long serve_memory(struct thread *t, long nr)
{
	switch (nr) {
	case __NR_mmap:
		return serve_mmap(t);
	case __NR_mprotect:
	case __NR_pkey_mprotect:
		return serve_mprotect(t);
	case __NR_mlockall:
		return serve_mlockall(t);
	case __NR_shmat:
		return serve_shmat(t);
	case __NR_shmdt:
		return shm_detach(t);
	default:
		return call_kernel(t);
	}
}

long serve_special(struct thread *t, long nr)
{
	switch (nr) {
	case __NR_clone:
	case __NR_clone3:
	case __NR_fork:
	case __NR_vfork:
	case __NR_execve:
	case __NR_execveat:
		return above.life(t, nr);
	case __NR_exit:
		return serve_exit(t);
	case __NR_exit_group:
		return serve_exit_group(t);
	case __NR_rt_sigaction:
		return serve_sigaction(t);
	case __NR_rt_sigprocmask:
		return serve_sigprocmask(t);
	case __NR_rt_sigpending:
		return serve_sigpending(t);
	case __NR_rt_sigreturn:
		return serve_sigreturn(t);
	case __NR_rt_sigtimedwait:
		return serve_sigtimedwait(t);
	case __NR_sigaltstack:
		return serve_sigaltstack(t);
	case __NR_rt_sigsuspend:
		return serve_masked(t, &t->frame.rdi);
	case __NR_ppoll:
	case __NR_epoll_pwait:
	case __NR_epoll_pwait2:
		return serve_masked(t, nr == __NR_ppoll ? &t->frame.r10 : &t->frame.r8);
	case __NR_pselect6:
		return serve_pselect(t);
	case __NR_signalfd:
	case __NR_signalfd4:
		return serve_signalfd(t);
	case __NR_ptrace:
		return serve_ptrace(t);
	case __NR_personality:
		return serve_personality(t);
	case __NR_prctl:
		return serve_prctl(t);
	case __NR_arch_prctl:
		return serve_arch_prctl(t);
	case __NR_seccomp:
		return serve_seccomp(t);
	case __NR_rseq:
		return serve_rseq(t);
	case __NR_unshare:
	case __NR_setns:
		return serve_namespace(t, nr);
	case __NR_setrlimit:
	case __NR_getrlimit:
	case __NR_prlimit64:
		return serve_limit(t, nr);
	case __NR_io_setup:
	case __NR_io_uring_setup:
		return serve_io_setup(t, nr == __NR_io_uring_setup);
	case __NR_set_tid_address:
		return serve_tid_address(t);
	default:
		return serve_memory(t, nr);
	}
}
