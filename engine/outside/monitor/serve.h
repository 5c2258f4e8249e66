/* The requests of the inside. */
#ifndef MVE_OUTSIDE_SERVE_H
#define MVE_OUTSIDE_SERVE_H

#include "engine/outside/monitor/monitor.h"

/* Whether the version may make us say one more thing: a broken one would for ever. */
bool version_may_say(struct version *v);
/*
 * One of a takeover's two, which waits for nobody: of them code that nobody has planned yet is
 * left to the net.
 */
bool version_is_urgent(const struct version *v);
struct mapped_answer;
struct map;
/* What a library's calls mean (MAPPED_LOCAL, ...), and how stacks are walked through it. */
uint64_t library_look(struct mapped_answer *a, pid_t pid, const struct map *m);
void serve_requests(struct monitor *m);

#endif
