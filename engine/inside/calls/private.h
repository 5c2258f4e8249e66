/* Files that libc reads for itself. */
#ifndef MVE_INSIDE_PRIVATE_H
#define MVE_INSIDE_PRIVATE_H

#include "engine/abi/table.h"
#include "engine/inside/fd/numbers.h"
#include "engine/inside/gate/thread.h"

extern uint32_t private_count;	/* open ones: nothing to ask where it is 0 */
/* What kept.def says of a leader's: another thread has closed them under libc. */
void private_gone(struct thread *t, struct numbers n);
/* At this address is the path of one. */
bool private_path(uint64_t at);
/* The call opens a private file, or works on one: the stream is not told. */
bool private_is(const struct thread *t, const struct call_desc *d);
/* Makes it, if it is such a call. */
bool private_call(struct thread *t, long nr, long *result);
#endif
