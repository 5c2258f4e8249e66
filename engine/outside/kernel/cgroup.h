/*
 * A cgroup for a session with followers, and one in it for each version: what a process
 * cannot leave by forking, by unmapping its area, or by a program that runs unheld.  A
 * version's end is the end of all that is in its cgroup.
 *
 * It needs cgroup v2, mounted and writable where mve itself is; where it is not so, a
 * version's processes are those that have its area mapped, and mve doctor says so.
 */
#ifndef MVE_OUTSIDE_CGROUP_H
#define MVE_OUTSIDE_CGROUP_H

#include <stdbool.h>
#include <sys/types.h>

/* Ours; a descriptor, or a negative errno.  *path: its name in /proc/PID/cgroup. */
int cgroup_own(char *path, size_t size);
/* The process', in the hierarchy in which memory is counted: version 1's, if there is one. */
int cgroup_memory(pid_t pid, char *path, size_t size);
/* Makes the session's beneath ours; removes what ended sessions have left there. */
int cgroup_make(int own, const char *session);
/* In the child: it and what it starts are in the version's from now on. */
void cgroup_enter(int session, const char *version);
/* The same for a process that runs. */
void cgroup_put(int session, const char *version, pid_t pid);
/* Kills all that is in the version's; whether there was something. */
bool cgroup_kill(int session, const char *version);
/* Whether a process is in it, or beneath it. */
bool cgroup_has(const char *path, pid_t pid);
/* The name of the session's beneath ours; and in /proc/PID/cgroup, ours being `path`. */
void cgroup_name(char *name, size_t size, const char *session);
void cgroup_path(char *to, size_t size, const char *path, const char *session);
/* The session's that the process is in; a descriptor, or a negative errno. */
int cgroup_of(pid_t pid, const char *session);
/* Removes the session's, in a moment, if nothing lives there. */
void cgroup_remove(int own, const char *session);

#endif
