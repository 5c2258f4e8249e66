/*
 * Descriptors of other processes, in our hands for a moment.  To fetch one may wait for an
 * execve of its owner's (pidfd_getfd), and to close it for who keeps its file, who hears of
 * each close (FUSE, NFS), or for what a socket has still to send (SO_LINGER).
 */
#ifndef MVE_OUTSIDE_DESCRIPTORS_H
#define MVE_OUTSIDE_DESCRIPTORS_H

#include <stdbool.h>
#include <sys/types.h>

/* In a thread that may be left behind (reach.h): its number of the process', or -errno. */
int descriptor_fetch(pid_t pid, int number);

/* Closes what was fetched of the process; nobody waits for that. */
void descriptors_close(pid_t pid, const int *fd, unsigned n);
/* The same of a few, but not while clients wait for processors: when the takeover is over. */
void descriptors_leave(pid_t pid, const int *fd, unsigned n);
/* Nobody has to wait for its memory. */
void descriptors_ready(void);
/* Some are still to be closed, for nobody may wait for their owner now: true. */
bool descriptors_look(void);

#endif
