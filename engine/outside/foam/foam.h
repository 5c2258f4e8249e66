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

/* What is to be written. */
struct foam_want {
	const struct version *twin;
	int memory, pagemap;	/* of its process, open */
	pid_t parent, group;	/* that its leader's process had */
	uint64_t point;		/* where its struct foam_point is */
	int folder;		/* of the recording, */
	uint64_t recording[2];	/* and which it is */
	uint32_t number;	/* of the image */
};

/* In a process of its own: whole or not at all; 0, or a negative errno. */
int foam_write(const struct foam_want *want);

/* --- one that was written -------------------------------------------------------------- */

struct foam {
	int fd;
	struct foam_head head;
	struct foam_map *map;
	struct foam_lane *lane;
	struct image *program;
	char why[FOAM_WHY];	/* it is not to be used */
};

/* All of it is looked at; NULL, and `why`. */
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

/* --- a process of it ------------------------------------------------------------------- */

/* The recorded lanes as they were, and where the follower reads on. */
void foam_lanes(struct monitor *m, const struct foam *f);
/* In a follower's process, before its execve: what it is mapped of stays open. */
void foam_keep(const struct version *v);
/*
 * The tracee stands at its exec stop, and becomes what is in the file; 0 or a negative errno, and
 * `why` may say of what.
 */
int foam_make(struct version *v, pid_t pid, struct foam *f);
/* The version's first program is to be that, */
bool foam_wanted(const struct version *v);
/* and stands there: it comes to follow as a twin does. */
void foam_begin(struct version *v, pid_t pid);

#endif
