/*
 * The kernel's own vDSO in a process.
 */
#ifndef MVE_OUTSIDE_VDSO_H
#define MVE_OUTSIDE_VDSO_H

#include <stdint.h>

#include "engine/abi/boot.h"

extern const char *const vdso_names[VDSO_FUNCTIONS];

/* Finds its functions at `base`; those that it lacks become 0. */
void vdso_functions(int memory, uint64_t base, uint64_t out[VDSO_FUNCTIONS]);

/*
 * Of a process that began without us: whoever calls them comes to the inside's, whose image is at
 * `inside`.
 */
int vdso_lead(int memory, uint64_t base, uint64_t inside);
/* -EAGAIN: one of the threads that stand, at these places, is where a jump would be. */
int vdso_may_lead(int memory, uint64_t base, const uint64_t *place, uint32_t n);

#endif
