/* Twins: followers that are copies of a leader that runs. */
#ifndef MVE_OUTSIDE_TWIN_H
#define MVE_OUTSIDE_TWIN_H

#include "engine/outside/monitor/monitor.h"

/*
 * Makes one, of which `like` is asked (by its name, or any): its row, and in *stood_us how
 * long the leader stood; or NULL, and why not, and whether that goes by itself.
 */
struct version *twin_begin(struct monitor *m, const struct follower_options *like,
			   uint64_t *stood_us, char *why, size_t size, bool *passes);
/*
 * All that can be done for an update's before its server stands: NULL, or why it cannot be, and
 * whether that goes by itself.
 */
const char *twin_ready(struct monitor *m, const struct follower_options *like,
		       uint64_t *stood_us, bool *passes);
/* One is about to be asked for, once or until it is there: the leader stays loud for it. */
void twin_want(struct monitor *m);
/* REQ_TWIN. */
int64_t twin_serve(struct version *v, const struct request *r);
/* It is to say soon that it is there, */
void twin_comes(struct version *v);
/* and does, and follows. */
void twin_has_come(struct version *v);
/* Those that do not come up have had their time. */
void twin_look(struct monitor *m);

#endif
