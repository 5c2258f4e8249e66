/*
 * A checkpoint at each request of a server that knows nothing of checkpoints (seam.c).
 */
#ifndef MVE_CHECKPOINT_SEAM_H
#define MVE_CHECKPOINT_SEAM_H

#include <signal.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>
#include "engine/abi/rollback.h"

/* Limit (Checkpoints): descriptors below this may be connections whose requests can be taken
 * back.  Beyond: no checkpoint is opened for them. */
#define SEAM_FDS	65536

#define FAULT_STACK	(64 << 10)

/* Limit (Checkpoints): requests that were taken back, by which the same are known.  Beyond: the
 * oldest is forgotten. */
#define KNOWN_MAX	64

/* Limit (Checkpoints): bytes of a request that came in several parts (readv, recvmsg).  Beyond: the
 * report shows its first ones. */
#define GATHERED_MAX	(64ul << 10)

/* Signals of faults, and abort()'s. */
#define DEADLY		5

/* What the kernel has of a sigset_t. */
#define MASK_BYTES	8

/* Of one thread, but for `accepted`. */
struct seam {
	long each;		/* requests to a checkpoint; 0: there are none */
	long left;
	int begun;		/* there was one */
	int stood;		/* the three below are of this turn of the server's loop */
	sigset_t mask;		/* when it began */
	int alone;		/* there was no other thread then */
	long others;		/* how often the others had stopped */
	int sig;		/* what took it back */
	unsigned watches;	/* a bit: we have the place of the program's handler, */
	struct sigaction theirs[DEADLY];	/* which is here */
	int secret;		/* the request came by a TLS library: no plain answer to it */
	unsigned knows;		/* requests that were taken back: the next is knows % KNOWN_MAX */
	uint64_t key;		/* of sums; nobody outside can make two requests with one sum */
	uint64_t accepted[SEAM_FDS / 64];	/* last, for it begins in the page of the others */
};

struct seam_tables {
	struct heard {
		uint64_t sum, size;
	} known[KNOWN_MAX], heard[SEAM_FDS];	/* of a connection, since it was answered */
	unsigned char gathered[GATHERED_MAX];
	char stack[FAULT_STACK];
};

/* Pages of its own: nothing here goes back.  (`seam`, and `back`, what mve and we tell each other,
 * whether or not it holds the program, are in runtime/state.h's.) */
extern union seam_pages {
	struct seam_tables t;
	char pages[300 * 4096];
} checkpoint_seam_tables __attribute__((visibility("hidden")));

_Static_assert(sizeof(struct seam_tables) <= sizeof(union seam_pages) &&
	       sizeof(union seam_pages) % 4096 == 0, "pages of its own");

#define seam_tables	(&checkpoint_seam_tables.t)

/* Something has come on a connection, to these parts.  More: of the request that began there.
 * Below 0: it is refused, or, later, taken back; the call that brought it is to fail so. */
int seam_came(int fd, const struct iovec *parts, size_t size, int more);

/* What cannot be taken back is about to be done.  The request is over. */
void seam_end(const char *why);

/* A process is about to be made (process.c). */
void seam_process(void);
void seam_syscall(long number);

/* The thread is about to wait for events: from here on others may run. */
void seam_waits(void);

/* Whether requests are to have checkpoints, as the program begins. */
int seam_wanted(void);

/* This thread's request is open. */
int seam_is_open(void);

/* Why there is no request that could be taken back. */
void seam_ended(const char *why);

/* fault.c */
void faults_watch(void);
void request_begins(void);

/* Whether all other threads have stood since the request began.  No lock is taken. */
int others_stood(void);

/* Ends as by the signal, when it is no longer blocked. */
void die_of(int sig);

/* held.c: mve holds the program, and has faults come here. */
_Noreturn void held_go(int sig);
long held_say(enum rollback_word word, const char *why);
/* The request has opened it itself: to close it changes nothing that was before. */
int held_opened(int fd);
/* One that was taken back has come again, and is to be refused.  It may come in other pieces. */
int held_refuses(int fd, const struct iovec *parts, size_t got, int more);
/* The connection is answered, or another's: what comes next is another request. */
void held_answered(int fd);
/* The program's start. */
void held_begin(void);
/* It is taken back: what it has opened is closed, its connection answered, and mve is told. */
void held_undone(void);

void seam_say(const char *what, const char *why);

#endif
