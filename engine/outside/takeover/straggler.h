/* Who does not stand when all of a version's threads are asked to, and what it is in. */
#ifndef MVE_OUTSIDE_STRAGGLER_H
#define MVE_OUTSIDE_STRAGGLER_H

#include "engine/outside/monitor/monitor.h"

struct straggler {
	uint32_t slot;		/* + 1; 0: none, or one that is only being made */
	pid_t pid, tid;
	char state;		/* as in /proc */
	int call;		/* its number; -1: in none, or not known */
	uint64_t place;		/* of its next instruction; 0: not known */
};

/* In a moment, for its server stands: what is known of the thread. */
void straggler_note(struct straggler *s, const struct version *v, uint32_t slot);
/* The same in words: "thread 4 of process 3 does not stand: it is in read, at libc.so.6+0x10". */
void straggler_say(const struct straggler *s, const struct version *v, char *text, size_t size);

/* Of several causes the first that is said counts; text[WHY_MAX]. */
void why_first(char *text, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#endif
