/*
 * Data of epoll registrations: the kernel has them, and often they are addresses of what moves.
 */
#ifndef MVE_UPDATE_EPOLL_H
#define MVE_UPDATE_EPOLL_H

#include "engine/update/state/migrate.h"

/* While all threads stand: which there are; false with a word. */
bool epoll_read(char *why, size_t size);
void epoll_forget(void);
/* Each that leads to what moves can be told anew; else who cannot. */
bool epoll_plan(struct migration *m);
void epoll_tell(FILE *to);
/* Where they lead to then, while that can be told; ... and the kernel, or mve, hears of it. */
void epoll_fill(struct migration *m);
bool epoll_set(struct migration *m);

#endif
