/* The inside as the host of engine/core: the streams, waiting, a full ring, lanes. */
#ifndef MVE_INSIDE_HOST_H
#define MVE_INSIDE_HOST_H

#include "engine/core/pairs.h"
#include "engine/core/ring.h"
#include "engine/inside/gate/thread.h"
#include "engine/inside/lanes/full.h"
#include "engine/inside/lanes/now.h"
#include "engine/inside/lanes/sleep.h"

void stream_child(struct thread *c, uint32_t lane);
/* What the slot says of the thread's place in the streams. */
void stream_describe(struct thread *t);
/* The thread's lane as the monitor knows it. */
static inline uint32_t lane_known(const struct thread *t)
{
	return boot.realm * LANES + t->lane;
}
long target_swap(uint64_t at, int32_t was, int32_t now);
void local_add(uint64_t from, uint64_t len);
void locals_begin(void);
/* So much of the looked-at event's payload; false: it has not so much. */
bool follow_payload(struct reader *r, void *to, size_t size);

/* Whether a word of the conduct has this version's bit. */
static inline bool conduct_has(const uint32_t *bits)
{
	/* What the monitor did before it set the bit is seen. */
	return CONSUME(conduct_bits, bits) >> streams.self & 1;
}

/* Does anybody listen to this thread? */
static inline bool stream_followed(const struct thread *t)
{
	return (streams_followers(&streams, t->writer.section) & t->writer.lane->readers) != 0;
}

/* Code of the loader or of an allocator: each version's own affair. */
bool local_code_in(uint64_t at);

/* All such ranges lie in here: mostly there is one, or they lie beside one another. */
extern struct local_span {
	uint64_t from, to;
} local_span;

static inline bool local_spanned(uint64_t at)
{
	return at > __atomic_load_n(&local_span.from, __ATOMIC_RELAXED) &&
	       at <= __atomic_load_n(&local_span.to, __ATOMIC_RELAXED);
}

static inline bool local_code(uint64_t at)
{
	return local_spanned(at) && local_code_in(at);
}

static inline bool local_site(const struct thread *t)
{
	return local_code(t->frame.site_end);
}

static inline void call_args(const struct frame *f, uint64_t args[CALL_ARGS])
{
	for (unsigned i = 0; i < CALL_ARGS; i++)
		args[i] = f->arg[i];
}

#endif
