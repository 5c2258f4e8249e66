/* What a rule says is done: calls of its own, answers, events that are passed over. */
#ifndef MVE_INSIDE_FOLLOW_SERVE_H
#define MVE_INSIDE_FOLLOW_SERVE_H

#include "engine/core/rules.h"
#include "engine/core/walk.h"
#include "engine/inside/gate/thread.h"
#include "engine/inside/replay/follow.h"

enum step_result rules_serve(struct thread *t, struct walk *w, long nr, enum rules_verdict v,
			     const struct rules_state *before, long *result);

#endif
