/* Whose call it is: the frames above libc. */
#ifndef MVE_INSIDE_CALLERS_H
#define MVE_INSIDE_CALLERS_H

#include "engine/inside/gate/thread.h"

/*
 * The call has no twin, for the loader, an allocator or a sanitizer's runtime
 * makes it for itself.
 */
bool caller_is_local(struct thread *t, long nr);
/* Where a thread's program is; the stack below it is as calls leave it. */
struct caller_place {
	uint64_t pc, rsp, rbp;
};
/* From the thread's beginning on there is nobody but an allocator, and libc for it. */
bool caller_is_allocators(struct caller_place p);
/*
 * Up one frame of libc's, whose function begins at *function; its return address lies right
 * below where the stack is then.  False: it is not libc's, or its tables do not say.
 */
bool caller_up(struct caller_place *p, uint64_t *function, bool first);
/* A lock that libc takes: whether a runtime made it do so, to look at what is loaded. */
bool caller_in_libc(uint64_t return_address);
/* It is libc's, or it is not known where that is: the program has it in itself. */
bool caller_in_known_libc(uint64_t pc);
bool caller_locks(struct thread *t, uint64_t return_address, uint64_t rsp);
/* The call stands in a sanitizer's runtime itself. */
bool caller_is_runtime(const struct thread *t);
void part_add(uint64_t from, uint64_t len, uint32_t kind, uint64_t unwind);

#endif
