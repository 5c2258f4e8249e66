/* Memory of our own, and bytes of anybody's; the program's memory is host.h's. */
#ifndef MVE_INSIDE_MEMORY_H
#define MVE_INSIDE_MEMORY_H

#include "engine/inside/gate/thread.h"

/* Zeroed memory of our own; an address or a negative errno. */
long own_map(uint64_t len);
/* The same, shared with children. */
long own_share(uint64_t len);
void bytes_copy(void *to, const void *from, size_t len);
void bytes_zero(void *to, size_t len);

#endif
