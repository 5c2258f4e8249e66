/*
 * The kernel's own vDSO in a process.
 */
#ifndef MVE_OUTSIDE_VDSO_H
#define MVE_OUTSIDE_VDSO_H

#include <stdint.h>

#include "engine/abi/boot.h"

/* Finds its functions at `base`; those that it lacks become 0. */
void vdso_functions(int memory, uint64_t base, uint64_t out[VDSO_FUNCTIONS]);

#endif
