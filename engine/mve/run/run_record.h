/*
 * What is asked of a recording.  0, or an exit code after a message.
 */
#ifndef MVE_RUN_RECORD_H
#define MVE_RUN_RECORD_H

#include "engine/outside/monitor/options.h"

int sync_take(struct run_options *o, const char *text);
int compress_take(struct run_options *o, const char *text);
int max_size_take(struct run_options *o, const char *text);
int max_age_take(struct run_options *o, const char *text);
int images_take(struct run_options *o, const char *text);
int keep_take(struct run_options *o, const char *text);
/* When all options have been read. */
int record_complete(const struct run_options *o);

#endif
