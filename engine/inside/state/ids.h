/* Ids of a version that took over. */
#ifndef MVE_INSIDE_IDS_H
#define MVE_INSIDE_IDS_H

#include "engine/inside/gate/thread.h"

/* No version but this one has made any that its programs know. */
static inline bool ids_are_ours(void)
{
	return !((const struct area *)boot.area)->ids;
}
int32_t id_own(struct thread *t, int32_t id);
int32_t id_real(struct thread *t, int32_t id);
int32_t id_seen(int32_t id);
/* How the program is to know a child or thread that has this id. */
int32_t id_born(int32_t id);
/* A process begins to follow, and will translate when it leads. */
void ids_ready(const struct thread *t);
void ids_begin(struct thread *t);
void ids_info(uint8_t *info);

#endif
