/*
 * The processes of a version, and a copy of each: of a follower's for its image, of a leader's
 * for its twin.  In struct rewind `wanted` are those that are being made, `copy` an image's.
 */
#ifndef MVE_OUTSIDE_COPIES_H
#define MVE_OUTSIDE_COPIES_H

#include "engine/outside/monitor/monitor.h"


/* Which processes there are: 0; -EAGAIN: one is being made; -E2BIG. */
int copies_begin(struct version *v);
/* There are no others by now. */
bool copies_all(struct version *v);
struct copy *copy_of(struct rewind *rw, pid_t pid);
/* The asker's copy is this process; false: that is none of the version's. */
bool copy_have(struct version *v, struct copy *c, pid_t pid);
/* Children that have ended, and are not waited for: 0; -EAGAIN: too many; -ENOENT: unknown. */
int copies_ended(const struct version *v);
/* They go on as what they are, in the copies' version. */
void copies_move_ended(struct version *v);
/* The asker waits for the others; true: all wait. */
bool copies_wait(struct rewind *rw, struct copy *c, const struct request *r);
void copies_answer(struct version *v, int64_t reply);
/*
 * A process that stands is let have the descriptors and children that it has forbidden itself,
 * for what it is asked; and then no more, nor its copy, which was made meanwhile.
 */
void copies_lift(struct rewind *rw);
void copies_settle(const struct rewind *rw);
void copies_made_settle(const struct rewind *rw);
#define COPIES_CONFINED	"a process of it has forbidden itself descriptors or children " \
			"(setrlimit), and mve lacks CAP_SYS_RESOURCE"
#define COPIES_NUMBER(n)	#n
#define COPIES_OVER(n)	"it has more than " COPIES_NUMBER(n) " processes"
#define COPIES_TOO_MANY	COPIES_OVER(COPIES_MAX)
/* One has, and only who has CAP_SYS_RESOURCE could let it. */
bool copies_confined(const struct rewind *rw);
/* What was wanted is not to be, or is the image. */
void copies_drop(struct rewind *rw);
void copies_take(struct rewind *rw, uint32_t image);
void copies_kill(struct rewind *rw);
bool copies_live(const struct rewind *rw);
bool copies_are(const struct rewind *rw, pid_t pid);
/* The process' copy in the image; NULL: it has none. */
const struct copy *copy_kept(const struct rewind *rw, pid_t of);
/* They go on as what they are copies of, and are to have copies of their own. */
void copies_move(struct version *v);

#endif
