/*
 * What threads of a leader do for one another: numbers that are closed and given again,
 * registrations, bytes.
 */
#ifndef MVE_INSIDE_OTHERS_H
#define MVE_INSIDE_OTHERS_H

#include "engine/core/walk.h"
#include "engine/inside/fd/numbers.h"
#include "engine/inside/gate/thread.h"

/* A call of TRAITS_GONE is about to be made. */
void numbers_go(struct thread *t, const struct walk *w);
/* A call of CARE_CAME was made. */
void numbers_came(struct thread *t, const struct walk *w);
/* The call, that is about to be told, was given a number that another thread may have closed. */
void number_take(struct thread *t, int64_t fd, uint64_t seq);
void giving_begin(struct thread *t, const struct walk *w, unsigned care, uint64_t seq);
uint8_t after_others(struct thread *t, const struct walk *w, unsigned care, uint64_t seq);

#endif
