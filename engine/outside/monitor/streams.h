/* The streams' memory, and the monitor's page in it. */
#ifndef MVE_OUTSIDE_STREAMS_H
#define MVE_OUTSIDE_STREAMS_H

#include "engine/outside/monitor/monitor.h"

int streams_make(struct monitor *m);
/* Of a session whose server has not come to have them. */
void streams_unmake(struct monitor *m);
/* They are made, and the session is still one without streams; until they are shown. */
struct conduct *streams_hide(struct monitor *m);
void streams_show(struct monitor *m, struct conduct *made);
/* Of the first realm, and of any. */
struct section *streams_part(const struct monitor *m, uint32_t version);
struct section *realm_part(const struct monitor *m, uint32_t realm, uint32_t version);
/* By a lane's number in the session (LANES_ALL), of a realm that there is. */
struct lane *lane_at(const struct monitor *m, uint32_t version, uint32_t lane);
struct cursor *cursor_at(const struct monitor *m, uint32_t version, uint32_t lane);
static inline bool lane_is(const struct monitor *m, uint64_t lane)
{
	return lane < (uint64_t)m->realms * LANES;
}
/* The first lane from here on that this version's section may have opened. */
uint32_t lane_next(const struct monitor *m, uint32_t version, uint32_t lane);
#define LANES_EACH(m, version, i)							\
	for (uint32_t i = lane_next(m, version, 0); i < LANES_ALL;			\
	     i = lane_next(m, version, i + 1))
/* What stands in the sections of all realms: followers that threads have given up, ... */
uint32_t streams_dropped(const struct monitor *m, uint32_t version);
uint32_t streams_strayed(const struct monitor *m, uint32_t version);
uint64_t streams_waited_ns(const struct monitor *m, uint32_t version);
void streams_follow(struct monitor *m, uint32_t version, bool follows);
/* The same, which is seen with the next change. */
void streams_mark(struct monitor *m, uint32_t version, bool follows);
/* Tells every process that waits that the monitor's page has changed. */
void streams_changed(struct monitor *m);
/* Tells those that only wait for another to lead: where that is done, and clients are served. */
void streams_led(struct monitor *m);
bool streams_lag(const struct monitor *m, uint32_t version, uint64_t *cells);
void streams_sweep(struct monitor *m);
/* The leader's process whose thread has, or had, this lane has ended. */
bool streams_process_over(const struct monitor *m, uint32_t lane);
/* It has told that it ends: by then it may have had no processor for that. */
bool streams_process_ends(const struct monitor *m, uint32_t lane);
/* The version's process has read to its end, or its present one, each lane that it reads. */
bool streams_process_read(const struct monitor *m, uint32_t version, pid_t pid);
void streams_end_twins(struct monitor *m, const struct version *v);
/* What a version has read, in cells: another number when it has read more. */
uint64_t streams_taken(const struct monitor *m, uint32_t version);
/* Cells of one version's stream that another has not taken; those of one lane. */
uint64_t streams_lane_unread(const struct monitor *m, uint32_t version, uint32_t source,
			     uint32_t index);
/* The lane's reader has seen all that is told there, and sleeps until there is more. */
bool streams_lane_waits(const struct monitor *m, uint32_t version, uint32_t source,
			uint32_t index);
uint64_t streams_unread(const struct monitor *m, uint32_t version, uint32_t source);
uint64_t streams_seed(struct version *v, uint32_t lane, uint32_t half);

#endif
