/*
 * One process that we come to, or leave: its threads, what is put into it, and the steps that
 * its threads are sent through (abi/attach.h).
 */
#ifndef MVE_OUTSIDE_GUEST_H
#define MVE_OUTSIDE_GUEST_H

#include <signal.h>

#include "engine/abi/attach.h"
#include "engine/outside/attach/crowd.h"
#include "engine/outside/attach/stub.h"
#include "engine/outside/start/inject_parts.h"

/* Signals that mve stands on. */
#define HIDDEN		(1ull << (SIGILL - 1) | 1ull << (SIGBUS - 1) | 1ull << (SIGSEGV - 1) | \
			 1ull << (SIGSYS - 1))

struct guest {
	pid_t pid;
	uint64_t began;
	bool leaves;		/* no step is too late: there is no other way */
	bool asked;		/* whether it may be, before it stood */
	struct crowd crowd;
	struct stub stub;
	struct remote *remote;	/* by the stub; what it has open is ours */
	int memory;
	uint64_t base;		/* of the image in it */
	uint64_t page, page_len;	/* what its threads are told, in it; 0: not yet */
	uint64_t table;		/* struct attach */
};

/* Its threads stand: calls can be made in its name.  0 or a negative errno. */
int guest_open(struct guest *g, struct remote *r);
/* Its memory is what it was before, but for what is put into it; it still stands. */
void guest_close(struct guest *g);

/*
 * Memory for `struct attach` is mapped, and told; and is there no more.  Calls can be made in its
 * name while none of its threads is armed: where one is, the kernel would send that a signal, and
 * the process would be none of ours any more.
 */
int guest_table(struct guest *g);
void guest_table_end(struct guest *g);

/* A thread goes through a step: 0 or a negative errno. */
int guest_step(struct guest *g, unsigned who, enum attach_step step);
/* So do all. */
int guest_steps(struct guest *g, enum attach_step step);

/* A word of its struct boot. */
int guest_word(struct guest *g, size_t offset, uint32_t value);

int guest_table_read(struct guest *g, void *to, size_t offset, size_t len);
int guest_table_write(struct guest *g, const void *from, size_t offset, size_t len);

#endif
