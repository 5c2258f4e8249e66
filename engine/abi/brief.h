/*
 * The brief: what the monitor tells one version.  A memfd that the monitor alone
 * can write, sealed before any other process has it: processes of a version may have
 * given up root, and what one of them can write another must not act by.  Rules are
 * native code, so their place is here; so is the word that a thread sleeps on while
 * the monitor owes it an answer, so that nobody else can wake it or keep it awake.
 *
 * Raise BRIEF_VERSION when a layout here changes.
 */
#ifndef MVE_ABI_BRIEF_H
#define MVE_ABI_BRIEF_H

#include <stdint.h>

#define BRIEF_MAGIC	0x6d766542u	/* "Bevm" */
#define BRIEF_VERSION	20
#define BRIEF_SLOTS	2048		/* AREA_THREADS */

/*
 * Limit (sessions): --map of a follower. Beyond: refused.
 */
#define PATH_MAPS	4

/* The leader's paths that begin with `from` begin with `to` in this version. */
struct path_map {
	char from[256], to[256];
};

/* What rules know of a version: never changed while the session lives. */
#define RELEASE_MAX	27
#define RELEASES	8	/* VERSIONS of abi/ring.h */

struct release {
	int32_t age;		/* the greater, the newer */
	char name[RELEASE_MAX + 1];	/* for @leader and @follower; may be empty */
};

#define RULES_BANK	(8u << 20)

/* A rules object as it lies in memory; two take turns, so none changes under a reader. */
struct rules_bank {
	uint32_t size, text;	/* bytes; of them, code and constants */
	uint32_t entry;
	uint32_t flags;		/* enum rules_object_flags */
	uint8_t bytes[RULES_BANK - 16];
};

/*
 * Limit (followers): processes of a follower. Beyond: it keeps no image of itself; a leader has no
 * twin, which is said before it stands.
 */
#define COPIES_MAX	512

/*
 * Limit (followers): children of a leader that have ended, and that it has not waited for.
 * Beyond: it has no twin, until it has waited for some.
 */
#define ENDED_MAX	192
#define MOVES_MAX	(COPIES_MAX + ENDED_MAX)

/*
 * A part of what is met again: in the process that its program knows as `vpid`, up to the event
 * of that number, it is met as in that try, in which it was as the leader's.
 */
struct healed {
	int32_t vpid;
	uint32_t try;
	uint64_t until;
};

/* Limit (followers): races behind one image that are met each its own way. Beyond: all by one. */
#define HEALED_MAX	16

/*
 * Of a follower that keeps an image of itself (inside/rewind/).  Images are counted from 1,
 * and none has the number of another.
 */
struct images {
	uint32_t chunks;	/* so many are read between two; 0: it keeps none */
	uint32_t stand;		/* futex: all threads stand for this one; 0: for none.  Of a
				   leader: for this twin */
	uint32_t wake;		/* futex: this one goes on, in the place of who differs */
	uint32_t copy;		/* and is kept once more, as this one */
	uint32_t tries;		/* so often has it gone on; 0: what is met is met first */
	uint32_t heals;		/* rows of `healed`, of a process in the order of its events */
	struct healed healed[HEALED_MAX];
	int32_t monitor;	/* the parent of what is to be its child */
	uint32_t moves;		/* rows of `move`: who went on as another */
	/*
	 * parent: by the kernel, of the one that was; group: whose process group this one's is.
	 * One that has ended, and is to be waited for, has no other in its place.
	 */
	struct { int32_t was, is, parent, group; } move[MOVES_MAX];
};

/*
 * Each answer given to a slot's thread adds ANSWER_ONE.  An odd word: who asked there
 * gets none, since the kernel does not let the monitor look at its process.
 */
#define ANSWER_ONE	2u
#define ANSWER_NONE	1u

/*
 * Limit (Checkpoints): bytes of --reply. Beyond: refused.
 */
#define REPLY_MAX	(16u << 10)

/* What becomes of a request that is taken back, beside that its connection is closed. */
struct amends {
	uint32_t wanted;	/* requests of the leader's are taken back */
	uint32_t refuse;	/* the same one is not tried again */
	uint32_t brings;	/* enum rollback_brings, as bits; 0: what comes on connections */
	uint32_t size;		/* of `reply`, which its connection gets first */
	uint8_t reply[REPLY_MAX];
};

/* A leader that is alone is to tell others what it does, from a moment on when it stands. */
enum company {
	COMPANY_NONE,
	COMPANY_STAND,		/* its threads are to stand */
	COMPANY_TAKE,		/* all do: it takes the streams */
};

/*
 * How a server that is prepared for updates (engine/update/) and mve speak with each other.  It
 * asks by UPDATE_CALL, a number that the kernel does not know: natively the answer is ENOSYS.
 * What is asked of it stands in `struct update_words`; the address is the answer to UPDATE_HELLO,
 * the same in a twin, whose own brief lies there.
 *
 * `order` is a futex: a count, and an enum update_order in its low bits.
 */
#define UPDATE_CALL	0x6d77
#define UPDATE_PATH	1024
#define UPDATE_TEXT	1024	/* of a reason, or of what is said */

#define UPDATE_NAME	32	/* of a call */

#define UPDATE_HERE	1	/* the place: where the thread is that asks */
#define UPDATE_THREAD	(1ul << 63)	/* or that whose id, as the program knows it, is the rest */

/*
 * UPDATE_CALL's first argument; the second is a text's address.  Of a text that says why the third
 * is the place in the program's code that it is about, which is told with its line; or 0.
 */
enum update_ask {
	UPDATE_HELLO,	/* by a thread of the server's own for that; its build's path, and as it
			   was given -> where the words are, or -errno */
	UPDATE_STANDS,	/* all threads are at their points -> 0 */
	UPDATE_LATE,	/* they are not, and go on: why -> 0 */
	UPDATE_SERVES,	/* they were, and nobody has said more in time: they go on -> 0 */
	UPDATE_SAYS,	/* a twin's: a word about what it does -> 0 */
	UPDATE_IS_NEW,	/* a twin's: all threads are at their points in the new build; they follow
			   from here on -> 0, or -errno: it ends */
	UPDATE_DOES,	/* a twin's: what it does from here on -> 0 */
	UPDATE_DIES,	/* a twin's thread: of which signal, and where it faulted -> 0 */
	UPDATE_FAILS,	/* a twin's: why; it ends, and another may do better at another moment */
	UPDATE_NEVER,	/* ... and no other will */
	UPDATE_EPOLL_OWN,	/* `own` of a registration is asked for -> 0 */
	UPDATE_EPOLL_IS,	/* a twin's: it is `own` from here on -> 0, or -errno */
	UPDATE_POINT,	/* by any thread: it is about to stand at its point -> 0 */
	UPDATE_REFUSED_IS,	/* a twin's: the call that was refused last, UPDATE_NAME bytes -> 0,
				   or -errno: none was */
	UPDATE_ASKS
};

/* A registration in an epoll set: the kernel's data, and what the version reads in their place. */
struct update_epoll {
	int32_t set, fd;
	uint64_t kernels, own;
};

enum update_order {
	UPDATE_NONE,	/* whoever stands goes on */
	UPDATE_STAND,	/* threads are to come to their points */
	UPDATE_CHANGE,	/* of a twin: it is to become the new build */
	UPDATE_ORDERS	/* fits UPDATE_BITS */
};

#define UPDATE_BITS	2

struct update_words {
	uint32_t order;
	uint32_t limit_ms;	/* for threads to come to their points */
	char to[UPDATE_PATH], xform[UPDATE_PATH];
};

static inline enum update_order update_order_of(uint32_t word)
{
	return (enum update_order)(word & ((1u << UPDATE_BITS) - 1));
}

/* SENDS_SOON: it is worth while to look for it, since it is sent by another processor. */
enum sends { SENDS_NOT, SENDS, SENDS_SOON };

struct brief {
	uint32_t magic, version;
	union {			/* robust: held by the monitor while it lives */
		uint32_t word;
		uint64_t mutex[5];
	} alive;
	uint32_t strict;	/* of a follower: no query is skipped or answered otherwise */
	uint32_t maps;		/* rows used of `map` */
	struct path_map map[PATH_MAPS];
	uint32_t rules;		/* counts objects; bank[rules % 2] is in use; 0: none */
	uint32_t self;		/* which row of `release` this version is */
	struct release release[RELEASES];
	struct images images;
	uint32_t company;	/* futex: enum company, of a leader that tells nobody */
	uint32_t loud;		/* of a leader: somebody is about to follow (record/quiet.c) */
	uint32_t leave;		/* of a leader that nobody follows: it is about to be left, and its
				   threads come out of waits that the lock gate has begun */
	uint32_t sends;		/* enum sends: what it takes comes unasked */
	uint32_t answer[BRIEF_SLOTS];	/* futex of the thread that asks */
	struct amends amends;
	struct update_words update;
	_Alignas(4096) struct rules_bank bank[2];
};

#define BRIEF_ROOM	(20ull << 20)	/* of the address space: AREA_ROOM */

_Static_assert(sizeof(struct brief) <= BRIEF_ROOM, "it has room");

#endif
