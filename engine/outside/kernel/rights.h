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

bool rights_cover(pid_t asker, pid_t twin);
/* What it may become.  Two processes of one key could write each other's memory, too. */
bool rights_key_read(pid_t tid, struct rights_key *key);
/* A program that it executes has another key; by_file: of one that gives rights. */
bool rights_change_by_exec(pid_t tid, bool by_file);

#endif
