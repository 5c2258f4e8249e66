/*
 * Whether one process may have what another has open.  Which process it is the twin of is
 * what its version says, and a worker may name one that has more rights than it.
 */
#ifndef MVE_OUTSIDE_RIGHTS_H
#define MVE_OUTSIDE_RIGHTS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "engine/outside/monitor/monitor.h"

struct rights_key;

/* What a process may open, as far as we may give that to ourselves. */
#define WORN_GROUPS	256	/* those beyond it are not: that is less */

struct rights_worn {
	uint32_t uid, gid, groups;
	gid_t group[WORN_GROUPS];
	uint64_t caps;
};

bool rights_worn_read(pid_t pid, struct rights_worn *w);
/*
 * We have no more than these from here on, for good: a child that opens what a process names.
 * False: we cannot give ours up, and nothing is to be opened.
 */
bool rights_wear(const struct rights_worn *w);

bool rights_cover(pid_t asker, pid_t twin);
/* What it may become.  Two processes of one key could write each other's memory, too. */
bool rights_key_read(pid_t tid, struct rights_key *key);
/* A program that it executes has another key; by_file: of one that gives rights. */
bool rights_change_by_exec(pid_t tid, bool by_file);

#endif
