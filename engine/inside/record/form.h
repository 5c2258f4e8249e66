/* A call in the form in which it is told. */
#ifndef MVE_INSIDE_FORM_H
#define MVE_INSIDE_FORM_H

#include "engine/core/walk.h"
#include "engine/inside/gate/thread.h"

long call_walk(struct thread *t, struct walk *w, uint64_t args[CALL_ARGS], long nr);
uint64_t room_before(struct walk *w);

#endif
