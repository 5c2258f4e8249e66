/* Followers that come late. */
#ifndef MVE_OUTSIDE_JOIN_H
#define MVE_OUTSIDE_JOIN_H

#include "engine/outside/monitor/monitor.h"

/*
 * Begins a follower: `like` says what is asked of it, and its name, or NULL.  Its row,
 * which has taken argv; or NULL, and why not, and whether that goes by itself.
 */
struct version *join_begin(struct monitor *m, const char *path, char **argv,
			   const struct follower_options *like, char *why, size_t size,
			   bool *passes);
/* All that may be due for those that come late, twins and spares, too. */
void late_look(struct monitor *m);
/* One that was dropped, not by the user: it may come again. */
void join_ended(struct version *v);

#endif
