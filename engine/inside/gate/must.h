/* What a MUST of the inside comes to. */
#ifndef MVE_INSIDE_MUST_H
#define MVE_INSIDE_MUST_H

#include "engine/core/must.h"

/* Set where a program begins (crash/failed.c): whoever has a MUST needs no more than this. */
extern void (*must_told)(const char *place);

#endif
