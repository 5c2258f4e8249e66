/* The requests of the inside. */
#ifndef MVE_OUTSIDE_SERVE_H
#define MVE_OUTSIDE_SERVE_H

#include "engine/outside/monitor/monitor.h"

/* The requests of the inside. */
/* Whether the version may make us say one more thing: a broken one would for ever. */
bool version_may_say(struct version *v);
void serve_requests(struct monitor *m);
void serve_child_events(struct monitor *m);
void serve_stops(struct monitor *m);
bool serve_execs(const struct monitor *m);
/* Of a program of this version, whose thread follows, or does not. */
enum role serve_role(const struct version *v, bool follows);
int serve_seize(struct version *v, pid_t tid, const struct tracee *want);

#endif
