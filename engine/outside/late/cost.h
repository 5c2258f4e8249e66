/* What a twin may come to cost, and whether there is as much. */
#ifndef MVE_OUTSIDE_COST_H
#define MVE_OUTSIDE_COST_H

#include <stdint.h>
#include <sys/types.h>

/* Bytes of the process that a copy may come to have anew: all that no file has. */
uint64_t cost_of(pid_t pid);
/* Bytes that the machine has, and the cgroups that the process and we are in may still take. */
uint64_t cost_room(pid_t pid);

#endif
