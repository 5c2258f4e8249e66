/* What conns.c keeps, and conns_calls.c changes. */
#ifndef MVE_LOG_CONNS_PARTS_H
#define MVE_LOG_CONNS_PARTS_H

#include "engine/mve/log/conns.h"

/*
 * Limit (recordings): numbers of descriptors whose connections mve log knows. Beyond: it does
 * not know them.
 */
#define DESCRIPTORS_MOST	(1u << 20)

struct socket {
	unsigned refs;
	bool datagrams;
	struct address own, peer;
	struct conn *conn;	/* or NULL: it listens, or nothing went over it */
};

struct held {
	struct socket *socket;	/* or NULL */
	bool cloexec;
};

struct process {
	struct process *next;
	unsigned refs;		/* lanes */
	int32_t pid;		/* 0: it has told nothing yet */
	struct held *held;
	size_t size;
};

/* A lane's process, or who made its thread, where it is not known yet what that is. */
struct lane_of {
	struct process *process, *parent;
};

struct conns {
	struct conns_user user;
	uint64_t now_ns, number;
	struct process *process;
	struct lane_of lane[LANES];
	struct conn about;	/* what the last event was about, as it stood then */
};

void socket_drop(struct conns *all, struct socket *s);
struct held *held_at(const struct process *p, uint64_t fd);
struct socket *socket_at(const struct process *p, uint64_t fd);
void descriptor_close(struct conns *all, struct process *p, uint64_t fd);
/* It counts for the descriptor from here on. */
void descriptor_put(struct conns *all, struct process *p, uint64_t fd, struct socket *s,
		    bool cloexec);
/* The connection that the call is about, as it was; number 0: none. */
struct conn call_take(struct conns *all, struct process *p, const struct told *t);

#endif
