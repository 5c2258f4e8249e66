/* Followers: started, looked after, dropped. */
#ifndef MVE_OUTSIDE_FOLLOWERS_H
#define MVE_OUTSIDE_FOLLOWERS_H

#include "engine/outside/monitor/monitor.h"

bool followers_any(const struct monitor *m);
int followers_start(struct monitor *m);
void follower_drop(struct version *v, enum verdict verdict, const char *why, ...)
	__attribute__((format(printf, 3, 4)));
void follower_ended(struct version *v);
void followers_look(struct monitor *m);
void followers_judge(struct monitor *m);
/* The leading version has ended: true when nothing is left to wait for. */
bool followers_finish(struct monitor *m);
/* The thread of that lane ends its process, by its sanitizer, and says why. */
void follower_reported(struct version *v, uint32_t lane, enum verdict verdict, const char *why);
/* That, or its end by it has yet to be judged. */
bool follower_reports(const struct version *v);

#endif
