/* What a thread asks of the monitor. */
#ifndef MVE_INSIDE_REQUEST_H
#define MVE_INSIDE_REQUEST_H

#include "engine/inside/gate/thread.h"

/* There is somebody to answer, and a slot to ask in. */
bool request_may(const struct thread *t);
/* The same, and it asks for nothing yet. */
bool request_is_free(const struct thread *t);
long request_ask(struct thread *t, uint32_t kind, uint64_t a, uint64_t b,
		 uint64_t c);
void request_post(struct thread *t, uint32_t kind, uint64_t a, uint64_t b,
		  uint64_t c);
long request_end(struct thread *t);
/* It has been answered another way, and the monitor knows: nothing comes of it any more. */
void request_drop(struct thread *t);
/* Has the monitor look, without a question. */
void request_ring(void);
void request_tell(struct thread *t, uint32_t kind, uint64_t a, uint64_t b);
/* Has the monitor what was posted answered, or said that it cannot?  false: not yet. */
bool request_over(struct thread *t);
bool monitor_alive(void);
const struct brief *brief(void);
/* There are more of these than can be noted: says so once. */
void request_room(struct thread *t, enum room what, uint64_t limit);

/* Another thread waits for an answer, and not for what those ask that wait for each other. */
static inline bool request_awaited(const struct thread *o)
{
	const struct request *r = request_of(o);

	return __atomic_load_n(&r->state, __ATOMIC_RELAXED) == RS_ASKED && r->kind != REQ_RUNS;
}

/* What is wanting for it to go on: enum runs, or -errno. */
long request_runs(struct thread *t, const struct thread *o);

#endif
