/* Between the files of this folder. */
#ifndef MVE_OUTSIDE_REWIND_PARTS_H
#define MVE_OUTSIDE_REWIND_PARTS_H

#include "engine/outside/rewind/rewind.h"

void rewind_state_begin(struct version *v, enum rewind_state state, unsigned ms);

/* taking.c */
int64_t image_begin(struct version *v);
int64_t image_stands(struct version *v, const struct request *r);
int64_t image_made(struct version *v, const struct request *r);
/* There is none: one is begun soon, and less soon each time in vain. */
void image_again(struct version *v);
void image_again_look(struct version *v);
/* The threads go on; where no image has come of it, the copies that there are end. */
void stand_over(struct version *v, int64_t reply);
void stand_late(struct version *v);

/* copies.c: `wanted` are those that are being made, `copy` the image's. */

/* Which processes there are: 0; -EAGAIN: one is being made; -E2BIG. */
int copies_begin(struct version *v);
/* There are no others by now. */
bool copies_all(struct version *v);
struct copy *copy_of(struct rewind *rw, pid_t pid);
/* The asker's copy is this process; false: that is none of the version's. */
bool copy_have(struct version *v, struct copy *c, pid_t pid);
/* The asker waits for the others; true: all wait. */
bool copies_wait(struct rewind *rw, struct copy *c, const struct request *r);
void copies_answer(struct version *v, int64_t reply);
/* What was wanted is not to be, or is the image. */
void copies_drop(struct rewind *rw);
void copies_take(struct rewind *rw, uint32_t image);
void copies_kill(struct rewind *rw);
bool copies_live(const struct rewind *rw);
bool copies_are(const struct rewind *rw, pid_t pid);
/* The process' copy in the image; NULL: it has none. */
const struct copy *copy_kept(const struct rewind *rw, pid_t of);
/* They go on as what they are copies of, and are to have copies of their own. */
void copies_move(struct version *v);

/* back.c */
int64_t image_woke(struct version *v, const struct request *r);
int64_t order_lost(struct version *v, const struct request *r);
void back_look(struct version *v, bool late);

/* races.c */
void race_note(struct version *v, const struct request *r);
/* The same of a lock whose order was lost. */
void race_note_lock(struct version *v, const struct request *r);
/* False: it has been tried often enough, or at too many places. */
bool met_count(struct version *v, const struct request *r);

#endif
