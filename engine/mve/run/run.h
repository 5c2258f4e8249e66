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
	OPT_COMPRESS, OPT_MAX_SIZE, OPT_MAX_AGE, OPT_KEEP, OPT_IMAGES, OPT_BEGIN, OPT_USED,
	OPT_SHIP, OPT_SPOOL, OPT_FROM, OPT_ONE,
};

#define HELPED	-1

/* How a follower is compared: one of mve run, of a recording, or of one that comes from afar. */
#define COMPARED_OPTIONS						\
	{ "strict", no_argument, NULL, OPT_STRICT },			\
	{ "on-divergence", required_argument, NULL, OPT_POLICY },	\
	{ "on-finding", required_argument, NULL, OPT_ON_FINDING },	\
	{ "rules", required_argument, NULL, OPT_RULES },		\
	{ "older", no_argument, NULL, OPT_OLDER },			\
	{ "release", required_argument, NULL, OPT_RELEASE },		\
	{ "map", required_argument, NULL, OPT_MAP },			\
	{ "still", required_argument, NULL, OPT_STILL },		\
	{ "rewind", required_argument, NULL, OPT_REWIND }

#define COMPARED_HELP									\
	"  --strict, --on-divergence stop|ignore|alarm:CMD, --on-finding CMD,\n"	\
	"  --rules FILE, --older, --release V, --map FROM=TO, --still MS, --rewind TIMES\n"

/* Of the latter two. */
#define REPLAY_OPTIONS							\
	{ "name", required_argument, NULL, 'n' },			\
	{ "tier", required_argument, NULL, OPT_TIER },			\
	{ "status", required_argument, NULL, OPT_STATUS },		\
	{ "help", no_argument, NULL, OPT_HELP },			\
	COMPARED_OPTIONS

/* Options of mve replay for trials, and a recording behind them, at optind; 0, HELPED or a code. */
int replay_trial_take(int argc, char **argv, const char *help);
/* 0, HELPED, or an exit code behind a message. */
int options_take(struct run_options *o, int argc, char **argv, const char *shorts,
		 const struct option *longs, const char *help);

#endif
