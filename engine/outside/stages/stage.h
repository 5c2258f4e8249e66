/* What a session knows of its live update: a part of struct monitor. */
#ifndef MVE_OUTSIDE_STAGE_H
#define MVE_OUTSIDE_STAGE_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "engine/abi/brief.h"

enum stage {
#define STAGE(name, ...) STAGE_##name,
#include "engine/outside/stages/stages.def"
	STAGES
};

enum stage_event {
#define EVENT(name, what) STAGE_##name##_happens,
#include "engine/outside/stages/stages.def"
	STAGE_EVENTS
};

enum stage_past {
#define PAST(name, ...) STAGE_PAST_##name,
#include "engine/outside/stages/stages.def"
};

struct version;
struct rules_bank;

struct stages {
	enum stage stage;
	time_t since;
	uint64_t since_ms;
	struct update_words words;	/* what the twin is told */
	struct rules_bank *rules, *reverse;	/* while the old one leads; the new one; or NULL */
	unsigned tries, pause_ms;	/* that are left, if only the moment was bad */
	unsigned tried;
	uint64_t again_ms;		/* then */
	uint64_t promote_ms, commit_ms;	/* --auto: after so long; 0: by command */
	uint64_t within_ms;		/* for the twin to become the new build; 0: no limit */
	uint64_t asked_us;		/* the leader's threads were asked to their points */
	uint64_t stood_us;		/* they stood for so long, the last time */
	uint64_t limit_ms;		/* until then they come, or are given up */
	bool stand;			/* they do */
	bool copying;			/* a twin is being made of them */
	bool late;			/* one does not, and all go on */
	enum stage_event end;		/* what the new version's end means before it is new */
	bool dry;			/* once it is new it is ended */
	unsigned copies;		/* asked for since they do, in vain */
	struct place_read *reading;	/* where it ended: `why` waits for it; or NULL */
	struct version *old, *new;	/* once there is a twin */
	uint64_t equal_ms;		/* since when it has read all, nearly */
	enum stage_past past;		/* what became of the last one */
	char why[UPDATE_TEXT];		/* and why; "" */
	char said[UPDATE_TEXT];		/* what became of the state */
	char does[UPDATE_TEXT];		/* the twin's own word for what it is at; "" */
};

#endif
