/*
 * What a thread asks of the monitor.  The request lies in the thread's own block,
 * where no other process can write.  The thread rings the doorbell and then sleeps
 * in a call of request_sleep (gate.S) with the request's address in the call's last
 * argument; the monitor learns from the kernel who sleeps there and where its request
 * is, reads it from that process, and writes the answer into it.  The slot says only
 * that somebody asks: it is a place to look, and never believed.
 */
#ifndef MVE_ABI_REQUEST_H
#define MVE_ABI_REQUEST_H

#include <stdint.h>

#include "engine/abi/boot.h"

/* What a thread can ask of the monitor.  args and reply are given per kind. */
enum request_kind {
	REQ_NONE,
	REQ_EXEC,		/* path, dirfd, hidden_bits; of a follower, in call[] the
				   leader's struct layout, which is answered there with
				   HIDDEN_MOVES -> enum exec_go, or -errno */
	REQ_EXEC_FAILED,	/* -> the monitor lets go of the thread */
	REQ_MAPPED,		/* start, length, board cursor; in call[] where the answer goes, how
				   much of the shelf is mapped, and what is moved -> new cursor, or
				   MAPPED_UNCLEAN with it */
	REQ_SITE_HOT,		/* site, room near the program -> bytes of it used */
	REQ_TRACE_ENTER,	/* the call is in call[]; -> 0 */
	REQ_TRACE_EXIT,		/* and its result; -> 0 */
	REQ_TRACE_SIGNAL,	/* the head of its siginfo in call[]; -> 0 */
	REQ_REFUSED,		/* reason, address: say a clear word; -> 0 */
	REQ_VERDICT,		/* enum verdict, what, where: slot.last tells the rest; the
				   follower is ended, or -> enum verdict_answer */
	REQ_CRASHED,		/* signal, address: -> 0 die of it; a follower leads now; in call[]
				   what standing_fds has, in up to STANDING_TOLD words, and
				   at how many numbers it has looked */
	REQ_EXIT,		/* status: the leader is about to exit with an error; -> 0 */
	REQ_TAKE,		/* socket, whether the memory is another's: -> descriptors that have
				   come through it, when all processes have theirs; or -errno */
	REQ_NOTE,		/* enum note, value: a word for the log; -> 0 */
	REQ_CALLER,		/* return addresses in libc, in a sanitizer's runtime below and
				   on top: -> 1 the runtime calls for itself, 0 the program */
	REQ_REPORTED,		/* bytes, length: what a sanitizer's runtime writes; bytes 0:
				   it ends the process; -> 0 */
	REQ_RUNS,		/* a thread of the process, 0: a process of the version: -> enum
				   runs: what is wanting for it to go on */
	REQ_KNOWN,		/* a thread's id: -> 1 if the kernel says it is the version's */
	REQ_MEANT,		/* who sent a signal: -> 1 if that is another process of the
				   version, and the asker is one whose end is not the version's */
	REQ_REALM,		/* socket, the realm that it is in (<< 32: for how many ms it has
				   asked for a lane), the realm that the leader's twin went to:
				   -> REALM_STAY, or a lane (of a follower: 0) and the realm's
				   sections through the socket, -EAGAIN: no lane yet, or -errno */
	REQ_READ,		/* a follower's process: -> 1 if it has read all that was told
				   of its twin */
	REQ_QUERY,		/* lane, struct query_answer; the call is in call[], with what its
				   AT argument says: a query on a descriptor of the leader's ->
				   its result */
	REQ_FAILED,		/* a fault's signal, or 0: a MUST, or FAILED_ALONE; its place, in
				   bytes from the inside's own code on; the address: mve itself
				   has failed; a follower is ended; -> 0: another leads, or the
				   thread goes on */
	REQ_IMAGE,		/* enum image_word, a process: a follower's image of itself; -> 0,
				   or -errno: nothing comes of it */
	REQ_ROLLBACK,		/* enum rollback_word; of an ASK signal, address -> 1: the request
				   may be taken back; of others struct rollback, or a signal,
				   and words -> 0 */
	REQ_TWIN,		/* enum twin_word, then as it says; -> 0, or -errno: it is none */
	REQ_COMPANY,		/* enum company_word, then as it says; -> 0, or -errno */
	REQ_UPDATE,		/* enum update_ask, a text -> 0, or -errno */
	REQ_WIRE,		/* socket: of a follower's first process, by which it is sent what
				   it is to take (brief.sends) -> 0, or -errno */
};

enum company_word {
	/* All threads of all processes stand that tell nobody what they do. */
	/* The first two are answered when all processes have asked for it. */
	COMPANY_BEGIN,		/* a socket, where they stand (AREA_THREADS of them); in call[] what
				   is used of its boards, where that is to be written, and where
				   struct boot is -> through the socket struct company_start with
				   the monitor's page, then the sections */
	COMPANY_MAPPED,		/* 0, or why it cannot be -> all have them; -errno: none has */
	COMPANY_DONE,		/* it tells from here on */
};

/*
 * Limit (programs): timers of timer_create that a process had before its first follower came.
 * Beyond: refused.
 */
#define COMPANY_TIMERS	256

/* One that it has made when it told nobody, as the kernel says. */
struct company_timer {
	uint64_t value;
	int32_t id, clock, signo, notify, tid, pad;
};

/* What a program is not told at its beginning, where it is alone. */
struct company_start {
	uint32_t chunks, sections, version, locals, parts, realm;
	uint32_t first;		/* the process has the lane that the monitor has opened */
	uint32_t timers;
	struct company_timer timer[COMPANY_TIMERS];
	struct code_range_at local[BOOT_LOCALS];
	struct code_part part[BOOT_PARTS];
};

enum twin_word {
	/* All threads of a leader's process stand: */
	/* Each is answered when all processes have asked for it. */
	TWIN_BEGIN,		/* the twin's number (<< 32: the realm), a socket (<< 32: a child
				   that has ended; 0: none): -> through that struct twin_start
				   with enum twin_part's descriptors, then a twin_share with its
				   file for each of start.shares */
	TWIN_MADE,		/* the number (<< 32: whom a refusal is about), a process, -errno or
				   -enum twin_refusal: it is the asker's copy */
	TWIN_IS,		/* the asker is one, and stands */
	TWIN_ASLEEP,		/* the same, of one whose memory is to be written into a file: where
				   its struct foam_point is -> -EAGAIN: not yet; else nothing */
};

/* Why a process has no copy now: it is asked again. */
enum twin_refusal {
	TWIN_WAS_QUIET = 4096,	/* it told nothing, and does from here on; errnos are less */
	TWIN_IN_LOCK,		/* the thread is in a function of locks since before its hook */
	TWIN_REFUSALS
};

/* What a twin has instead of its leader's, and what the leader has instead of the twin's. */
enum twin_part { TWIN_AREA, TWIN_BRIEF, TWIN_SECTION, TWIN_LEADERS, TWIN_PARTS };

struct twin_start {
	uint32_t version;
	uint32_t shares;
	uint32_t first;		/* the process is the version's first */
	uint32_t session;	/* the copy is to have one of its own */
	uint64_t key;
	uint32_t processes;
	uint32_t asleep;	/* the copy is to be an image on disk */
};

/*
 * Limit (followers): mappings of a process' memory that others share, and where one may write.
 * Beyond: the leader has no twin.
 */
#define TWIN_SHARES	128

/* Memory that processes share: in the twin it is that of another file, from the same place. */
struct twin_share {
	uint64_t at, len, offset;
	uint32_t prot;
	uint32_t fills;		/* who is told so copies what there is */
};

#define FOAM_SIGNALS	64
#define FOAM_CONTEXT	8		/* words of struct context (inside/rewind/stand.h) */

/* As the kernel has it. */
struct foam_signal {
	uint64_t handler, flags, restorer, mask;
};

/* In the inside's memory: what a copy that sleeps notes of itself, and what the process that is
   made of it is told. */
struct foam_point {
	uint64_t context[FOAM_CONTEXT];	/* where it goes on; the instruction comes first */
	uint64_t fs, block, boot, mask, brk;
	struct foam_signal action[FOAM_SIGNALS];
	/* Written by the monitor: */
	uint64_t key;
	uint64_t bridge, bridge_len;	/* from where it was made: to be given up */
	uint32_t version, pad;
};

enum image_word {
	IMAGE_DUE,		/* another is to be taken */
	IMAGE_STANDS,		/* all of its threads stand for this one; -> all processes do */
	IMAGE_MADE,		/* this process is its copy; -> each has one, or there is none */
	IMAGE_WOKE,		/* the asker was one, and this process is now; -> all go on */
	IMAGE_STILL,		/* a leader that wants room asks: -> 1 if the followers that have
				   images read nothing, though they had the time */
	IMAGE_LOST,		/* a lock, enum image_loss: the threads' order is lost: the image
				   is to go on; -> it cannot; -EPERM: nor ever */
};

enum image_loss {
	LOSS_TURN,		/* a turn has not come, and all wait for one another */
	LOSS_LOCK,		/* it locks what its leader did not: of the same program */
	IMAGE_LOSSES
};

/* Of REQ_FAILED: it goes on, but what it tells followers may be wrong. */
#define FAILED_ALONE	(~0ull)

/* A mapping in which calls may stand that nobody found. */
#define MAPPED_UNCLEAN	(1ull << 40)
/* An allocator: its calls are never compared. */
#define MAPPED_LOCAL	(1ull << 41)
/* Code that stacks are walked through: `unwind` of the answer says by what. */
#define MAPPED_LIBC	(1ull << 42)
#define MAPPED_RUNTIME	(1ull << 43)
#define MAPPED_BITS	(MAPPED_UNCLEAN | MAPPED_LOCAL | MAPPED_LIBC | MAPPED_RUNTIME)

/* Of REQ_REALM: the rights are those of the realm that the process is in. */
#define REALM_STAY	(1ll << 32)
#define REALM_AGAIN	(2ll << 32)	/* it may have descriptors now, and is to ask again */
#define REALM_ANY	(~0ull)	/* whichever its rights say */

enum exec_go {
	EXEC_GO, EXEC_GO_UNHELD, EXEC_GO_FAILS /* it is not there */,
	EXEC_GO_MOVES,	/* the program may have other rights: followers are to be told before */
};

enum runs { RUNS_NOT, RUNS_CPU /* a processor */, RUNS_DISK /* or a page */ };

enum request_state { RS_IDLE, RS_ASKED, RS_ANSWERED };

struct request {
	uint32_t state;		/* enum request_state */
	uint32_t kind;
	uint32_t slot;		/* of the thread */
	uint32_t serial;	/* counts the thread's requests */
	uint64_t key;		/* boot.key: whose version it is */
	uint64_t args[6];
	uint64_t call[8];	/* number, six arguments, result; or as the kind says */
	int64_t reply;
	uint32_t seen;		/* the slot's word in the brief, when it was asked */
	uint32_t answered;	/* counts those that were, but of REQ_RUNS */
	/* In the monitor's copy, from the kernel: */
	int32_t pid, tid;
	uint64_t at;		/* the request's address in that process */
};

#define SLOT_GUARDS	32	/* pages of one mapping that can be watched */

/* The rest of the answer to REQ_MAPPED; call[0] says where it is to be written. */
struct mapped_answer {
	uint64_t guard[SLOT_GUARDS];	/* pages to be watched */
	uint64_t guards;
	uint64_t unwind;	/* the file's eh_frame_hdr */
	uint64_t sigaction;	/* and TSan's function, if it is that */
	uint64_t shelf_moved;	/* boot.shelf_moved, when that is done: */
	uint64_t moves;		/* 0, or 1: this is moved first */
	struct code_move move;
};

/* What the call of a REQ_QUERY wrote. */
struct query_answer {
	uint8_t bytes[256];	/* a struct statx fits */
	uint32_t room;		/* how much there is now, where the call says it */
	uint32_t pad;
};

/* What stands behind the system call of request_sleep, and nowhere else. */
#define REQUEST_SIGN	"\xc3mve asks here\0\0"
#define REQUEST_SIGN_LEN 16

#endif
