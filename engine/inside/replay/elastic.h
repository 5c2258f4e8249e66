/* What may be missing in one version, or made once more. */
#ifndef MVE_INSIDE_ELASTIC_H
#define MVE_INSIDE_ELASTIC_H

#include "engine/core/walk.h"
#include "engine/inside/gate/thread.h"
#include "engine/inside/order/turns.h"

/* What the leader got from the same soft call, if it made one here. */
bool follow_told_value(struct thread *t, long nr, int64_t *value);
bool wait_is_others(struct walk *w, const struct event *e);
bool wait_is_rearming(long nr, uint64_t fd);
long wait_passed(struct thread *t);
bool accept_is_over(struct thread *t, const struct event *e);
bool event_is_call(const struct event *e, struct walk *w, long nr, struct mismatch *m);

/* A query or a clock that the leader may not have made. */
struct look {
	struct thread *t;
	struct idling idling;
};
/* For follow_event_or and follow_behind. */
enum over look_over(void *look);
bool answer_elastic(struct thread *t, struct walk *w, long nr, long *result, bool *signal);

#endif
