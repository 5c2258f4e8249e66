/* What a recording knows of its program. */
#ifndef MVE_OUTSIDE_LOG_HEAD_H
#define MVE_OUTSIDE_LOG_HEAD_H

#include "engine/abi/log.h"
#include "engine/outside/log/frames.h"
#include "engine/outside/monitor/monitor.h"

struct head_bytes {
	uint8_t *bytes;		/* a struct log_head and its words: the caller's to free */
	uint32_t size;
};

/* Of a leader that stands at its first instruction; `late`: or runs; or -E2BIG, ... */
int head_make(struct monitor *m, bool late, struct head_bytes *out);
/* At its path there is a file of another build; of one that had no build id nobody knows. */
bool program_is_other(const struct program *p);

#endif
