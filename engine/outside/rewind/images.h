/* A follower's image, as the monitor knows it, and the races that it was needed for. */
#ifndef MVE_OUTSIDE_IMAGES_H
#define MVE_OUTSIDE_IMAGES_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/types.h>

#include "engine/abi/brief.h"
#include "engine/abi/request.h"
#include "engine/outside/follow/given.h"

/*
 * Limit (followers): places of one image at which a follower may differ, and be tried again.
 * Beyond: it is a divergence.
 */
#define MET_MAX		16
/*
 * Limit (followers): places of races that `mve status` names. Beyond: further ones are
 * counted in one sum.
 */
#define RACES_MAX	16
#define RACE_TEXT	160

/* How often it is met in the same way that was right for what is before. */
#define HEAL_TRIES	4

/* An event at which a follower has differed since its image. */
struct met {
	uint32_t lane, life;
	uint64_t at;
	uint32_t times;
};

struct race {
	char text[RACE_TEXT];	/* the call, and whose code made it */
	uint64_t times;
};

#define COPY_LIMITS	2	/* of a process: descriptors, processes */

/* A process of the follower, and its copy. */
struct copy {
	pid_t of, pid;		/* pid 0: there is none, or none yet */
	pid_t known;		/* who it is by the others' memory, however often it has gone on */
	pid_t claim;		/* what `of` says that it is: nothing is done to it for that */
	uint64_t began;		/* the copy */
	pid_t parent, group;	/* of the one that is `known`, as the kernel said */
	bool waits;		/* who asks waits for the others' */
	bool tells;		/* on the way to company: from here on */
	bool lifted[COPY_LIMITS];	/* it may have more than these of it: */
	struct rlimit limit[COPY_LIMITS];
	struct request request;
};

enum rewind_state {
	REWIND_NONE,		/* it has no image, or sleeps beside the follower */
	REWIND_STANDS,		/* the threads are asked to stand for one */
	REWIND_ENDS,		/* the follower ends, for its image to go on */
	REWIND_WAKES,		/* the image goes on, and has not said so */
};

struct rewind {
	enum rewind_state state;
	uint32_t last;		/* the number of the image that was asked for last */
	uint32_t image;		/* of the one that is kept; 0: none */
	struct copy copy[COPIES_MAX];	/* its processes; the first is the version's first */
	unsigned copies;
	bool over;		/* it is no image any more, and they have yet to be ended */
	struct copy wanted[COPIES_MAX];	/* of those that are being made */
	unsigned wanted_copies;
	uint64_t oldest;	/* when the version began, where its first process is a copy */
	uint64_t until_ms;	/* the state is waited for */
	struct given stands;	/* since then it has stood, or come to stand, for an image */
	uint64_t again_ms;	/* there is none, and another is begun then; 0: none is */
	struct given still;	/* since it has read last, when its leader wanted room */
	uint64_t still_at;	/* all that it had read by then */
	unsigned failed;	/* so often in a row did none come of it, or not last */
	bool needed;		/* it has gone back to the one that is kept */
	struct healed differs;	/* where it did last; since that try no part more is healed */
	unsigned most;		/* so many parts were healed at once */
	unsigned lost;		/* so often for its order was lost (order_lost), less what that
				   has brought */
	bool disordered;	/* that was too often for one image: it is so by itself */
	unsigned doubled;	/* how often the way to the next was, as none was needed */
	uint64_t worked_us;	/* by the one that is kept, of a processor */
	bool refused;		/* it was said why there is none */
	uint64_t images, rewinds;	/* taken, gone on */
	struct met met[MET_MAX];	/* since the image that is kept */
	unsigned mets;
	struct race race[RACES_MAX];
	unsigned races;
	uint64_t races_more;
	char why[RACE_TEXT];	/* what is tried again */
};

#endif
