/* The old leader's descriptors: fetched and sent. */
#ifndef MVE_OUTSIDE_TAKE_H
#define MVE_OUTSIDE_TAKE_H

#include "engine/outside/monitor/monitor.h"

/*
 * The old leader's process stands: what it has open may be fetched; how long it took,
 * in us.  And: no more.
 */
uint64_t take_prepare(struct monitor *m, pid_t twin);
void take_over(void);
int64_t take_serve(struct version *v, const struct request *r);

/* --- takers.c ------------------------------------------------------------------- */

/* It is answered later; without memory now, by -errno.  And: no more is heard of it. */
bool takers_room(struct move *mv);
int64_t takers_add(struct move *mv, struct taker *k);
void takers_close(struct taker *k);
/*
 * Those that have been sent what they are to take, and wait: how many are ready by now (of one
 * that cannot, mv->lacks says why); whether there is one; whether one of them may be waited for
 * by the others; they are answered, and lead; the twins of those that lead end; those that cannot
 * end (true: others are still to take); all are forgotten.
 */
unsigned takers_hear(struct move *mv);
bool takers_wait(const struct move *mv);
/* This process is one of them: it waits, though it may run to look whether it still has to. */
bool takers_have(const struct move *mv, const struct version *v, pid_t pid);
bool taker_is_guest(const struct move *mv);
void takers_lead(struct monitor *m, struct move *mv);
void takers_part(struct monitor *m, struct move *mv);
bool takers_end(struct monitor *m, struct move *mv);
void takers_forget(struct move *mv);
/* This slot's thread is one of them. */
bool taker_waits(const struct move *mv, const struct version *v, uint32_t slot);

#endif
