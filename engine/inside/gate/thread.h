/*
 * What the inside keeps of a thread and of a program.  All of it is private to
 * the address space; what the monitor sees is the thread's slot in the area.
 *
 * A thread's block is one mapping: this structure, the stack that C code of
 * the inside runs on, and the alternate stack that every signal arrives on.
 * GS points at it.  A child of clone(CLONE_VM), vfork's included, gets a block
 * of its own, since it shares the parent's memory.
 */
#ifndef MVE_INSIDE_THREAD_H
#define MVE_INSIDE_THREAD_H

/* One image: no symbol of it is found through a table that needs relocating. */
#pragma GCC visibility push(hidden)

#include <linux/sched.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/abi/area.h"
#include "engine/abi/boot.h"
#include "engine/abi/brief.h"
#include "engine/abi/thread.h"
#include "engine/core/ring.h"
#include "engine/core/walk.h"

#define SIGNALS		64
#define SIG_BIT(s)	(1ull << ((s) - 1))
#define ALL_SIGNALS	(~0ull)

/*
 * The signals that mve stands on: SIGILL, SIGBUS, SIGSEGV, SIGSYS.  Never blocked.
 */
#define HIDDEN_SIGNALS	(SIG_BIT(4) | SIG_BIT(7) | SIG_BIT(11) | SIG_BIT(31))

/* The registers of the call that the gate holds; on the short way, resume alone. */
struct frame {
	union {
		uint64_t rax;
		struct {
			uint16_t number_low, number_high;	/* where it is a call's number */
		};
	};
	union {
		struct {
			uint64_t rdi, rsi, rdx, r10, r8, r9;
		};
		uint64_t arg[6];
	};
	uint64_t rbx, rbp, r12, r13, r14, r15;
	uint64_t rsp, flags;
	uint64_t resume, site_end;
};

/* The kernel's struct sigaction. */
struct action {
	uint64_t handler, flags, restorer, mask;
};

struct sighand {
	uint32_t latch;
	struct action action[SIGNALS + 1];
};

struct altstack {
	uint64_t sp;
	int32_t flags;
	int32_t pad;
	uint64_t size;
};

#define CLOCKS_DUE	4
#define TICK_PLACES	16
#define TICK_WAYS	4	/* of those, where one may stand */
#define SIGNALS_NEXT	7	/* signals that come with another, told as one */
#define SIGINFO_USED	48	/* bytes that say something, of a signal that is no fault */

/*
 * A leader's thread is in a call, or in a function of the lock gate, and what tells of it is
 * still to see whether a clock ticked (tick.c); or has seen it, for it has its number.
 */
#define AWAY		1
#define AWAY_NUMBERED	2
#define AWAY_UNTOLD	3	/* in a call that is not told: it is back without having seen one */

/* A leader's: who may sleep for its lane, as of so many changes of the conduct (sleep.h). */
struct twins {
	uint64_t of;		/* or TWINS_UNKNOWN */
	/* Where one may sleep, as below; of more SEEN_NEVER: each is looked at. */
	const uint32_t *asleep;
	uint64_t seen;
	uint64_t count;		/* 1 at least, where they are known */
	struct twin {
		const uint32_t *asleep;	/* in its section; of nobody, a word of ours, */
		uint64_t seen;		/* as it was when there was last something to be done */
	} twin[VERSIONS];
};
#define TWINS_UNKNOWN	UINT64_MAX
#define SEEN_NEVER	UINT64_MAX

struct thread;
/*
 * For whom the thread must still wait, with its event of this number: one of them, or NULL
 * (order.c).
 */
typedef const struct thread *order_test(const struct thread *t, uint64_t seq);

struct thread {
	struct thread *self;
	uint64_t gate;
	void **handlers;
	uint64_t *counts;
	uint64_t stack_top;
	union {
		uint64_t tells;	/* LANE_TELLS, or something else is to be seen to */
		struct {
			uint8_t pending;
			uint8_t has_lane, following;	/* in company: with other versions */
			uint8_t deferred;	/* a signal waits for the next boundary */
			uint8_t faulting;	/* enum faulting: see crash.c */
			uint8_t kept;	/* what it does is about a connection that is not told */
			uint8_t holds;	/* a leader's: others, by a clock (tick.c) */
			uint8_t unheard;	/* a leader's: nobody followed when it told last */
		};
	};
	struct frame frame;
	union {
		uint64_t call;		/* as the gate writes it when one begins: with state 0 */
		struct {
			uint16_t call_slot;
			uint8_t tier;
			uint8_t returning;	/* it is an rt_sigreturn on its way out, or */
#define RETURNS		1
#define RETURNS_TO_SIGNAL 2		/* one whose frame a signal comes to (sigcalls.c) */
			uint8_t has_temp_mask;
			uint8_t answered;	/* without a call from the gate */
			uint8_t announced; /* the stream knows that a signal comes here */
			uint8_t restart;	/* the held call is to be made again */
		};
	};
	union {
		struct {
			uint64_t r15, flags;	/* of the short way */
		};
		struct {	/* the asked way: the call's number, or 0; and its room */
			uint64_t asked_seq, asked_room;
		};
	};
	uint64_t lock_gate, once;	/* see lock_gate.S */
	int64_t made;		/* what the kernel answered; CALL_RESTART: not yet */
	uint64_t began;		/* by the processor's counter; or 0: see lanes/rest.c */
	uint8_t busy;
	uint8_t away;		/* a leader's: AWAY, ... */
	uint8_t shows;		/* a leader's: EVENT_TICK, of an event that has its number */

	struct slot *slot;
	struct sighand *sig;	/* own_sig() for a child that shares memory only */
	int32_t pid, tid;
	int32_t creator;	/* the thread that made it */
	uint32_t lock_at;	/* the lock that is asked for: how many events ahead */
	uint32_t index;		/* in the table of blocks */
	uint8_t at_boundary;	/* the held signal comes with the next instructions */
	uint8_t arm_wanted;	/* another thread has broken the seal */
	uint8_t in_vfork;	/* stopped until its child is done */
	uint8_t turns;		/* what is noted of a signal is being changed: see turn_begin */
	uint8_t in_exec;	/* or past it, and the slot is a held program's */
	uint8_t intercepted;	/* a sanitizer's interceptor makes the program's call */
	uint8_t armed;		/* calls outside the gate raise SIGSYS */
	uint8_t failing;	/* mve has failed in its call, and it is to leave that */
	uint32_t wider;		/* a vfork's child's: see state/space.c */
	uint64_t temp_mask;	/* of ppoll and its like, while they run */
	uint64_t kernel_mask;	/* the same without the hidden signals */
	uint64_t held_mask;	/* the program's mask when a signal was held */
	uint64_t owed;		/* signals that it has sent itself while it blocked them */
	uint64_t clone_flags;
	uint64_t clone_mask;	/* the program's mask around a clone */
	uint8_t held_info[128];	/* siginfo of the held signal */
	union {
		/* Of those that come with it, in a follower. */
		uint8_t next_info[SIGNALS_NEXT][SIGINFO_USED];
		struct ticks {		/* a leader's: see tick.c */
			uint32_t shown;		/* ticks of the process that its events show */
			uint32_t let;		/* it is not waited for while `shown` is one less */
			uint32_t held;		/* for which one it has held the others last */
			uint32_t second[2];	/* what clocks said last; 0: not asked yet, */
			struct tick_place {	/* and to places that read them */
				uint32_t key, second;
			} place[TICK_PLACES];
			uint8_t found;		/* places that were not known, in the last second */
			uint8_t next;		/* the way that is given to another place */
			uint8_t goes_on;	/* it has only read clocks since its last one */
		} ticks;
	};
	uint16_t nexts;
	uint16_t joined;	/* a leader's: so many have come with one */
	uint32_t asks;		/* the program's, so often; see signals.c */
	uint64_t entered;	/* the handler at whose entry another will come; or 0 */
	uint64_t hidden_blocked;	/* hidden signals that the program blocks */
	uint64_t hidden_waits;	/* of those, which were sent meanwhile */
	uint8_t hidden_info[4][128];	/* and how: SIGSYS, SIGILL, SIGSEGV, SIGBUS */
	struct altstack alt;	/* the program's own alternate stack */

	/* In company: with other versions. */
	uint32_t lane;
	uint8_t taking;		/* a follower's: it has its event and waits for a lock */
	uint8_t turning;	/* a follower's: it has its event, and the turn is not done */
	uint8_t exec_moves;	/* a follower's: its twin's program begins in another lane */
	uint8_t update;		/* enum update_thread: update/offline.h */
	uint32_t meant;		/* a follower's: of the deadly signals told last, no crashes */
	uint32_t want_bucket;
	int32_t child_vtid;	/* of the clone under way */
	int32_t timer;		/* for what is held back, + 1; 0: none yet (overdue.c) */
	uint64_t want_turn;	/* that it waits for; or 0 */
	uint64_t clear_tid;	/* what the kernel clears at its end; or 0 */
	uint64_t want_mutex;	/* that it is about to take, whoever holds it; or 0 */
	uint8_t park;		/* stand still at the boundary */
	uint8_t put_off;	/* how often it was not done, within a wait */
	uint8_t own_files;	/* that the loader has open in it: nobody takes them */
	uint8_t files_waited;	/* how often it was not parked for them */
	int32_t vpid, vtid;	/* the ids that the program believes to have */
	uint32_t child_lane;	/* of the clone under way */
	int32_t *birth;		/* the row of the fork under way */
	uint64_t child_ptid, child_ctid;	/* where the kernel writes its id */
	uint64_t lock_calls;	/* of the lock gate: no system calls */
	uint64_t condition;	/* a follower's: that it waits for, or 0; see conditions.c */
	union {
		uint64_t mutex;	/* its mutex */
		uint64_t rseq;	/* of a program that is alone: where libc has one; or 0 */
	};
	uint64_t mutex_turn;	/* the mutex' last turn when we came to lead */
	uint64_t asked;		/* a follower's: TSan's handler, which is about to be asked for */
	uint8_t fault_sig;
	uint8_t woken;		/* as far as this version knows */
	uint16_t latches;	/* that it holds, as bits: latch.h */
	uint16_t waits_at;	/* a follower's: for an event behind so many in its lane */
	uint32_t waited_at;	/* a place in the lane, + 1: its last wait of its own was there */
	uint64_t once_turn;	/* of what this thread is about to run once; or 0 */
	struct mismatch mismatch;
	uint64_t deferred_cpu;	/* how long the thread had run when it began to wait */
	uint64_t rest;		/* a follower's: the call, + 1, that it waited for long in; or 0 */
	uint8_t waits;		/* for an event or its turn; WAITS_ASLEEP */
	uint8_t crowded;	/* a follower's: its last sleep brought many events */
	uint8_t ticking;	/* a follower's: it works on what the clock said at tick_at */
	uint8_t past_ticks;	/* that event shows a tick */
	uint8_t seam_due;	/* a seam is told before the next call that is */
	uint8_t wait_due;	/* so is a wait, enum due, and the clocks read behind it */
	uint8_t clocks_due;
	uint8_t standing;	/* see standing.c */
	uint8_t takes_turns;	/* of its process one thread works at a time: order/baton.c */
	uint8_t baton;		/* it is its turn to */
	uint8_t baton_due;	/* it is to take it when it has stood */
	uint8_t polls;		/* it does not wait in accept alone */
	order_test *stands;	/* until others have caught up; NULL */
	uint64_t stands_seq;
	const struct thread *stands_for;	/* whom it saw behind, or a step of theirs */
	uint32_t stood;		/* what `works` was as it began to stand, */
	uint32_t worked;	/* and as it last went from the gate to its work (order_works) */
	uint64_t past;		/* a follower's: the number of a lock's event (order_tick.c) */
	uint64_t tick_at;	/* a follower's: where its last tick was in the lane, + 1 */
	uint64_t edge;		/* a leader's: to be told with its next event; see edge.c */
	uint64_t fork_seq;	/* a leader's fork, which is to be told: its number; see lead.c */
	uint32_t waits_made;	/* for connections, or for what they bring */
	int32_t due_nr;
	long due_result;
	union {
		uint64_t due_args[CALL_ARGS];	/* in a stateless session only */
		struct {
			uint64_t epoll_at;	/* its own event, where it is given one of ours, */
			uint32_t epoll_row;	/* and the row of ours, + 1; 0: none */
			uint8_t epoll_event[12];
			uint64_t epoll_turn;	/* of its change, see follow_epoll.c */
		};
	};
	struct clock_due {
		int64_t nr, result;
		uint64_t arg;
		uint8_t value[16];
	} clock_due[CLOCKS_DUE];
	uint64_t fault_sp;	/* the frame of the handler that it is faulting in */
	uint64_t ahead;		/* events that were answered before their turn, as bits */
	struct writer writer;
	struct twins twins;
	struct reader reader;
	struct rules_thread *rules;	/* see follow_rules.c */
};

#define WAITS_ASLEEP	2	/* in a futex of its own */
#define WAITS_FULL	3	/* a leader's: for room in the ring */

/*
 * What is noted of a signal and the mask change together (pending, deferred, held_mask): a knock
 * in between would note our own mask for the program's.  It is let pass, and comes again.  It
 * comes in this thread: what the compiler keeps in order is in order.
 */
static inline void turn_begin(struct thread *t)
{
	__atomic_store_n(&t->turns, 1, __ATOMIC_RELAXED);
	__asm__ volatile("" : : : "memory");
}

static inline void turn_end(struct thread *t)
{
	__asm__ volatile("" : : : "memory");
	__atomic_store_n(&t->turns, 0, __ATOMIC_RELAXED);
}

/* As the gate has left it, when it began. */
static inline void call_begins_again(struct thread *t)
{
	t->returning = t->has_temp_mask = t->answered = t->announced = t->restart = 0;
}

#define ASSERT_OFFSET(field, off) \
	_Static_assert(offsetof(struct thread, field) == (off), #field)
ASSERT_OFFSET(self, T_SELF);
ASSERT_OFFSET(gate, T_GATE);
ASSERT_OFFSET(handlers, T_HANDLERS);
ASSERT_OFFSET(counts, T_COUNTS);
ASSERT_OFFSET(stack_top, T_STACK_TOP);
ASSERT_OFFSET(busy, T_BUSY);
ASSERT_OFFSET(pending, T_PENDING);
ASSERT_OFFSET(frame, T_FRAME);
ASSERT_OFFSET(r15, T_R15);
ASSERT_OFFSET(asked_seq, T_ASKED_SEQ);
ASSERT_OFFSET(flags, T_FLAGS);
ASSERT_OFFSET(has_lane, T_HAS_LANE);
ASSERT_OFFSET(following, T_FOLLOWING);
ASSERT_OFFSET(deferred, T_DEFERRED);
ASSERT_OFFSET(away, T_AWAY);
ASSERT_OFFSET(faulting, T_FAULTING);
ASSERT_OFFSET(kept, T_KEPT);
ASSERT_OFFSET(holds, T_HOLDS);
ASSERT_OFFSET(unheard, T_UNHEARD);
ASSERT_OFFSET(tells, T_TELLS);
_Static_assert(LANE_TELLS == 1ull << 8 * (T_HAS_LANE - T_TELLS) && T_UNHEARD < T_TELLS + 8,
	       "the word has a lane, and is nothing else");
_Static_assert(T_AWAY == T_BUSY + 1, "BUSY_NOT_AWAY");
ASSERT_OFFSET(lock_gate, T_LOCK_GATE);
ASSERT_OFFSET(once, T_ONCE);
ASSERT_OFFSET(made, T_MADE);
ASSERT_OFFSET(began, T_BEGAN);
_Static_assert(offsetof(struct frame, r15) == F_R15, "frame");
_Static_assert(offsetof(struct frame, rsp) == F_RSP, "frame");
_Static_assert(offsetof(struct frame, resume) == F_RESUME, "frame");
_Static_assert(sizeof(struct thread) <= 4096, "the block's first page");
_Static_assert(sizeof(struct frame) == F_SLOT, "gate.S fills all of it");
_Static_assert(offsetof(struct thread, call_slot) == T_FRAME + F_SLOT &&
	       offsetof(struct thread, call) == T_FRAME + F_SLOT &&
	       offsetof(struct thread, tier) == T_FRAME + F_TIER &&
	       offsetof(struct thread, announced) == T_FRAME + F_ANNOUNCED,
	       "it stands behind the frame");
_Static_assert(offsetof(struct frame, arg) == F_RDI, "arguments in the kernel's order");
_Static_assert(offsetof(struct frame, flags) == F_FLAGS, "frame");
_Static_assert(sizeof(struct action) == 32 && sizeof(struct altstack) == 24, "the kernel's");
_Static_assert(sizeof(uint64_t[SLOT_CALLS]) == 4096, "gate.S: counts of the net stand behind");
_Static_assert(VERSIONS <= 8 * sizeof(uint32_t), "versions are bits");
_Static_assert(SIGINFO_USED >= 32, "all of an info's words that ucontext.h names");

#define KNOWN_EDGES	32	/* lanes, by their low bits, with edges that were told: edge.c */

/* The block: a page of structure, stack, signal stack, dispositions, edges, request. */
#define BLOCK_SIZE	0x10000
#define BLOCK_STACK_TOP	T_STACK
#define BLOCK_SIGSTACK	0x7000
#define BLOCK_REQUEST	(BLOCK_SIZE - 256)
#define BLOCK_EDGES	(BLOCK_REQUEST - 8 * KNOWN_EDGES)
#define BLOCK_SIGHAND	(BLOCK_EDGES - (sizeof(struct sighand) + 15) / 16 * 16)
#define BLOCK_SIGSTACK_SIZE (BLOCK_SIGHAND - BLOCK_SIGSTACK)

_Static_assert(sizeof(struct request) <= BLOCK_SIZE - BLOCK_REQUEST, "the request fits");
_Static_assert(BLOCK_SIGSTACK >= BLOCK_STACK_TOP && BLOCK_SIGSTACK_SIZE >= 0x8000, "the stacks");
_Static_assert(BLOCK_SIZE % 4096 == 0 && BLOCK_REQUEST % 16 == 0, "its parts are aligned");

static inline struct request *request_of(const struct thread *t)
{
	return (struct request *)((uint64_t)t + BLOCK_REQUEST);
}

/* A process that has another's memory: that one does for both what memory knows. */
static inline bool is_guest(const struct thread *t)
{
	return (t->clone_flags & (CLONE_VM | CLONE_THREAD)) == CLONE_VM;
}

static inline struct sighand *own_sig(struct thread *t)
{
	return (struct sighand *)((uint64_t)t + BLOCK_SIGHAND);
}

static inline uint64_t *known_edges(struct thread *t)
{
	return (uint64_t *)((uint64_t)t + BLOCK_EDGES);
}

/* By assembly: GCC takes what lies at address 0 of GS for unreachable. */
static inline struct thread *thread_self(void)
{
	struct thread *t;

	__asm__ volatile("mov %%gs:%c1, %0" : "=r"(t) : "i"(T_SELF));
	return t;
}

/* Internal results of a served call; never seen by the program. */
#define CALL_RESTART	(-512L)	/* a signal came first: make the call again */

/* What one image of the inside knows, as the monitor wrote it. */
extern struct boot boot;
extern struct sighand process_sig;
extern void *role_handlers[TIER_COUNT][SLOT_CALLS];

#endif
