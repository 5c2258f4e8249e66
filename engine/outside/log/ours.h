/* Whether a folder, with what is in it, is in nobody else's power. */
#ifndef MVE_OUTSIDE_LOG_OURS_H
#define MVE_OUTSIDE_LOG_OURS_H

#include <limits.h>
#include <stdbool.h>

struct foreign {
	char name[NAME_MAX + 1];	/* in its folder; ".": the folder itself */
	char why[80];
};

/* false: what is not, and why; or what cannot be looked at. */
bool folder_is_ours(int folder, struct foreign *f);

#endif
