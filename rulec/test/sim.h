/*
 * A leader and a follower made of text: what `rulec test`, `rulec explain` and
 * the unit tests run rules on.  It is a host (engine/core/rules.h) whose events
 * are an array and whose memory is strings.
 */
#ifndef RULEC_SIM_H
#define RULEC_SIM_H

#include "engine/core/rules.h"
#include "rulec/rulec.h"

#define SIM_CALLS	128	/* of one side of a test */
#define SIM_ROOM	4096

/* What a test says of how a call was served. */
enum sim_how { SIM_ANY, SIM_DEFAULT, SIM_MATCH, SIM_RUN, SIM_ANSWER };

/* A call as text has it: `read(5, "text", 100) = 4 [match put]`. */
struct sim_call {
	struct rules_call call;
	const struct call_name *row;
	struct loc loc;
	struct view buf[RULES_ARGS];
	uint8_t any;		/* bit i: `_`, not said */
	bool has_ret;
	enum sim_how how;
	const char *by;		/* a rule's name */
	bool ran;		/* [run N]: what the kernel says */
	int64_t ran_ret;
};

struct sim_calls {
	struct sim_call at[SIM_CALLS];
	unsigned n;
	bool open;		/* ended in `…` */
};

/* Reads `call, call, ...` from *at on; false after an error has been reported. */
bool sim_parse(struct unit *u, unsigned file, const char **at, const char *end,
	struct sim_calls *calls);
/* White space and comments. */
const char *sim_space(const char *at, const char *end);
const char *sim_word(const char *at, const char *end);
struct loc sim_loc(const struct unit *u, unsigned file, const char *from, const char *to);

struct sim {
	struct unit *u;
	struct rules rules;
	struct rules_state state[RULES_SCOPES];
	const struct sim_calls *events;
	unsigned cursor;
	int64_t of;			/* whose events the call may meet: a connection, or -1 */
	bool taken[SIM_CALLS];
	bool connection[1024];
	uint8_t private_fd[1024];	/* descriptors that rules opened */
	uint8_t room[SIM_ROOM];
	struct rules_run run;
	struct rules_answer answer;
};

/* What came of one call of the follower. */
struct sim_result {
	bool served;
	enum sim_how how;
	int rule;		/* -1: none */
	int64_t ret;
	struct view buf[RULES_ARGS];
	const char *why;	/* not served: in words */
	bool held;		/* it had to wait until the time was over */
};

/* Compiles the unit's rules and loads them; false after an error. */
bool sim_open(struct sim *sim, struct unit *u);
void sim_begin(struct sim *sim, const struct sim_calls *events, enum rules_stage stage);
/* A question about a call, ready to be asked. */
void sim_ready(struct sim *sim, struct sim_call *call);
void sim_step(struct sim *sim, struct sim_call *call, struct sim_result *result);
/* At the end: drops what rules drop; true if no event is left. */
bool sim_finish(struct sim *sim);
const char *sim_how_text(enum sim_how how);

#endif
