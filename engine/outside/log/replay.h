/* mve replay, from the monitor's side: what its first version is, and what it came to. */
#ifndef MVE_OUTSIDE_LOG_REPLAY_H
#define MVE_OUTSIDE_LOG_REPLAY_H

#include "engine/outside/log/feeder.h"

/* The streams are as they were: random bytes of programs, where threads map. */
void replay_streams(struct monitor *m);
/* The feeder is the first version's process; 0, or a negative errno. */
int replay_begin(struct monitor *m);
/*
 * In a follower's process: what the recorded program inherited, or what one of an image had;
 * before it is seized.
 */
void replay_inherit(const struct replay *r, const struct foam *f);
/* The rest, right before the program. */
void replay_inherit_last(const struct replay *r);
/* The follower's first process has ended where the recorded one did. */
bool replay_first_over(const struct monitor *m);
/* The session had more than the recording has: of its last events some may be missing. */
bool replay_missing(const struct replay *r);
/* Of the recorded server, if its end was read: this signal has killed it. */
bool replay_killed_by(const struct replay *r, uint64_t sig);
/* The follower is about to be read for no more: what it has not read is noted. */
void replay_closes(struct monitor *m);
/* The session is over: says how it ended; the exit status. */
int replay_result(struct monitor *m);

#endif
