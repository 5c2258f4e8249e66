/* What a rule says is done: calls of its own, answers, events that are passed over. */
#ifndef MVE_INSIDE_FOLLOW_SERVE_H
#define MVE_INSIDE_FOLLOW_SERVE_H

#include "engine/core/rules.h"
#include "engine/core/walk.h"
#include "engine/inside/gate/thread.h"
#include "engine/inside/replay/follow.h"

/* Nothing of it is called unless rules_given(). */
enum step_result rules_meet(struct thread *t, struct walk *w, long nr, long *result);
/* Whatever the next event is, and before there is one. */
enum step_result rules_meet_first(struct thread *t, struct walk *w, long nr, long *result);
/* The call is not the next event's. */
enum step_result rules_meet_unexpected(struct thread *t, struct walk *w, long nr, long *result);
/* It has no event: only where a rule names it. */
enum step_result rules_meet_local(struct thread *t, struct walk *w, long nr, long *result);

#endif
