/*
 * The server's threads: where each began, and whether it stands at its point.
 */
#ifndef MVE_UPDATE_POINTS_H
#define MVE_UPDATE_POINTS_H

#include <pthread.h>

#include "engine/update/state/migrate.h"

enum point_when { POINT_BEFORE, POINT_AFTER, POINT_ABORT, POINT_WHENS };

/* Runs the server's main() as a thread that can begin anew; its status. */
int points_run(struct image *image, int argc, char **argv);
/* All threads stand at their points; false after `limit_ms`, with who does not in `why`. */
bool points_stop(unsigned limit_ms, char *why, size_t size);
/* Where the thread was that did not come, as UPDATE_FAILS takes it; 0: nobody knows. */
uint64_t points_late_at(void);
/* ... and go on, in the old code. */
void points_go_on(void);
/* All begin anew in the new build, and stand there; false after `limit_ms`: who does not. */
bool points_restart(struct image *new, unsigned limit_ms, char *why, size_t size);
/* Threads are to come to their points; ... or this one is, or is on its way in new code. */
bool points_are_asked(void);
bool points_concern_me(void);
/* The calling thread waits for it, or not any more (NULL). */
void points_wait(pthread_cond_t *condition);
void points_call(enum point_when when, const struct image *image);
bool points_are_stack(const void *at);
bool points_plan(struct migration *m);
/* Functions and arguments of threads, in the new build. */
void points_fill(struct migration *m);
struct kept_local *points_locals(void);

#endif
