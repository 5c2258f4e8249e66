/*
 * A session's place on disk: $XDG_RUNTIME_DIR/mve/NAME, or /tmp/mve-UID/NAME.
 * The folder is the user's alone; in it stand session.json (who and what) and
 * `control`, the socket by which the other commands speak with the monitor.
 *
 * What session.json says is believed because nobody else can have written it: every
 * folder on the way from the first is opened as folder.h says.
 */
#ifndef MVE_OUTSIDE_SESSION_H
#define MVE_OUTSIDE_SESSION_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "engine/outside/kernel/process.h"

/*
 * Limit (commands): bytes of a session's name. Beyond: refused.
 */
#define SESSION_NAME_MAX 64
#define SESSION_NEXT	8	/* versions */

struct session {
	char name[SESSION_NAME_MAX + 1];
	char folder[256];			/* to be read by people */
	int lock;				/* the open folder: whose session it is */
	pid_t monitor, server;
	uint64_t monitor_began, server_began;	/* clock ticks since boot */
	struct session_next {
		pid_t pid;			/* 0: there are no more */
		uint64_t began;
	} next[SESSION_NEXT];			/* who may come to serve in the server's place */
	int64_t started;			/* seconds since 1970 */
	char tier[8];
	char command[256];			/* for people, cut short */
	char *const *argv;			/* its monitor's; NULL in all others */
};

enum session_state { SESSION_GONE, SESSION_RUNNING, SESSION_UNWATCHED };

/* A name that may be a folder's: letters, digits, and . _ - inside. */
bool session_name_ok(const char *name);

/*
 * Makes the folder of a new session and holds its lock.  -EEXIST: the name is in use;
 * -EINVAL: not a name; else what the system said, and folder_why() of which folder.  A
 * name left by a dead session is taken; of two that want one name, one gets it.
 */
int session_create(struct session *s, const char *name);

/* A name that is free, made from a command. */
void session_name_make(char *name, size_t size, const char *command);

/* Writes session.json, whole or not at all.  0 or -errno. */
int session_save(struct session *s);

/* The words of its command, as its folder has them. */
json_t *session_words(const struct session *s);

/* Reads a session by name.  0, -ENOENT or what the system said. */
int session_load(struct session *s, const char *name);

/* Its folder, opened; the caller closes it.  Or a negative errno. */
int session_folder(const struct session *s);

/*
 * Ends its server: only a process that is the session's by what the kernel says.  0, or a
 * negative errno; -EPERM: what session.json names is not, and is left alone.
 */
int session_signal(const struct session *s, int sig);

/*
 * The same by SIGKILL of all its processes, and waits for their end; where its monitor is
 * gone, of all its versions.
 */
int session_kill(const struct session *s);

/* Whether its monitor and its server are alive. */
enum session_state session_state(const struct session *s);

/* Removes the folder of a session that we hold, and what mve puts in it. */
void session_remove(struct session *s);

/* The same for one that nobody holds: its monitor is gone, and so is its server. */
void session_sweep(const char *name);

/* Calls each() for every session folder of the user, by name. */
int session_each(void (*each)(struct session *s, void *arg), void *arg);

#endif
