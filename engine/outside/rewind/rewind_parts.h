/* Between the files of this folder. */
#ifndef MVE_OUTSIDE_REWIND_PARTS_H
#define MVE_OUTSIDE_REWIND_PARTS_H

#include "engine/outside/rewind/copies.h"
#include "engine/outside/rewind/rewind.h"

void rewind_state_begin(struct version *v, enum rewind_state state, unsigned ms);

/* taking.c */
int64_t image_begin(struct version *v);
int64_t image_stands(struct version *v, const struct request *r);
int64_t image_made(struct version *v, const struct request *r);
/* There is none: one is begun soon, and less soon each time in vain. */
void image_again(struct version *v);
void image_again_look(struct version *v);
/* One is kept, by `stands`: how much is read before the next. */
void images_pace(struct rewind *rw, bool in_turns, uint64_t used_us);
/* The threads go on; where no image has come of it, the copies that there are end. */
void stand_over(struct version *v, int64_t reply);
void stand_late(struct version *v);

/* back.c */
int64_t image_woke(struct version *v, const struct request *r);
int64_t order_lost(struct version *v, const struct request *r);
void back_look(struct version *v, bool late);

/* The followers that have images read nothing, though they had the time. */
bool image_still(struct monitor *m);

/* races.c */
void race_note(struct version *v, const struct request *r);
/* The same of a lock whose order was lost. */
void race_note_lock(struct version *v, const struct request *r);
/* False: it has been tried often enough, or at too many places. */
bool met_count(struct version *v, const struct request *r);
/* It goes back from there: what came as far by this try is met by it again. */
void heal_note(struct version *v, const struct request *r);
void heals_forget(struct version *v);

#endif
