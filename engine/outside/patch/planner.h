/* Files that are planned beside the loop, by a process each. */
#ifndef MVE_OUTSIDE_PLANNER_H
#define MVE_OUTSIDE_PLANNER_H

#include <stdbool.h>
#include <sys/types.h>

#include "engine/outside/patch/hook.h"
#include "engine/outside/plan/plan.h"

#define PLANNER_MS	60000	/* one may take so long; a gigabyte takes a few seconds */
#define PLAN_WAIT_MS	(2 * PLANNER_MS)	/* for who waits for one, and for others before it */

/* Until then the caller plans by himself: nobody else waits for him. */
void planner_begin(void);

/*
 * The plan, to be given to plan_free(): 0, why there is none, or -EAGAIN: it is being made,
 * and planner_ended() says when it is there.
 */
int planner_plan(int fd, struct plan **out);

/* What of it can be hooked is being found out; hook.c is told. */
bool planner_hooks(int fd, const struct stat *st, enum hook_source source);

/* A child has ended: true when it was one that planned. */
bool planner_ended(pid_t pid, int status);

struct monitor;
/* Ends those that have had their time. */
void planner_look(struct monitor *m);

/* In a copy of the monitor: the planners are the original's. */
void planner_forget(void);

#endif
