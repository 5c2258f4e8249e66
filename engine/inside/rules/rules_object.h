/* Rule objects in a follower: mapped, checked, chosen, given back. */
#ifndef MVE_INSIDE_RULES_OBJECT_H
#define MVE_INSIDE_RULES_OBJECT_H

#include "engine/inside/gate/thread.h"
#include "engine/inside/rules/follow_rules.h"

void rules_forget(struct thread *t);
void rules_child(struct thread *t);

#define PAGE		4096ull

void rules_object_get(struct thread *t);
bool rules_object_choose(struct thread *t, uint32_t source);
bool rules_place_map(struct thread *t);
void rules_place_clear(struct rules_thread *rt);
long rules_try(long (*call)(void *), void *arg, uint64_t *back, uint64_t stack);

#endif
