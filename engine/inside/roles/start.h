/* The first code of a program. */
#ifndef MVE_INSIDE_START_H
#define MVE_INSIDE_START_H

#include "engine/inside/gate/thread.h"

uint32_t hidden_state(const struct thread *t);
/* Also for a program that we come to later (attach.c). */
void above_fill(void);

#endif
