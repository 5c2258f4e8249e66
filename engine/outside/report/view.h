/*
 * A call taken apart: its values, and the parts of memory that belong to it.  A
 * view is made of an event and as much of its payload as there is (56 bytes of
 * it in a window), or of a process that is about to make the call.  Both are
 * walked as engine/core/walk.h says, so part N of the one is part N of the other.
 */
#ifndef MVE_OUTSIDE_VIEW_H
#define MVE_OUTSIDE_VIEW_H

#include "engine/abi/event.h"
#include "engine/outside/print/print.h"

#define VIEW_PARTS	64	/* what is beyond is not looked at */

enum part_kind {
	PART_WHOLE,		/* all that the argument points to */
	PART_FLAGS, PART_NAME, PART_CONTROL, PART_BYTES,	/* of a message */
	PART_STRING,		/* one of several */
};

struct part {
	uint8_t arg;
	uint8_t kind;		/* enum part_kind */
	uint32_t item;		/* which message or string */
	uint64_t len;
	const uint8_t *bytes;	/* of an event: `have` of them are here */
	uint64_t have;
	uint64_t at;		/* in a process: the address, */
	uint64_t spans;		/* or how many struct span stand there */
};

struct view {
	const struct call_desc *row;	/* NULL: nothing is known of the call */
	long nr;
	uint64_t args[CALL_ARGS];	/* of memory, only whether it is NULL means anything */
	uint8_t unknown;		/* arguments that nothing is known of, as bits */
	int64_t result;
	bool cut;			/* parts are missing behind the last */
	unsigned parts;
	struct part part[VIEW_PARTS];
};

/*
 * Takes an event apart.  `own`: the arguments of the call that met it, if it is
 * the same call, else NULL; then which pointers were NULL is found by trying.
 * The payload must outlive the view.
 */
void view_event(struct view *v, const struct event *e, const void *payload, size_t have,
		const uint64_t *own);

/* A call with this result, by the memory of whoever is about to make it. */
void view_memory(struct view *v, const struct print_mem *m, long nr,
		 const uint64_t args[CALL_ARGS], int64_t result);

/* Bytes of a part from `offset` on, as many as there are; `m` for those in a process. */
size_t part_read(const struct part *p, const struct print_mem *m, uint64_t offset, void *to,
		 size_t len);

/* "msg_name" and the like; "" for a whole argument. */
const char *part_name(const struct part *p);

/* print_event.c: prints it as strace would have, "?" and "..." for what is not there. */
void print_view(struct call_print *p, const struct view *v);

#endif
