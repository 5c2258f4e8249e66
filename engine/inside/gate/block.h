/* Blocks and slots of threads: taken, given back, walked over. */
#ifndef MVE_INSIDE_BLOCK_H
#define MVE_INSIDE_BLOCK_H

#include "engine/inside/gate/thread.h"

struct thread *block_take(void);
void block_prepare(struct thread *t, uint32_t index);
void block_keep_only(struct thread *t);
bool block_is_only(const struct thread *t);
void block_free(struct thread *t);
void slot_claim(struct thread *t);
void slot_mend(struct thread *t);
void slot_release(struct thread *t);
struct thread *block_live(uint32_t index);
struct thread *block_next(uint32_t *index);
/* Blocks all in this thread; the mask that it has to have again. */
uint64_t signals_block(struct thread *t);

#endif
