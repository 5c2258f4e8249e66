/*
 * What of the traffic followers see: where requests begin, and which.  0, or an exit code
 * after a message.
 */
#ifndef MVE_RUN_SAMPLE_H
#define MVE_RUN_SAMPLE_H

#include "engine/outside/monitor/options.h"

int sample_take(struct run_options *o, const char *text);
int mark_take(struct run_options *o, const char *text);
/* When all options have been read. */
int marks_complete(struct run_options *o);

#endif
