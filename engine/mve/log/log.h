/* mve log: what is done with a recording, a file each. */
#ifndef MVE_LOG_H
#define MVE_LOG_H

#include "engine/outside/log/events.h"

struct log_want {
	const char *path;
	bool json;
	/* Of show, connections and export: these only; NULL or 0: all. */
	const char *call;
	long pid;		/* a process's, or a thread's */
	uint64_t conn;		/* its number */
	uint64_t event, after, before;	/* numbers of events, of show */
	const char *from, *to;	/* as log_time takes them, or NULL */
	uint64_t from_ns, to_ns;
	const char *pcap;	/* of export: the file; "-": standard output */
	struct program program;
};

/* Each an exit code. */
int log_sum(const struct log_want *w, struct frames *f);
int log_show(const struct log_want *w, struct frames *f);
int log_verify(const struct log_want *w, struct frames *f);
int log_pack(const struct log_want *w, struct frames *f);
int log_conns(const struct log_want *w, struct frames *f);
int log_export(const struct log_want *w, struct frames *f);

/* There are so many events and connections; false, and a word: that asked for is none. */
bool log_has(const struct log_want *w, uint64_t events, uint64_t conns);

/*
 * A time of a recording that began then: "+1.5" is seconds from there, "13:37:00.25" of the clock,
 * the next from there that is so late.  False: it is none.
 */
bool log_time(const char *text, int64_t began, uint64_t *ns);
/* "13:37:00.250000". */
#define LOG_CLOCK	32
void log_clock(uint64_t ns, char text[LOG_CLOCK]);

static inline bool log_in_time(const struct log_want *w, uint64_t ns)
{
	return ns >= w->from_ns && ns < w->to_ns;
}

#endif
