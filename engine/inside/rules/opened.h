/* Descriptors that rules let a follower open for itself. */
#ifndef MVE_INSIDE_OPENED_H
#define MVE_INSIDE_OPENED_H

#include "engine/inside/gate/thread.h"

bool rules_opened(uint64_t fd);
/* One has been closed. */
void rules_opened_gone(uint64_t fd);
/* Moves a new one to where the leader's numbers do not come; its number there. */
long rules_opened_move(long fd);

#endif
