/* The files that a session's processes have mapped: what a recording needs to be replayed. */
#ifndef MVE_OUTSIDE_PACK_USED_H
#define MVE_OUTSIDE_PACK_USED_H

#include "engine/outside/monitor/monitor.h"

/* They are to be written there; 0, or an exit code behind a message. */
int used_open(const char *path);
/* A process has mapped code: with it, what else it has mapped; with --used alone. */
void used_see(const struct monitor *m, pid_t pid);
/* The paths, each with a zero behind it. */
void used_write(const struct monitor *m);

#endif
