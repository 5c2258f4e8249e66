/* Files that are planned beside the loop, by a process each. */
#ifndef MVE_OUTSIDE_PLANNER_H
#define MVE_OUTSIDE_PLANNER_H

#include <stdbool.h>

#include "engine/outside/session/near.h"
#include "engine/outside/patch/beside.h"
#include "engine/outside/patch/hook.h"
#include "engine/outside/plan/plan.h"

#define PLAN_WAIT_MS	(2 * BESIDE_MS)	/* for who waits for one, and for others before it */

/*
 * The plan, to be given to plan_free(): 0, why there is none, or -EAGAIN: it is being made,
 * and beside_ended() says when it is there.
 */
int planner_plan(const struct near_file *f, struct plan **out);

/* What of it can be hooked is being found out; hook.c is told. */
bool planner_hooks(const struct near_file *f, enum hook_source source);

#endif
