/*
 * The kinds of kernel state that a successor has to be given (state.def), and the messages
 * in which the monitor gives it what it has looked up in the old leader's process.  They come
 * by a socket of the successor's own, one after the other; descriptors by SCM_RIGHTS, as many
 * as there are rows.
 */
#ifndef MVE_ABI_STATE_H
#define MVE_ABI_STATE_H

#include <stdint.h>

enum state_kind {
#define MADE(name, ...)		STATE_##name,
#define EACH(name, ...)		STATE_##name,
#define LATE(name, ...)		STATE_##name,
#define SENT(name, ...)		STATE_##name,
#define HANDED(name, ...)	STATE_##name,
#define SAME(name, ...)		STATE_##name,
#define STAYS(name, ...)	STATE_##name,
#define LOST(name, ...)		STATE_##name,
#include "engine/abi/state.def"
	STATE_KINDS
};

#define TAKEN_END	STATE_KINDS	/* that was all */
#define TAKEN_LEAD	(STATE_KINDS + 1)	/* the same, and the answer: who has all leads */
#define TAKEN_ROWS	200		/* descriptors in a message */
#define TAKEN_SIGNALS	16
#define TAKEN_LOCKS	64
/*
 * Limit (takeovers): signalfds in epoll sets, and pidfds of one process. Beyond: further
 * ones are not registered again, and stay the old leader's.
 */
#define TAKEN_WATCHES	64

#define TAKEN_CLOEXEC	1

struct taken_descriptor {
	int32_t fd;		/* the old leader's number */
	uint16_t flags;		/* TAKEN_CLOEXEC */
	uint16_t kind;		/* enum state_kind; STATE_plain: it has a file type */
};

/* What an epoll set watches by a descriptor that is to be put in anew. */
struct taken_watch {
	int32_t epfd, fd;
	uint32_t events, pad;
	uint64_t data;
};

/* A signal that came to the old leader, and of which nothing was told. */
struct taken_signal {
	int32_t lane;		/* of the thread that it is for; -1: for the process */
	uint32_t pad;
	uint8_t info[48];	/* the head of its siginfo */
};

/* A record lock (fcntl F_SETLK) that the old leader holds by this descriptor. */
struct taken_lock {
	int32_t fd, type;	/* F_RDLCK, F_WRLCK */
	int64_t from, to;	/* the last byte */
};

#define TAKEN_LOCK_END	INT64_MAX	/* `to`: the file's end, wherever that is */

struct taken_message {
	uint32_t kind;		/* enum state_kind; TAKEN_END, TAKEN_LEAD */
	uint32_t n;		/* rows */
	union {
		struct taken_descriptor descriptor[TAKEN_ROWS];
		struct taken_watch watch[TAKEN_WATCHES];
		struct taken_signal signal[TAKEN_SIGNALS];
		struct taken_lock lock[TAKEN_LOCKS];
	};
};

#define TAKEN_HEAD	8	/* bytes before the rows */

/*
 * What the successor's process answers to TAKEN_END, whose `n` says how many there were; to
 * TAKEN_LEAD only where it lacks some.
 */
struct taken_reply {
	int32_t error;		/* 0: all are under their numbers; or -errno */
	uint32_t n;		/* descriptors that are */
};

_Static_assert(__builtin_offsetof(struct taken_message, signal) == TAKEN_HEAD, "rows are aligned");
_Static_assert(sizeof(struct taken_descriptor) == 8 && sizeof(struct taken_watch) == 24 &&
	       sizeof(struct taken_signal) == 56 && sizeof(struct taken_lock) == 24 &&
	       sizeof(struct taken_reply) == 8,
	       "rows have no holes");

#endif
