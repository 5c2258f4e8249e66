/* The image that is being written: its twin sleeps, and a process beside us writes. */
#ifndef MVE_OUTSIDE_FOAM_TASK_H
#define MVE_OUTSIDE_FOAM_TASK_H

#include <jansson.h>

#include "engine/outside/monitor/monitor.h"

/* The next twin that is to sleep is of this recording, in a folder that is the task's own then. */
void foam_task_want(int folder, const uint64_t recording[2], uint32_t number);
/* The asker sleeps, and where its struct foam_point is; false: it is not to be written. */
bool foam_task_begin(struct version *v, const struct request *r);
/* The leader stands for it, and its twin is this row's: the recording knows. */
void foam_task_reads(struct version *v, bool reads);
/* There was one, or is to be. */
bool foam_task_any(void);
/* One is being written; of this twin. */
bool foam_task_is(void);
bool foam_task_is_of(const struct version *v);
/* It does not come to sleep: nothing is written. */
void foam_task_lost(struct version *v);
/* The session is over: what is being written is waited for. */
void foam_task_close(struct monitor *m);
/* Who writes has said something, or has ended. */
void foam_task_serve(struct monitor *m);
bool foam_task_poll(struct monitor *m);
/* How it goes: its number, "state", bytes. */
json_t *foam_task_json(void);

#endif
