/* Memory that a twin's processes share: see twin_shares.c. */
#ifndef MVE_INSIDE_TWIN_SHARES_H
#define MVE_INSIDE_TWIN_SHARES_H

#include <stdbool.h>
#include <stdint.h>

/* From the monitor, so many: mapped beside what they are for, and filled. */
bool twin_shares_take(int socket, uint32_t n);
/* The leader's process has no use for them. */
void twin_shares_drop(void);
/* In the copy: they are its memory from here on; false: one cannot be. */
bool twin_shares_move(void);

#endif
