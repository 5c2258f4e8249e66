/*
 * Who asks, and what: from the kernel and from the asker's own memory.
 */
#ifndef MVE_OUTSIDE_ASKER_H
#define MVE_OUTSIDE_ASKER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/abi/request.h"
#include "engine/outside/monitor/monitor.h"

struct version;

enum asker {
	ASKER_IS,	/* the request is filled */
	ASKER_SOON,	/* its thread is still on its way to sleep: look again */
	ASKER_NONE,	/* no thread of this version asks in this slot */
	ASKER_MIRED,	/* what is asked lies where nobody answers, as yet: it will ring again */
	ASKER_CLOSED,	/* the kernel does not let us look at whom the slot names */
};

/*
 * A slot that nobody asks in may be filled as one where somebody does.  What costs more than
 * a look at the thread that it names is counted off `looks`, for all slots of a round; when
 * there are none left, such a one is to be looked at later.
 */
enum asker asker_find(const struct version *v, uint32_t slot, struct request *r,
		      unsigned *looks);
/*
 * One look at the thread that the slot names, for a thread of ours that may be left waiting: what
 * it is about, `r->pid`, is there before.
 */
enum asker asker_look(const struct version *v, uint32_t slot, struct request *r);
/* A process of it has ids of another pid namespace: those that it writes down are none of ours. */
bool version_elsewhere(const struct version *v);
/* The same of its first process, which stays where it is: the kernel is asked once. */
bool server_elsewhere(const struct version *v);
/* The thread still waits for the answer to this very request. */
bool asker_waits(const struct version *v, const struct request *r);
void asker_answer(struct version *v, const struct request *r, int64_t reply);
/* The same, where it may have ended since, or gone on: then nobody is answered. */
void asker_answer_late(struct version *v, const struct request *r, int64_t reply);
/* A text that its request names: 0 or a negative errno.  Cut short where it is longer. */
int asker_text(const struct request *r, uint64_t at, char *to, size_t size);
/* More of an answer, where the asker wants it; 0 or a negative errno. */
int asker_give(const struct request *r, uint64_t to, const void *what, size_t len);
/*
 * Our descriptor of the socket that the asker names, which is one of a pair that it has made
 * itself: what goes there comes to nobody to whom the asker has not given the other end.
 * To be closed by descriptors_close().
 */
int asker_socket(pid_t pid, int number);
/* Its memory is ours alone: nobody has to wait for it. */
void asker_ready(void);
/* Whoever asks there is told that it gets no answer. */
void asker_refuse(struct version *v, uint32_t slot);

#endif
