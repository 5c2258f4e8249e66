/*
 * What threads of a leader do for one another: numbers that are closed and given again,
 * registrations, bytes.
 */
#ifndef MVE_INSIDE_OTHERS_H
#define MVE_INSIDE_OTHERS_H

#include "engine/core/walk.h"
#include "engine/inside/gate/thread.h"

void closing_begin(const struct thread *t, const struct walk *w);
void closing_end(const struct walk *w);
void closing_wait(const struct walk *w);
void polled_by(const struct thread *t);
uint8_t after_others(const struct walk *w, unsigned care);
void giving_begin(struct thread *t, unsigned care, uint64_t seq);

#endif
