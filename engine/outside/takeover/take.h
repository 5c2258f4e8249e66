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
/* --- ahead.c: what a leader asks that crashes, and what it has, is looked up in time ---- */

void ahead_open(void);
/*
 * For a bell's thread: who rings leads, and says that it dies.  True: it is to be looked at, when
 * the loop has been woken; meanwhile its bell is not heard.
 */
bool ahead_dies(const struct version *v);
void ahead_foresee(const struct version *v);
/* In the loop: so is it now. */
bool ahead_is_deaf(void);
/* What the thread of this slot asks, which nobody has served yet; false: that is not known. */
bool ahead_request(const struct version *v, uint32_t slot, struct request *r);
/* It is what the takeover is about.  And: what nobody wanted is closed. */
void ahead_begin(const struct request *r);
void ahead_end(void);

/* The successor's process is sent what it takes, where it knows of that (wire.h). */
void take_unasked(struct monitor *m, struct move *mv);
int64_t take_serve(struct version *v, const struct request *r);

/* --- wire.c: by which a process is sent what it takes without asking for it ------------ */

/* REQ_WIRE. */
int64_t wire_serve(struct version *v, const struct request *r);
/* The version has ended, and another comes in its place. */
void wire_drop(struct version *v);
/* Before the streams are switched: the successor is told whether it is sent what it takes. */
void wire_begin(struct monitor *m, const struct move *mv);
/* Behind that, while it wakes: it is not, where its rights are less than its twin's. */
void wire_rights(const struct move *mv);
bool wire_sends(const struct version *v);
/* Our end, to be closed by descriptors_close(), and who takes by it, as if it had asked. */
int wire_take(struct version *v, struct request *r);
/* It need not be sent anything any more; or is to ask, at once. */
void wire_end(struct version *v);
void wire_refuse(struct version *v);

/* --- takers.c ------------------------------------------------------------------- */

/* It has been sent all unasked, and asks all the same: it has not got it. */
void takers_ask(struct move *mv, const struct version *v, pid_t pid);
/* Such a one has yet to come. */
bool takers_unasked(const struct move *mv);
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
