/* mve log: what is done with a recording, a file each. */
#ifndef MVE_LOG_H
#define MVE_LOG_H

#include "engine/outside/log/events.h"

struct log_want {
	const char *path;
	bool json;
	const char *call;	/* of show: these only; or NULL */
	long pid;		/* a process's, or a thread's; 0: all */
	struct program program;
};

/* Each an exit code. */
int log_sum(const struct log_want *w, struct frames *f);
int log_show(const struct log_want *w, struct frames *f);
int log_verify(const struct log_want *w, struct frames *f);

#endif
