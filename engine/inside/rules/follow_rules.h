/*
 * What follow_rules.c and follow_serve.c share: a thread's place in the rules, and
 * its workspace.  Private to the thread; mapped when it first meets a rule, kept
 * with its block.
 */
#ifndef MVE_INSIDE_FOLLOW_RULES_H
#define MVE_INSIDE_FOLLOW_RULES_H

#include "engine/core/ring.h"
#include "engine/core/rules.h"
#include "engine/core/walk.h"
#include "engine/inside/gate/request.h"
#include "engine/inside/gate/thread.h"
#include "engine/inside/replay/follow.h"
#include "engine/inside/signal/ucontext.h"

/*
 * Limit (rules): bytes of content in pieces that a rule can look at in one call. Beyond:
 * longer content is empty to the rule.
 */
#define HELD_ROOM	65536
#define OWN_ROOM	65536	/* of the follower's own call; */
/*
 * Limit (rules): bytes that an action builds. Beyond: the follower is dropped, the leader
 * is not concerned.
 */
#define BUILD_ROOM	65536

/*
 * Limit (rules): events of the leader's by which connections may be apart. Beyond: the
 * follower waits for the order of the leader.
 */
#define APART_EVENTS	32768
#define FAR_EVENTS	(APART_EVENTS - AHEAD_EVENTS)
#define FAR_WORDS	(FAR_EVENTS / 64)

/* An event at or behind the cursor, as rules see it. */
struct held {
	struct rules_call call;
	const struct event *event;
	struct reader at;		/* looks at it */
	uint32_t len[RULES_ARGS];	/* of sections not yet gathered: where they are */
	struct reader part[RULES_ARGS];
	struct view buf[RULES_ARGS];
	uint8_t open;			/* sections still to be gathered, as bits */
	uint16_t ahead;			/* raw events before it, from the cursor */
};

/* An object in this process; its mapping begins with this. */
struct loaded {
	struct rules rules;
	uint32_t generation;
	uint32_t users;		/* threads that have it */
	uint64_t len;
};

struct rules_thread {
	struct loaded *now;
	struct rules rules;	/* its, and which of them are on */
	uint32_t source;	/* ... while this version's stream is read */
	struct rules_state state;
	struct rules_state before;	/* the call's question */
	struct rules_run run;
	struct rules_answer answer;
	struct rules_call call;		/* the follower's own */
	struct walk *walk;
	uint64_t back;			/* stack of the rules_try under way */
	uint64_t stack;			/* and the end of the one that it runs on */
	uint32_t asked;			/* counts questions, by twos */
	uint8_t in_rule;
	uint8_t left_by;	/* the signal that ended it */
	uint8_t differs;	/* a match that is under way failed: its `mismatch` */
	struct mismatch mismatch;
	uint8_t own_known;
	struct view own[RULES_ARGS];
	uint64_t front;			/* held[0] stands at this cursor, */
	uint32_t front_source;		/* of this version's stream */
	int32_t lens;			/* whose events rules see; APART_ALL */
	uint32_t apart;			/* t->reader looks so many events behind the front: */
	struct reader apart_front;	/* and here is that */
	uint32_t fars;			/* how many of these are set, */
	uint32_t far_first;		/* and which is the first: they lie in a circle */
	uint64_t far[FAR_WORDS];	/* goes on where t->ahead ends */
	uint64_t answered_at;		/* events that were taken before these */
	uint32_t answers;		/* calls that rules have answered without one */
	uint64_t told_at;		/* waits that were answered at this front */
	uint32_t tolds;
	uint32_t helds;
	uint32_t held_used, own_used;
	struct held held[RULES_STEPS];
	uint8_t held_room[HELD_ROOM], own_room[OWN_ROOM], build_room[BUILD_ROOM];
};

enum rules_verdict rules_ask(struct thread *t, enum rules_verdict (*what)(struct thread *));
/* The rule failed: the follower is stopped. */
enum step_result rules_failed(struct thread *t, const char *text);
/* How it failed. */
const char *rules_fault_word(const struct rules_thread *rt);

/*
 * What rules say of a call; RULES_DEFAULT: nothing.  Whatever the next event is, and before
 * there is one; of that event, and once more behind what was dropped; of a call that is not
 * the next event's.  Nothing of it is called unless rules_given().
 */
enum rules_verdict rules_decide_first(struct thread *t, struct walk *w, long nr);
enum rules_verdict rules_decide(struct thread *t, struct walk *w, long nr);
enum rules_verdict rules_decide_again(struct thread *t, struct walk *w, long nr);
enum rules_verdict rules_decide_unexpected(struct thread *t, struct walk *w, long nr);
/* A rule has this call's name. */
bool rules_name_call(struct thread *t, struct walk *w, long nr);
/* A lock is no call: what rules drop from the stream's front, whatever is called next. */
bool rules_drop_front(struct thread *t);

static inline bool rules_given(void)
{
	return __builtin_expect(brief()->rules != 0, 0);
}
bool rules_left(struct thread *t, struct gregs *r, int sig);

bool rules_place_ready(struct thread *t, struct walk *w, long nr);
bool rules_may_go_on(const struct reader *r);
void rules_run_ready(struct thread *t, const struct rules_host *host, bool expired);

#endif
