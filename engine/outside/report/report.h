/*
 * Reports: what is written down when a follower's story ends, so that somebody
 * can say why.  A report is made (report_make.c) as JSON, told as text
 * (report_text.c) and kept (report_store.c) where it outlives its session:
 * $XDG_STATE_HOME/mve/NAME/report-N.json and .txt, or under ~/.local/state.
 */
#ifndef MVE_OUTSIDE_REPORT_H
#define MVE_OUTSIDE_REPORT_H

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/types.h>

#include "engine/abi/area.h"
#include "engine/abi/ring.h"
#include "engine/outside/print/print.h"
#include "engine/outside/report/stack.h"

#define REPORT_FORMAT	1	/* raised when a field changes its meaning */

struct report_side {
	const char *name;
	char command[256];
	pid_t pid;
};

struct report_want {
	const char *session;
	struct report_side leader, follower;
	pid_t tid;
	const struct slot *slot;	/* a copy of the follower's thread's */
	const struct conduct *streams;	/* NULL: its place in them is lost */
	uint32_t version;		/* the follower's */
	enum verdict verdict;
	uint64_t what, where;		/* as in REQ_VERDICT; of a crash: signal, address */
	const char *why;		/* more words, or NULL */
	const char *itself;		/* why its program differs from itself; NULL: it does not */
	unsigned tried;			/* so often was the event met; 0: not known */
	bool strict;
	const char *policy;
	const struct print_mem *mem;	/* the follower's memory; NULL: not to be read */
	const struct stack_start *stack;	/* NULL: it has none any more, */
	json_t *frames;			/* or it has been read: these are it */
	bool led;			/* it led when it crashed; `leader` came after it */
	const char *becoming;		/* it was to be another build: what it was at; or NULL */
	json_t *finding;		/* of VERDICT_FOUND; else NULL */
	const struct finding_request *request;	/* and its bytes; or NULL */
};

/* The report as JSON; see report_make.c for its fields. */
json_t *report_make(const struct report_want *w);

/* ": FUNCTION at FILE:LINE", by a stack; "" if it has nothing. */
json_t *report_place(const json_t *stack);
/* What diverged and where, in one line without the names of session and follower. */
const char *report_summary(const json_t *report);

/* The report for people, 80 columns wide. */
void report_text(FILE *to, const json_t *report);

const char *verdict_name(uint64_t verdict);
const char *signal_word(uint64_t sig);

/* report_stream.c: the leader's events from where a follower stands. */
struct report_event {
	struct event event;
	uint8_t *payload;	/* free() it */
	size_t len;
};

/* Of what the follower has not taken in the lane it must take nothing. */
bool stream_only_looks(const struct conduct *streams, uint32_t version, uint32_t lane);
/* The number, among its process' events, of the next that is more than a look; 0: there is none. */
uint64_t stream_next(const struct conduct *streams, uint32_t version, uint32_t lane);
/* Up to `max` calls and signals that the follower has not taken; how many. */
unsigned report_ahead(const struct conduct *streams, uint32_t version, uint32_t lane,
		      struct report_event *e, unsigned max);

/* report_store.c */

/*
 * Writes its files and gives the report its number; the JSON's path.  The bytes are a
 * finding's request, or NULL.  0 or -errno.
 */
int report_keep(json_t *report, const void *bytes, size_t len, char *path, size_t size);
/* Where a monitor that nobody listens to any more says what it has to say; or -errno. */
int report_log(const char *session);
/* How often its finding was made. */
void report_count(const char *session, unsigned number, uint64_t count);
/* The numbers of a session's reports, ascending; how many, or -errno.  free() them. */
int report_list(const char *session, unsigned **numbers);
/* A report by number; NULL when there is none. */
json_t *report_load(const char *session, unsigned number);

#endif
