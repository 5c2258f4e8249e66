/*
 * What mve changed for itself and a new program must get back.
 */
#ifndef MVE_OUTSIDE_START_H
#define MVE_OUTSIDE_START_H

#include <signal.h>
#include <stddef.h>
#include <sys/resource.h>

#include "engine/outside/monitor/monitor.h"

#define KEEP_ACTIONS	4

struct start_keep {
	sigset_t mask;
	struct rlimit file_size, files;
	size_t actions;
	int sig[KEEP_ACTIONS];
	struct sigaction action[KEEP_ACTIONS];
};

/* mve begins: a limit of the file size, which is the server's, does not end mve itself. */
void start_keep_first(void);
const struct start_keep *start_kept(void);
/* The rest of what it gets back. */
void start_keep_set(const struct start_keep *k);

/* From a command to a process that stands at its first execve. */
int program_find(const char *name, char **path);
/* All of a session's, before any of them runs; 0 or an exit code. */
int programs_find(struct monitor *m);
/* Can it be a follower?  0, or an exit code behind a message. */
int program_follows(const char *path, const char *leader);
/* Why it never does what its leader does; NULL: it may. */
const char *program_foreign(const char *path, const char *leader);
int version_start(struct version *v);
/* The leader's start is waited for. */
int version_first_exec(struct version *v);
/* Why its first execve failed: a negative errno, or 0. */
int version_start_error(struct version *v);

#endif
