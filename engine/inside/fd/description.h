/*
 * Descriptions (open files, as the kernel has them) that several numbers lead to, and epoll sets,
 * which are the same by whichever of their numbers they are changed and asked, and go with the
 * last.  All with LATCH_epoll, but description_stays.
 */
#ifndef MVE_INSIDE_DESCRIPTION_H
#define MVE_INSIDE_DESCRIPTION_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/inside/fd/table.h"

/* What this number leads to; 0: nothing is known of it.  The same, and it is; 0: no memory. */
int32_t description_of(int64_t fd);
int32_t description_make(int64_t fd);
/* How many numbers are known to lead there. */
uint32_t description_numbers(const struct fd_row *r);
/* It is an epoll set, with registrations that are to be forgotten with it. */
void description_is_set(int32_t description);
/* The number leads there no more; an epoll set that was its last, or 0. */
int32_t description_leave(struct fd_row *r);
/* This row's number leads where another does; false: no memory. */
bool description_join(int64_t from, struct fd_row *to);
/* Another number leads to the same: a close takes it out of no epoll set. */
bool description_stays(int64_t fd);

#endif
