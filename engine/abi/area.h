/*
 * The session area: one memfd that the monitor and every process of a version
 * map shared.  It holds what they count and show: calls, trapped sites, where
 * each thread is, that one asks something of the monitor.
 *
 * Who writes: a thread writes its own slot and the site rows.  But each process of
 * the version can write all of it, one that gave up root as well.  So nothing here
 * says who somebody is or decides what is done in another process: what is read is
 * read once, checked, then used, and at worst a count or a report is wrong.  What
 * the monitor tells the version lies in the brief (brief.h); what a thread asks, in
 * its own memory (request.h).
 *
 * Raise AREA_VERSION when a layout here changes: monitor and inside come from
 * one build, but a tool of another build may look at a running session.
 */
#ifndef MVE_ABI_AREA_H
#define MVE_ABI_AREA_H

#include <stdint.h>

#include "engine/abi/event.h"
#include "engine/abi/request.h"
#include "engine/abi/waits.h"

#define AREA_MAGIC	0x6d766541u	/* "Aevm" */
#define AREA_VERSION	23

#define SLOT_CALLS	512	/* call slots: number + 1; 0 is "unknown" */
/*
 * Limit (threads and processes): threads of a version at one time. Beyond: a further one
 * runs, and is neither counted nor followed; programs that it executes run unheld.
 */
#define AREA_THREADS	2048
#define AREA_IMAGES	256	/* programs started by execve, in a ring */
/*
 * Limit (programs): trapping sites that are counted by their place. Beyond: mve status
 * counts further ones in one sum.
 */
#define AREA_SITES	1024

enum tier { TIER_PATCH, TIER_NET, TIER_COUNT };

/*
 * The rows of a slot's counts: calls that came by each tier, and how many of
 * all of them the inside answered itself, without a call from the gate.
 */
enum { COUNT_ANSWERED = TIER_COUNT, COUNT_ROWS };
enum role { ROLE_SOLO, ROLE_TRACE, ROLE_LEADER, ROLE_FOLLOWER };

enum refusal {
	REFUSED_INT80 = 1, REFUSED_GS, REFUSED_IO_URING, REFUSED_DISPATCH, REFUSED_AIO,
	REFUSALS
};

enum verdict {
	VERDICT_MATCH, VERDICT_RULE, VERDICT_TOLERATED, VERDICT_DIVERGED, VERDICT_CRASHED,
	VERDICT_LAGGING, VERDICT_UNSUPPORTED, VERDICT_BROKEN,
	VERDICT_FAULTY,		/* a rule itself failed: slot.rule says which */
	VERDICT_FOUND,		/* a sanitizer has reported */
	VERDICT_FAILED,		/* mve itself has failed in it */
	VERDICTS
};

/* What differs; `what` of REQ_VERDICT.  `where` is the argument and offset. */
enum difference {
	DIFFERS_CALL,		/* the leader made another call */
	DIFFERS_VALUE,		/* an argument's value */
	DIFFERS_LENGTH,		/* how much an argument's memory holds */
	DIFFERS_BYTES,		/* its content */
	DIFFERS_END,		/* the leader's thread has ended here */
	DIFFERS_EXTRA,		/* the follower's has, and the leader went on */
};

enum verdict_answer { ANSWER_STOP, ANSWER_IGNORE, ANSWER_RETRY };

/* One call of a follower and the event that it met, for reports. */
struct window_row {
	struct event event;	/* kind EVENT_NONE: it met none */
	uint8_t payload[56];	/* the beginning of it */
	uint64_t args[6];
	int64_t result;
	uint32_t call;
	uint16_t version;	/* whose event it is */
	uint16_t end;		/* enum row_end */
};

/* How a call of the window ended. */
enum row_end {
	ROW_OPEN,		/* it has not: it waits, or is what the verdict is about */
	ROW_ANSWERED,		/* from the event */
	ROW_OWN,		/* by this version itself: the event is still to be met */
};

#define WINDOW	16	/* calls kept of each thread */

/*
 * Signals that wait while another version takes over.  What natively bounds them is
 * RLIMIT_SIGPENDING, which counts a user's: this is more than it usually is.
 */
/*
 * Limit (takeovers): signals of a process that wait while another version takes over.
 * Beyond: further ones are lost, which is said.
 */
#define SIGNALS_WAIT	(1u << 17)

/* Registers that calls keep, as slot.saved has them. */
enum saved { SAVED_RBX, SAVED_RBP, SAVED_R12, SAVED_R13, SAVED_R14, SAVED_R15, SAVED };

/* What a rule has to do with a verdict; text for people. */
enum note_kind {
	NOTE_NONE,
	NOTE_NEAREST,		/* the rule that came nearest, and why it was not taken */
	NOTE_FOLLOWED,		/* it was being followed, and this is not its call */
	NOTE_FAILED,		/* it failed itself; `text` says how */
};

struct rule_note {
	uint32_t kind;		/* enum note_kind */
	uint32_t line;		/* of the rule, or of its guard or action */
	uint32_t why;		/* enum rules_why, */
	uint8_t step, arg;	/* and where: rules_run.why_step, why_arg */
	uint8_t want_made;	/* `made` is what was wanted, not `text` */
	uint8_t pad;
	uint32_t had_call;	/* the call that it was tried on, + 1 */
	char name[64], file[160];
	char text[96];		/* how it failed; else what the rule has there, as written */
	struct note_value {
		uint64_t number;
		uint32_t len;		/* of all of it, */
		uint8_t known;		/* 0: there is none */
		uint8_t memory;		/* it is bytes: some of them */
		uint8_t pad[2];
		uint8_t bytes[64];
	} had, made;
};

#define BIRTHS		64

enum parked {
	PARKED_NOT,
	PARKED_STANDS,
	PARKED_WRITTEN,		/* and all that the kernel keeps of it is written down */
};

struct slot {
	union {
		struct {
			uint32_t owner;	/* 0 free, else the tid that owns it */
			int32_t pid;
		};
		uint64_t holder;	/* both: they change hands at once */
	};
	uint32_t image;		/* the program it runs */
	uint32_t unheld;	/* which is not held: nobody may ask anything of it */
	uint32_t asked;		/* enum request_state, as a hint: the request is the thread's */
	uint32_t asleep;	/* a follower's: in a futex of its own, whatever it is told */
	int32_t vpid, vtid;	/* the ids that the program believes to have */
	uint32_t lane;		/* + 1; 0: none */
	uint32_t parked;	/* enum parked: it stands still because conduct.park says so */
	uint64_t calls;		/* rows of the window ever written */
	uint64_t place;		/* return address of the call that is served, or of a crash */
	uint64_t stack;		/* and the program's stack pointer there */
	uint64_t saved[SAVED];	/* and the registers that a debugger goes on from */
	struct window_row window[WINDOW];
	struct rule_note rule;
	uint32_t matching;	/* counts; not 0: the thread is in the code of a rule */
	uint32_t match_over;	/* written by the monitor: that took too long */
	uint64_t seams;		/* requests begun */
	uint64_t taken;		/* a follower's: events, but those of seams */
	uint64_t calls_told, calls_kept;	/* kept: followers did not hear of them */
	uint64_t conns_told, conns_kept;	/* accepted */
	int64_t conns_open;	/* told and open; another thread may close */
	uint8_t untold[48];	/* of a thread that stands: the siginfo of a signal that came, and
				   that followers do not know of */
	uint32_t parked_at;	/* of a thread that stands: its call, as a slot number; 0: none */
	uint32_t faulting;	/* its thread is in a handler of a deadly signal */
	uint32_t idles;		/* a follower's: waits for a condition that its leader did not
				   make, where it had waited before; a count */
	uint32_t pad0;
	uint64_t pad[51];
	uint64_t counts[COUNT_ROWS][SLOT_CALLS];
};

struct site_row {
	uint64_t address;	/* of the `syscall` instruction; 0 free */
	uint32_t image;
	uint32_t count;
};

/* What REQ_NOTE says to the log, those from NOTE_TIMER on to the user. */
enum note {
	NOTE_LOCK_ORDER = 1,	/* a turn did not come: the lock's address */
	NOTE_NOT_ENDED,		/* a thread did not read to the end: its id, cells left */
	NOTE_TOLD_BEFORE,	/* what others were told before is not done: the event's number */
	NOTE_TIMER,		/* could not be made: its id */
	NOTE_LOCK,		/* could not be taken: its descriptor */
	NOTE_SHARED,		/* what is mapped of a file may differ: its descriptor */
	NOTE_UNTOLD,		/* what a call wrote is not known: its number and request */
	NOTE_SIGNALS,		/* so many found no room when it took over */
	NOTE_ROOM,		/* there are more than can be noted: enum room, how many can */
	NOTE_CONFINED,		/* the twin has forbidden itself more than this process */
	NOTE_PIDS,		/* what it forks has, or may have, a pid namespace of its own */
};

/* Of what a process notes only so many, to have them when it leads. */
enum room { ROOM_TIMERS, ROOM_LOCKS, ROOM_CHILDREN, ROOMS };

#define IDS_KERNEL	(1 << 22)	/* the kernel's ids are below that (PID_MAX_LIMIT) */

#define INPUT_CELLS	8192
#define INPUT_BYTES	232

enum input_kind { INPUT_ACCEPTED, INPUT_TAKEN, INPUT_BORN };	/* BORN: a thread, by another */

/*
 * What clients sent, as a follower with a sanitizer took it: a ring that all its threads
 * fill.  A cell is whole when `at` is its place: the count of cells before it, + 1.
 */
struct input_cell {
	uint64_t at;
	int32_t pid, tid;
	int32_t fd;		/* INPUT_BORN: who made the thread */
	uint16_t len;
	uint8_t kind;		/* enum input_kind */
	uint8_t cut;		/* the input went on, too long to be kept */
	uint8_t bytes[INPUT_BYTES];
};

struct area {
	uint32_t magic, version;
	uint32_t doorbell;	/* futex: rung with every request */
	uint32_t slots_high;	/* slots in use are below this */
	uint32_t sites_lost;	/* rows that did not fit */
	uint32_t newborn;	/* threads that are made, and not yet in a slot */
	uint32_t filters;	/* seccomp filters of the program's own */
	uint32_t image_chunks;	/* that a follower reads before it asks for an image; 0: now */
	uint64_t refused[8];	/* by enum refusal */
	uint64_t signals_held;	/* signals deferred to a boundary */
	uint64_t locks_unordered;	/* of a follower: taken where the leader took none */
	uint64_t crash_ns;	/* CLOCK_MONOTONIC: what a thread is about to die of has come */
	uint64_t lead_ns;	/* and a process has taken over */
	uint32_t leads;		/* so many have, ever */
	uint32_t ids;		/* it has followed: programs may hold ids that the kernel does not
				   know */
	uint64_t inputs;	/* cells of `input` ever taken */
	struct wait_count wait[WAITS_ROOM];	/* by enum wait_kind */
	/*
	 * Slots whose thread asks, as bits: the monitor looks at no others.  A hint as `asked`
	 * is, which is said again.
	 */
	uint64_t asking[AREA_THREADS / 64];
	int32_t births[BIRTHS];	/* pids that are forked, and not yet in a slot; 0 none; below
				   it the thread that forks */
	uint8_t unsealed[AREA_IMAGES];	/* the program has broken its seal */
	_Alignas(4096) struct site_row site[AREA_SITES];
	struct slot slot[AREA_THREADS];
	struct input_cell input[INPUT_CELLS];
	/* As bits: ids that its programs know, and that the kernel may give to others since. */
	uint64_t id_held[IDS_KERNEL / 64];
};

/*
 * What it is given of the address space, in each build of mve alike: where a program's own
 * mappings come to lie it tells, and a recording is to replay with the next release, too.
 */
#define AREA_ROOM	(40ull << 20)

_Static_assert(sizeof(struct area) <= AREA_ROOM, "it has room");

_Static_assert(sizeof(struct slot) == 4 * 4096, "a slot is four pages");
_Static_assert(__builtin_offsetof(struct area, site) == 4096, "first page");
_Static_assert(sizeof(struct input_cell) == 256, "cells stay aligned");

#endif
