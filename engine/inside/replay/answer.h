/* A call is answered from its event. */
#ifndef MVE_INSIDE_ANSWER_H
#define MVE_INSIDE_ANSWER_H

#include "engine/core/walk.h"
#include "engine/inside/gate/thread.h"

long follow_told(struct thread *t, struct walk *w, long nr, uint8_t flags);
/*
 * What other threads may go by as soon as the event is taken: the data of a registration,
 * and that a descriptor is free for the next.
 */
void follow_note_first(struct thread *t, struct walk *w, int64_t result);
/* A call that gives up descriptors is made, as far as this version goes. */
void follow_gone(struct thread *t, const struct walk *w);
long answer_done(struct thread *t, const struct walk *w, long nr);
long answer_call(struct thread *t, struct walk *w, const struct event *e, long nr);
/*
 * Behind the turn that the call ends with: what it brings may have been registered by another
 * thread, whose turn was before.
 */
void answer_turn(struct thread *t, const struct call_desc *d, long result);
bool answer_has_room(const struct event *e, const struct walk *w, long nr);

#endif
