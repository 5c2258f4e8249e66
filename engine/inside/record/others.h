/*
 * What threads of a leader do for one another: numbers that are closed and given again,
 * registrations, bytes.
 */
#ifndef MVE_INSIDE_OTHERS_H
#define MVE_INSIDE_OTHERS_H

#include "engine/core/walk.h"
#include "engine/inside/fd/numbers.h"
#include "engine/inside/gate/thread.h"

/* A call of TRAITS_GONE is about to be made; it was made, and told. */
void numbers_go(struct thread *t, const struct walk *w);
void numbers_went(const struct walk *w);
/* A call of CARE_CAME was made. */
void numbers_came(struct thread *t, const struct walk *w);
/* Who is given a number waits until that is told. */
void closing_wait(const struct walk *w);
void giving_begin(struct thread *t, const struct walk *w, unsigned care, uint64_t seq);
uint8_t after_others(struct thread *t, const struct walk *w, unsigned care);

#endif
