/*
 * What is taken from one process of the old leader: by whom, and what has been met so far.
 * take.c answers who asks, fetch.c fetches descriptors, kinds.c sends what else there is.
 */
#ifndef MVE_OUTSIDE_TAKING_H
#define MVE_OUTSIDE_TAKING_H

#include <sys/stat.h>

#include "engine/abi/state.h"
#include "engine/outside/kernel/process.h"
#include "engine/outside/monitor/monitor.h"

struct taking {
	pid_t twin;		/* of the old leader; 0: nothing has been fetched */
	pid_t pid;		/* of the successor */
	int socket;
	uint64_t wait_us;	/* for room in it, in all */
	bool leads;		/* it is told so with the last message */
	struct taken_message message;	/* descriptors that are fetched, and yet to be sent */
	int fd[TAKEN_ROWS];
	unsigned epolls, moved;		/* epoll sets; descriptors that they must be given anew */
	struct { int number, own; } epoll[TAKEN_WATCHES];	/* own: a descriptor of ours */
	int move[TAKEN_WATCHES];
	unsigned pidfds;		/* of the successor's processes, for the old leader's */
	struct taken_descriptor pidfd_row[TAKEN_WATCHES];
	int pidfd[TAKEN_WATCHES];
};

/* --- take.c --------------------------------------------------------------------- */

/* The version that this one has replaced; NULL: none that is left. */
struct version *taken_before(struct monitor *m, const struct version *v);

/* --- fetch.c -------------------------------------------------------------------- */

/* The twin's, fetched from now on; all that was fetched and is not sent is closed. */
struct taking *fetch_begin(struct monitor *m, pid_t twin);
void fetch_drop(void);
/* And what was looked up before. */
void fetch_end(void);
/* Nobody has to wait for its memory: takeover_ready. */
void fetch_ready(void);
/* What has a file type, which pidfds have that are of a file system of their own (0: of none). */
bool descriptor_plain(int fd, dev_t pidfds, struct stat *st);
dev_t pidfds_of(int pidfd);
/* All that the twin has has been fetched, and nothing is sent yet. */
bool fetch_is_all(void);
/* As many descriptors as were fetched, or -errno; and of how many /proc was asked. */
int64_t fetched(void);
unsigned fetch_asked(void);

/* --- ahead.c -------------------------------------------------------------------- */

/* A descriptor of a process: our copy, and what that is. */
struct ahead_row {
	int number, fd;
	uint16_t kind;		/* enum state_kind */
	bool locks;		/* it has a file type, and there may be record locks on it: */
	uint64_t ino;
};

/* It may have been fetched; true: it was, and nobody else has it. */
bool ahead_descriptor(pid_t pid, int number, struct ahead_row *row);
/* Its working directory, or -1. */
int ahead_directory(pid_t pid);
/* Nobody has to wait for its memory. */
void ahead_ready(void);

/* --- kinds.c -------------------------------------------------------------------- */

/* `fd`: one for each row, or NULL. */
int message_send(struct taking *k, const struct taken_message *message, size_t row_size,
		 const int *fd);
/* The kind of our copy of a descriptor of the twin's. */
enum state_kind kind_of(int fd);
/* It has been met, next in k->fd; `info`: its fdinfo, of pidfds and where that had to be read. */
void kind_look(struct monitor *m, struct taking *k, const struct taken_descriptor *row,
	       const char *info);
/* Everything that is SENT, in the table's order; 0 or -errno. */
int kinds_send(struct monitor *m, struct taking *k);
void kinds_drop(struct taking *k);
int numbers_send(struct monitor *m, struct taking *k);
/* By name only; or -1. */
int directory_open(pid_t pid);
/* The twin lives, and the other leads. */
void oom_score_bring(pid_t twin, pid_t pid);
void policy_bring(struct monitor *m, const struct version *from, pid_t twin,
		  const struct version *to, pid_t pid);

/* --- locks.c -------------------------------------------------------------------- */

/* Of the twin before; then, for each descriptor of the twin that has a file type. */
void locks_forget(void);
void locks_meet(int fd, uint64_t ino);
/* Whether there may be any on what a process has open. */
bool locks_lockable(const struct stat *st);
bool locks_may(pid_t pid, int number, int ours, const struct stat *st);
/* The record locks of the twin, by what was met. */
int locks_send(struct monitor *m, struct taking *k);

#endif
