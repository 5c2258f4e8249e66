/* Verdicts and findings are written down. */
#ifndef MVE_OUTSIDE_REPORTS_H
#define MVE_OUTSIDE_REPORTS_H

#include <limits.h>

#include "engine/outside/monitor/monitor.h"
#include "engine/outside/report/stack.h"

#define REPORT_PATH	(PATH_MAX + 32)		/* a folder's, and a name in it */

const char *signal_word(uint64_t sig);
/* Writes down a verdict that its thread waits for, and says it; the path, "" if it cannot. */
void report_write(struct version *v, enum verdict verdict, const struct request *r, char *path,
		  size_t size);
/*
 * The same where mve itself has failed in v, as the witness, a follower (v, or another of a
 * leader), has seen its thread's last events.
 */
void report_failed(struct version *v, struct version *witness, const struct request *r,
		   const char *why, char *path, size_t size);
/* Where a thread is that nobody has stopped, by the id that its program knows. */
bool report_catch(struct version *v, pid_t tid, struct stack_start *start);
/* The same of a follower that asks for nothing: it lags, or is gone. */
void report_lost(struct version *v, enum verdict verdict, const char *why);
/*
 * A leader's thread has crashed, and another leads by now: what is needed of it is taken, and
 * told when it has been read beside the loop.
 */
void report_crash(struct version *v, const struct request *r);
/*
 * A thread is about to die in a twin that becomes another build: what is needed of it is taken,
 * and told with its stack, later.  NULL: there is no memory.
 */
struct crash *report_dying(struct version *v, const struct request *r, const char *becoming);
void report_dead(struct crash *c, json_t *frames);
/* A finding; the report's number, or 0. */
struct finding_request;
unsigned report_found(struct version *v, uint32_t slot, json_t *finding,
		      const struct finding_request *request, char *path, size_t size);

#endif
