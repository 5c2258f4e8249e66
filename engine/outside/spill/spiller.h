/* The spiller's process: it moves chunks between the ring's memory and the file. */
#ifndef MVE_OUTSIDE_SPILLER_H
#define MVE_OUTSIDE_SPILLER_H

#include "engine/outside/spill/spill.h"

#define SPILLER_WHY	160

/* To the monitor; nothing: it has ended. */
struct spiller_word {
	bool over;		/* it ends */
	bool lost;		/* `reader` cannot read on of `source`: the file has lost it */
	uint32_t reader, source;	/* versions */
	char text[SPILLER_WHY];
};

struct spiller {
	struct monitor *m;
	struct spilled *seen;
	bool shares;		/* the disk's room is not ours to take: disk_has_room() */
	int folder, socket;	/* where the file is made; the monitor's end is the other's */
	int section[VERSIONS];	/* files of the first realm's sections */
};

_Noreturn void spiller_run(const struct spiller *s);

#endif
