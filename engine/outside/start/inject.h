/*
 * Putting the inside into a program that has just been started by execve.
 */
#ifndef MVE_OUTSIDE_INJECT_H
#define MVE_OUTSIDE_INJECT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "engine/abi/area.h"
#include "engine/abi/ring.h"
#include "engine/outside/kernel/maps.h"
#include "engine/outside/monitor/monitor.h"
#include "engine/outside/start/layout.h"

struct inject_want {
	int area_fd, brief_fd;
	uint64_t key;		/* of the version's requests */
	enum tier tier;
	uint32_t image;		/* its number among the version's, */
	struct image *row;	/* and what is to be filled */
	uint32_t hidden;	/* enum hidden_bits */
	enum role role;
	bool leaves;		/* the session may leave the program to itself again */
	uint32_t chunks;	/* of each stream; 0: a session without followers */
	uint32_t versions;	/* whose sections are mapped */
	uint64_t span;		/* that the streams take of the address space, at the least */
	uint32_t version, lane;	/* our own, and the first thread's, */
	uint32_t realm;		/* and in which realm that is */
	int32_t vpid;
	int conduct_fd;
	int section_fd[VERSIONS];	/* ours to write, the others' to read */
	uint64_t random[2];	/* what AT_RANDOM points to, with followers */
	const struct layout_wish *wish;	/* of a follower */
	uint32_t *puts_off;	/* of `conduct` */
	unsigned *rollbacks;	/* programs with checkpoints, whose requests are taken back; NULL:
				   they are not */
	bool *runtime;		/* set if a sanitizer's is linked into the program */
	struct maps *maps;	/* of the program as it stands, which are taken; or none */
	const char *const *seam;	/* functions with which a request begins; NULL ends */
};

/*
 * The tracee stands at its exec stop (PTRACE_EVENT_EXEC).  After 0 it is ready
 * to be detached and will run with every call held; after a negative errno it
 * is as it was, and may be detached to run unheld.  `layout`, of a leader that has
 * followers, is filled.
 */
int inject(pid_t pid, const struct inject_want *want, struct layout *layout);

/*
 * Its files have been planned, or cannot be; else somebody is doing it from now on.  `maps`,
 * for maps_free(), are its mappings.
 */
bool inject_planned(pid_t pid, bool followers, struct maps *maps);

/* Board room that later mappings of a process use: near its libraries. */
#define LIBRARY_BOARDS	0x40000ull

#endif
