/*
 * mve attach and detach: a session around a server that mve has not begun, and its end while
 * the server goes on.
 */
#ifndef MVE_OUTSIDE_ATTACH_H
#define MVE_OUTSIDE_ATTACH_H

#include <stddef.h>
#include <stdint.h>

#include "engine/outside/monitor/monitor.h"

/* What came of it. */
struct attach_done {
	unsigned processes, threads;
	uint64_t stood_us;	/* the server, as long as any of it did */
	char why[WHY_MAX];	/* it was not done; "" */
	const char *hint;
};

/* Whether this one may be attached to; false behind a message. */
bool attach_check(pid_t pid);

/* The session's server is o->attach, with its children; 0, or an exit code behind a message. */
int attach_start(struct monitor *m);
/* What the command ends with; of a server that ended first that is said. */
int attach_result(struct monitor *m);

/* The way back, by whoever asks for it; false: it is held as before, and done->why says why. */
bool detach(struct monitor *m, struct attach_done *done);

#endif
