/*
 * What `mve run` was asked for, as the command line has read it.
 */
#ifndef MVE_OUTSIDE_OPTIONS_H
#define MVE_OUTSIDE_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include "engine/abi/area.h"
#include "engine/abi/brief.h"
#include "engine/abi/ring.h"

#define FOLLOWERS_MAX		(VERSIONS - 1)
/*
 * Limit (commands): bytes of a follower's name. Beyond: refused.
 */
#define FOLLOWER_NAME_MAX	32
#define RING_LEAST		(1u << 20)
#define FULL_MS			100	/* how long a full ring is waited for */
#define VERDICT_MS		200	/* how long a difference waits to be judged */
/*
 * Limit (followers): --rewind. Beyond: refused.
 */
#define REWIND_MOST		1000
#define REWIND_TIMES		8	/* so often is a difference tried */
/*
 * Limit (followers): --on-divergence retry:TIMES/MS. Beyond: refused.
 */
#define RETRY_TIMES_MOST	1000000
#define RETRY_MS_MOST	3600000
/*
 * Limit (followers): --spare, with all -f; one less with --record. Beyond: refused.
 */
#define SPARES_MOST		5
#define STILL_MS		10000	/* how long a follower may stand still */

/* What is done when a follower differs. */
enum policy { POLICY_STOP, POLICY_IGNORE, POLICY_ALARM, POLICY_PROMOTE, POLICY_RETRY };

/* When a follower takes over by itself. */
enum failover { FAILOVER_CRASH, FAILOVER_ERROR, FAILOVER_OFF };

#define SPOOL_LEAST		(1u << 20)
#define SPOOL_MOST		((int64_t)1 << 40)

/* When what is recorded has to be on the disk: when the kernel likes, in a second, at once. */
enum log_sync { SYNC_NONE, SYNC_SECOND, SYNC_CALL };

#define RECORD_LEAST	(32u << 20)	/* bytes of a recording that is bounded */

/* How much of a recording is kept; 0: all.  Then it ends, or its beginning is dropped. */
struct record_bounds {
	uint64_t bytes, age_ns;
	bool last;
	bool images;		/* what is left begins with one: then it may be twice as much */
};

struct follower_options {
	const char *command;	/* as it was given; "same": the leader's */
	char **argv;
	const char *name;	/* NULL: f1, f2, ... */
	bool strict;
	enum policy policy;
	const char *alarm;	/* what POLICY_ALARM runs */
	uint32_t retry_times;	/* POLICY_RETRY: in a row at most; 0: for ever */
	uint32_t retry_ms;	/* and so long after the first; 0: AGAIN_MS (late/again.h) */
	const char *on_finding;	/* what is run for each new finding; or NULL */
	const char *rules;	/* the file; and what was made of it */
	struct rules_bank *rules_bank;
	bool older;		/* than the leader: @new rules hold while that leads */
	const char *release;	/* what @leader and @follower call it; or NULL */
	const char *map_from[PATH_MAPS], *map_to[PATH_MAPS];
	unsigned maps;
	bool again;		/* when it has ended it is started again */
	bool from_start;	/* it comes late, and begins where the leader began */
	enum { ASLEEP_NOT, ASLEEP_FIRST, ASLEEP_LATER } asleep;	/* a twin that is to be a file,
				   with which a recording begins, or which is further on in it */
	const struct update_words *update;	/* a twin that becomes this build; or NULL */
};

/*
 * Limit (sampling): functions of --mark. Beyond: refused.
 */
#define SEAM_FUNCTIONS	8

/* Not; where a disk allows it; or it is an error where none does. */
enum spill { SPILL_NOT, SPILL_MAY, SPILL_MUST };

struct run_options {
	const char *name;	/* NULL: made from the command */
	const char *release;	/* the leader's */
	enum tier tier;
	enum role role;
	bool audit;
	pid_t attach;		/* the server, which runs already; 0: the command is begun */
	const char *status_file;	/* final status is written here; or NULL */
	int trace_fd;		/* where a trace goes; -1: to standard error */
	char **argv;
	struct follower_options follower[FOLLOWERS_MAX];
	unsigned followers;
	enum when_full when_full;
	uint32_t full_ms;
	bool one_at_a_time;	/* of each process one thread works */
	bool from_start;	/* what it tells from its start on is kept */
	uint64_t ring_bytes;
	enum spill spill;	/* a follower that is a ring behind reads on from disk */
	uint64_t log_max;	/* what of the ring is on disk, at most; 0: nobody has said */
	enum failover failover;
	uint32_t verdict_ms;	/* a crash of the leader within this makes a verdict void */
	uint32_t hang_ms;	/* 0: a hang is not looked for */
	uint32_t rewind;	/* so often is a difference tried; 0: no images are kept */
	uint32_t spares;	/* twins that are kept */
	bool rollback;		/* a request that fails is taken back, where that can be, */
	bool refuse_known;	/* and the same one is not tried again */
	uint32_t brings;	/* by which calls one comes, as bits: enum rollback_brings */
	const char *reply;	/* what its connection gets, so many bytes; or NULL */
	uint32_t reply_size;
	uint32_t still_ms;	/* a follower that does not move for so long is dropped; 0: none */
	bool gdb;		/* mve replay --gdb: another program will run it */
	bool partial;		/* mve replay: one that is cut may be equal up to there */
	const char *begins;	/* a time, by the image before which a replay begins; or NULL */
	const char *until;	/* where a replay is to stand first, or NULL */
	const char *record;	/* the streams are written down in this folder; or NULL */
	enum log_sync sync;	/* of what is recorded */
	int compress;		/* zstd's level for it; or 0 */
	struct record_bounds bounds;
	uint64_t images_ms;	/* between two images of what is recorded; 0: none is taken */
	const char *ship;	/* where it goes: nats://...; or NULL */
	uint64_t spool;		/* bytes that may wait for that */
	const char *from;	/* mve follow --from: where it comes from */
	bool spooled;		/* the folder is for that alone: it goes when it is sent */
	const char *used;	/* files that are mapped are listed there; or NULL */
	struct replay *replay;	/* the leader is a recording; or NULL */
	struct seams seams;	/* where a request begins */
	const char *seam_function[SEAM_FUNCTIONS + 1];	/* or where one is entered; NULL ends */
	struct sampling sampling;
};

/* What holds of a server where nothing else is said, whether it is begun or attached to. */
#define SERVER_OPTIONS { \
	.tier = TIER_PATCH, .role = ROLE_SOLO, .ring_bytes = RING_DEFAULT, .full_ms = FULL_MS, \
	.still_ms = STILL_MS, .verdict_ms = VERDICT_MS, .rewind = REWIND_TIMES, \
	.spill = SPILL_MAY, \
}

static inline bool options_seams(const struct run_options *o)
{
	return o->seams.calls || o->seams.path[0] || o->seam_function[0];
}

/* Programs may join the leader as it runs. */
static inline bool options_joinable(const struct run_options *o)
{
	return o->sampling.stateless && options_seams(o);
}

/* One set of sections for all processes, whatever rights they have. */
static inline bool options_one_realm(const struct run_options *o)
{
	return options_joinable(o) || o->record || o->replay || o->from_start;
}

/* Others run beside the leader, or may come to. */
static inline bool options_company(const struct run_options *o)
{
	return o->followers || o->sampling.stateless || o->record || o->spares ||
	       o->from_start;
}

/* Rows of versions: those behind are of sections that no version has (abi/ring.h). */
static inline unsigned options_versions(const struct run_options *o)
{
	return o->record ? ROW_LOG : options_joinable(o) || o->spares || o->from_start ?
	       ROW_START : VERSIONS;
}

#endif
