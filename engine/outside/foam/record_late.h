/* mve record NAME DIR: a session that runs is recorded from now on. */
#ifndef MVE_OUTSIDE_RECORD_LATE_H
#define MVE_OUTSIDE_RECORD_LATE_H

#include "engine/outside/monitor/monitor.h"

/*
 * As `like` says; in *stood_us how long the leader stood.  False: why not, and whether that goes
 * by itself; nothing is left of it then.
 */
bool record_begin(struct monitor *m, const struct run_options *like, uint64_t *stood_us, char *why,
		  size_t size, bool *passes);

/* --images: another image may be due. */
void record_images_look(struct monitor *m);

#endif
