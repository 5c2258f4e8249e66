/* mve run --record: the streams are written down as they come. */
#ifndef MVE_OUTSIDE_RECORDER_H
#define MVE_OUTSIDE_RECORDER_H

#include <jansson.h>

#include "engine/abi/log.h"
#include "engine/outside/monitor/monitor.h"

/* The folder is there and empty, before anything runs; 0 or an exit code. */
int recorder_open(struct monitor *m);
/*
 * Before that: how far it is written is told there, and how far that is elsewhere is read there;
 * where `most` bytes more than that are written the recording ends.
 */
void recorder_bound(struct log_tail *tail, uint64_t most);
/* The leader stands at its first instruction: its recorder begins. */
void recorder_begin(struct monitor *m);
/*
 * Of a session that runs (foam/record_late.c).  The folder, or a negative errno; it is given up
 * again; a descriptor of it, and which recording that will be.
 */
int recorder_late_open(const char *path);
void recorder_late_drop(void);
int recorder_late_folder(uint64_t recording[2]);
/* The leader stood for its image, and its cursors are there: it begins. */
void recorder_late_begin(struct monitor *m);
/* The leader stands: another image is of what the twin of this row has read; a segment begins. */
void recorder_cut(struct monitor *m, uint32_t version, uint32_t image);
/* It has yet to come there: no other can be taken. */
bool recorder_cuts(void);
/* What was ever written, before it was compressed. */
uint64_t recorder_bytes(void);
/* There is one at work. */
bool recorder_is(void);
/* It writes no more, and its process is about to end. */
bool recorder_ends(void);
/* The last one has ended because another version leads. */
bool recorder_left(void);
/* Of the last one: the path of its folder. */
void recorder_folder(char *path, size_t size);
/* The image that it begins with is not to be had: it ends. */
void recorder_fail(struct monitor *m, const char *why);
/* It has said something, or has ended. */
void recorder_serve(struct monitor *m);
/* The leader is dead, or cannot go on, and of what; before it is another. */
void recorder_died(const char *what);
/* The session is over: what is left is written; it is waited for, for so long. */
void recorder_end(struct monitor *m);
/* With --record: how it goes. */
json_t *recorder_json(struct monitor *m);
/* It is to end, and the session goes on; false: there is none. */
bool recorder_stop(struct monitor *m);
/* What wakes a copy of the monitor. */
bool recorder_poll(struct monitor *m);

#endif
