/*
 * A MUST that does not hold.  What is done then needs most of the inside, and what has a MUST
 * is to need none of it: so it is told by a pointer.
 */
#include "engine/inside/gate/must.h"

void (*must_told)(const char *place);

void must_failed(const char *place)
{
	if (must_told)
		must_told(place);
}
