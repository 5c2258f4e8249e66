/* What a recording knows of its program. */
#ifndef MVE_OUTSIDE_LOG_HEAD_H
#define MVE_OUTSIDE_LOG_HEAD_H

#include "engine/abi/log.h"
#include "engine/outside/monitor/monitor.h"

struct head_bytes {
	uint8_t *bytes;		/* a struct log_head and its words: the caller's to free */
	uint32_t size;
};

/* Of a leader that stands at its first instruction; `late`: or runs; or -E2BIG, ... */
int head_make(struct monitor *m, bool late, struct head_bytes *out);
/* Of the program's file; 0 bytes: it has none. */
uint32_t build_id_read(const char *path, uint8_t id[LOG_BUILD_ID]);

#endif
