/* Descriptors by which threads of one process speak to each other. */
#ifndef MVE_INSIDE_INNER_H
#define MVE_INSIDE_INNER_H

#include "engine/core/walk.h"
#include "engine/inside/fd/table.h"
#include "engine/inside/lanes/edge.h"

bool inner_is(long fd);
bool inner_is_bell(long fd);
/* What is read from it; or changed, of an epoll set. */
static inline uint32_t object_at(long fd)
{
	const struct fd_row *r = fd_row(fd);

	return r ? r->object : OBJECT_OTHER;
}
/* What is written to it. */
uint32_t object_behind(long fd);
/* A call of the trait GATHERS was made: an epoll set. */
void set_made(long fd);
/* A call with the trait INNER was made: these are. */
void inner_made(const struct walk *w);
/* One that was made when nobody was told: what the kernel says that it leads to; */
void inner_learn(long fd, const char *link);
/* and those were all. */
void inner_learnt(void);

#endif
