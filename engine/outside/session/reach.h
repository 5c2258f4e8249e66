/*
 * What may let us wait for whom it is about: another process' memory, which may lie in a file
 * of who knows whom, its maps and what an execve of its locks.
 */
#ifndef MVE_OUTSIDE_REACH_H
#define MVE_OUTSIDE_REACH_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#define REACH_ROOM	(1u << 20)

/* From now on others are served: a thread of ours does it, and is left behind where it waits. */
void reach_begin(void);

/*
 * The process stands at its exec stop: its memory is its own, made by the kernel of near files,
 * and is reached in place.  0: none does.  -> which did before.
 */
pid_t reach_stopped(pid_t pid);
/* Nobody is held up: it may be done without these. */
bool reach_in_place(pid_t pid);

/*
 * Room for what is to be done about the process and for what comes of it, which is ours until
 * the next asks for it; NULL: its user's processes have us wait already.
 */
void *reach_room(pid_t pid, size_t size);

/* Clients wait: the loop looks for longer before it sleeps, for that costs a wake-up more. */
void reach_hasten(bool urgent);

/* What the loop itself has waited for, of a process that might be reached, is counted, too. */
bool reach_may(pid_t pid);
void reach_waited(pid_t pid, unsigned ms);

/*
 * Does it; the result of `work`, or -ETIME: it still waits, and has the room for itself.
 * `late` (NULL: nothing) gives back what came of it then.  `work` takes nothing of ours but
 * the room.
 */
long reach_do(long (*work)(void *room), void (*late)(void *room, long result));
/* The same, of which nothing is lost that is not done soon: it is asked again. */
long reach_try(long (*work)(void *room), void (*late)(void *room, long result));
/*
 * And this, which nobody waits for; until it is done, or left behind.  `late` (NULL: nothing) is
 * told of it in any case, before the room is anybody else's.
 */
void reach_post(long (*work)(void *room), void (*late)(void *room, long result));
void reach_settle(void);

#endif
