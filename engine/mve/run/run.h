/* Options that mve run, mve trace and mve replay have in common. */
#ifndef MVE_RUN_H
#define MVE_RUN_H

#include <getopt.h>

#include "engine/outside/monitor/monitor.h"

enum {
	OPT_TIER = 256, OPT_AUDIT, OPT_STATUS, OPT_HELP, OPT_NAME, OPT_STRICT, OPT_POLICY,
	OPT_ON_FINDING, OPT_RULES, OPT_OLDER, OPT_LOG_MAX, OPT_FROM_START,
	OPT_RELEASE, OPT_MAP, OPT_RING, OPT_WHEN_FULL, OPT_FULL_MS, OPT_FAILOVER, OPT_HANG,
	OPT_STILL, OPT_VERDICT_MS, OPT_REWIND, OPT_SPARE, OPT_ROLLBACK,
	OPT_REPLY, OPT_REFUSE,
	OPT_MARK, OPT_STATELESS, OPT_SAMPLE, OPT_AGAIN, OPT_RECORD, OPT_SYNC, OPT_UNTIL, OPT_GDB,
	OPT_PARTIAL,
	OPT_COMPRESS, OPT_MAX_SIZE, OPT_MAX_AGE, OPT_KEEP, OPT_USED,
	OPT_SHIP, OPT_SPOOL, OPT_FROM,
};

#define HELPED	-1

/* 0, HELPED, or an exit code behind a message. */
int options_take(struct run_options *o, int argc, char **argv, const char *shorts,
		 const struct option *longs, const char *help);

#endif
