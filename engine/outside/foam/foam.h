/*
 * Images on disk: written from a twin that sleeps, read, and made a process again.
 */
#ifndef MVE_OUTSIDE_FOAM_H
#define MVE_OUTSIDE_FOAM_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/outside/foam/foam_file.h"
#include "engine/outside/monitor/monitor.h"

#define FOAM_WHY	200

/* A process of the twin that sleeps. */
struct foam_of {
	pid_t pid;
	int memory, pagemap;	/* open */
	pid_t was, parent, group;	/* the leader's one, its parent, whose group it was in */
	uint64_t point;		/* where its struct foam_point is */
};

/* What is to be written. */
struct foam_want {
	const struct version *twin;
	struct foam_of of[COPIES_MAX];	/* its first process comes first */
	unsigned processes;
	int folder;		/* of the recording, */
	uint64_t recording[2];	/* and which it is */
	uint32_t number;	/* of the image */
};

/* In a process of its own: whole or not at all; 0, or a negative errno. */
int foam_write(const struct foam_want *want);
/* All files of the image go, if they are there; and parts of them that were being written. */
void foam_unlink(int folder, uint32_t number, bool parts);
/* The name of the file of one of an image's processes. */
void foam_name(char name[32], uint32_t number, uint32_t process);

/* --- one that was written -------------------------------------------------------------- */

struct foam {
	int fd;
	struct foam_head head;
	struct foam_map *map;
	struct foam_lane *lane;
	struct image *program;
	struct foam_ended *ended;
	struct foam *next;	/* of the image's next process */
	pid_t pid;		/* that becomes what it says; 0: none yet, */
	bool made;		/* and that has, and stands */
	char why[FOAM_WHY];	/* it is not to be used */
};

#define FOAM_EACH(f, first) for (struct foam *f = (first); f; f = f->next)

/* An image, by its first process; all of it is looked at.  NULL, and `why`. */
struct foam *foam_open(int folder, uint32_t number, const uint64_t recording[2], char *why,
		       size_t size);
void foam_close(struct foam *f);
/* All images of a recording's folder are. */
bool foam_all_whole(int folder, const uint64_t recording[2], char *why, size_t size);
/* The run at `offset`, its bytes in `bytes` (FOAM_RUN); where the next is, or 0: no more. */
uint64_t foam_run_read(const struct foam *f, uint64_t offset, struct foam_run *run, void *bytes);
/* Threads that go on. */
uint32_t foam_threads(const struct foam *f);
/* Where the first run stands. */
uint64_t foam_runs_at(const struct foam_head *h);
/* Of bytes of a file, as far as it has them. */
uint32_t foam_file_crc(int fd, uint64_t offset, uint64_t len);
uint32_t foam_run_crc(const struct foam_run *run, const void *bytes);
/* Which build's inside is ours. */
uint32_t foam_inside(void);

/* --- processes of it ------------------------------------------------------------------- */

/* The recorded lanes as they were, and where the follower reads on; memory that it shares. */
int foam_lanes(struct monitor *m, const struct foam *first);
/* In a follower's process, before its execve: what it is mapped of stays open. */
void foam_keep(const struct version *v);
/*
 * The tracee stands at its exec stop, and becomes what is in the file; 0 or a negative errno, and
 * `why` may say of what.
 */
int foam_make(struct version *v, struct foam *f);
/* The version's first programs are to be that, */
bool foam_wanted(const struct version *v);
/* and one stands there.  When all do they come to follow as a twin does. */
void foam_begin(struct version *v, pid_t pid);
/* A child of ours has ended: if it was one of those nothing comes of them. */
void foam_ended(struct monitor *m, pid_t pid, int status);
/* Nothing does. */
void foam_drop(struct version *v);

/* --- memory that they share (foam_objects.c) ------------------------------------------- */

int foam_objects_make(const struct foam *first);
/* Of a mapping of that kind: a file as long as what is mapped of it anywhere. */
int foam_object(const struct foam_map *m);
/* In a process that is to map them. */
void foam_objects_keep(void);
void foam_objects_close(void);

/* --- what they may do (foam_rights.c) ---------------------------------------------------- */

struct remote;

/* 0, or a negative errno. */
int foam_rights_note(pid_t pid, struct foam_rights *r);
/* The tracee comes to have them, by calls whose memory is at `room`; 0: it has. */
int foam_rights_make(struct remote *r, uint64_t room, const struct foam_rights *want);

#endif
