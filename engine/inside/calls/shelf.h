/* Patched code that takes the place of a file's. */
#ifndef MVE_INSIDE_SHELF_H
#define MVE_INSIDE_SHELF_H

#include <stdbool.h>

#include "engine/abi/boot.h"

/* False: it cannot be had, and the shelf is not to be counted on any more. */
bool shelf_move(const struct code_move *m);
/* What the monitor has left to be done before the program begins. */
void shelf_begin(void);

#endif
