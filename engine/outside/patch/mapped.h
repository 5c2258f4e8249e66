/* The files that a process has mapped, as they can be looked at without waiting. */
#ifndef MVE_OUTSIDE_MAPPED_H
#define MVE_OUTSIDE_MAPPED_H

#include <stdbool.h>
#include <sys/types.h>

#include "engine/outside/kernel/maps.h"
#include "engine/outside/session/near.h"

#define INTERPRETER_MAX	256

/*
 * The file, for near_close(): 0, a negative errno, or -EAGAIN: a child looks at it, and
 * beside_ended() says when it has.  f->far: it may only be read by a child.
 */
int mapped_find(pid_t pid, const struct map *m, struct near_file *f);

/* What a program that is far names as its interpreter; true: that is known. */
bool mapped_interpreter(pid_t pid, ino_t inode, char name[INTERPRETER_MAX], bool *dynamic);

struct monitor;
/* Lets go of what nobody waits for any more. */
void mapped_look(struct monitor *m);

/* In a copy of the monitor: who looks is the original's child. */
void mapped_forget(void);

#endif
