/* One version in the place of another. */
#ifndef MVE_OUTSIDE_TAKEOVER_H
#define MVE_OUTSIDE_TAKEOVER_H

#include "engine/outside/monitor/monitor.h"

/* By a user, the old leader ends or follows; or by its policy, for a follower that differs. */
enum promotion { PROMOTE_END, PROMOTE_KEEP, PROMOTE_DIFFERS };
/* Why it cannot lead now, and whether that goes by itself; NULL: it can. */
const char *takeover_refused(struct monitor *m, const struct version *to, bool *passes);
/*
 * 0: it is under way, and control_promoted() hears how it ends, unless it is by policy; or a
 * negative errno, and why not.
 */
int takeover_promote(struct monitor *m, struct version *to, enum promotion how, char *why,
		     size_t size);
/* The leader cannot go on: a follower is to take over.  False: there is none. */
bool takeover_want(struct version *from, const char *cause);
/* One is wanted, or under way; the loop is to begin one; the streams have been switched. */
bool takeover_any(const struct monitor *m);
bool takeover_wanted(const struct monitor *m);
bool takeover_switched(const struct monitor *m);
/* There was none: says of those that follow why they are none. */
void takeover_missed(const struct version *from, const char *cause);
/* A thread of it is in a handler of a deadly signal. */
bool version_faults(const struct version *v);
/* It is to be replaced, or what it has is still to be taken; that takes as long as it takes. */
bool takeover_keeps(const struct monitor *m, const struct version *v);
void takeover_look(struct monitor *m);
/* Now and then, while nobody waits: what a failover would first have to find is there. */
void takeover_ready(struct monitor *m);
bool takeover_stands(const struct monitor *m, const struct version *v, pid_t pid);
uint64_t now_us(void);

#endif
