/*
 * What the files of a takeover share among themselves, in the order of its
 * events: who may lead, what is prepared and can be undone, what is done.
 */
#ifndef MVE_OUTSIDE_TAKEOVER_PARTS_H
#define MVE_OUTSIDE_TAKEOVER_PARTS_H

#include "engine/outside/follow/given.h"
#include "engine/outside/monitor/monitor.h"
#include "engine/outside/takeover/straggler.h"

/* --- takeover_course.c ---------------------------------------------------------- */

enum move_event {
#define EVENT(name, ...)	MOVE_##name,
#include "engine/outside/takeover/moves.def"
	MOVE_nothing
};

/* What is done as the table says.  What comes of it is an event of the same move, or nothing. */
#define ON(state, event, act, ...) enum move_event move_##act(struct monitor *m, struct move *mv);
#include "engine/outside/takeover/moves.def"

/* It has happened: all that comes of it is done when this comes back. */
void takeover_event(struct monitor *m, enum move_event event);
/* Who is to lead, and since when; nothing of the move before is left but what is yet to take. */
void move_clear(struct monitor *m, struct version *to, const char *cause, uint64_t began_us);
/* Nothing could be undone: the old leader cannot go on, and nobody else could lead. */
bool move_is_last(const struct move *mv);
/* The version cannot go on: MOVE_fails, or MOVE_nothing where none could take over. */
enum move_event move_failure(const struct version *from, const char *cause);

/* --- takeover.c ----------------------------------------------------------------- */

/* The pages there are ours, and no child's of ours as well, when they are written. */
void takeover_own(void *at, size_t size);
/* The same of a thread that is to be quick. */
void takeover_thread(pthread_t thread);

/* --- takeover_successor.c ------------------------------------------------------- */

/* Why it leads in no case; NULL: nothing is against it. */
const char *successor_barred(const struct monitor *m, const struct version *v);
/* A process of the leader's that no process of the other's follows; or 0. */
pid_t twinless(const struct monitor *m, const struct version *from, const struct version *to);
/* Of those that may lead the one to be asked first; NULL: there is none. */
struct version *successor(struct monitor *m);
/* Another than this one, which has been chosen, may lead. */
bool successor_besides(const struct monitor *m, const struct version *to);
/* The one that was found when the leader failed, a moment ago, if it may still be; or as above. */
struct version *successor_found(struct monitor *m, struct move *mv);

/* --- takeover_room.c ------------------------------------------------------------ */

/* Each of its processes may have as many descriptors as it is to take, or is let have them. */
bool successor_has_room(struct monitor *m, const struct version *v);

/* --- takeover_prepare.c --------------------------------------------------------- */

/* Dead, or a process that nobody has collected. */
bool thread_over(pid_t pid, pid_t tid);
/*
 * Asks the leader's threads to stand where no call is half told, while nobody takes over: all
 * do.  False: *late did not in this time of its own, or a takeover has been wanted meanwhile.
 */
bool leader_stands(struct monitor *m, struct version *leader, uint64_t limit_us,
		   struct straggler *late);
/* Lets the threads of a version that was to stand go on. */
void unpark(struct monitor *m, uint32_t version);
/* Forgets processes of the old leader that have ended: nobody will take from them. */
void processes_left(struct move *mv);
/* Nobody reads any more what this version told when it led; else it is dropped, if `drop`. */
bool old_stream_read(struct monitor *m, const struct version *to, bool drop);
/* The same, waited for. */
bool old_stream_over(struct monitor *m, const struct version *to);
/* All threads of a version that led before follow, and none is about to look. */
bool successor_settled(const struct version *v);
/* What versions ask, and programs on their way through execve, which stand until they are held. */
void serve_all(struct monitor *m);

/* --- takeover_commit.c ---------------------------------------------------------- */

void conduct_bit(uint32_t *bits, uint32_t version, bool on);
void streams_switch(struct monitor *m, const struct move *mv);
void versions_switch(struct monitor *m, const struct move *mv);

/* --- takeover_fail.c ------------------------------------------------------------ */

/* The successor's time to take is over. */
bool move_is_late(struct monitor *m, struct move *mv);
/* All processes of the successor that were answered have begun to lead, or have ended. */
bool takers_led(const struct monitor *m, const struct move *mv);
/* It has been answered, and nobody of it has made a call, nor ever will: there is a way back. */
bool move_unheard(struct monitor *m, struct move *mv);
/* Lets a version go on that somebody has stopped: it is to lead. */
void successor_continue(const struct version *v);

#endif
