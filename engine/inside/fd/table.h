/*
 * What is known of descriptors, by their numbers: the one table of the inside.  Its rows
 * come in pages when a number of theirs is first spoken of, up to the highest number that
 * the kernel gives.
 */
#ifndef MVE_INSIDE_TABLE_H
#define MVE_INSIDE_TABLE_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/core/pairs.h"
#include "engine/inside/gate/memory.h"

/*
 * Limit (descriptors): numbers below this are known. Beyond: nothing is known of a descriptor,
 * and a follower diverges where that counts; Linux gives no such number unless fs.nr_open was
 * raised.
 */
#define FD_NUMBERS	(1u << 20)

enum fd_mark {
	FD_INNER = 1,		/* the process' own threads speak by it: inner.c */
	FD_BELL = 2,		/* it is one of that kind with a count: an eventfd, a timerfd */
	FD_PRIVATE = 4,		/* each version has its own: private.c */
	FD_LED = 8,		/* it leads to a file whose content was told: places.c */
	FD_INPUT = 16,		/* a connection, whose bytes are kept for findings: inputs.c */
	FD_COPIED = 32,		/* another number leads, or has led, to the same */
	FD_LISTENS = 64,	/* connections have come from it: follow_files.c, these three */
	FD_CLIENT = 128,	/* it is one that came */
	FD_LEFT = 256,		/* and is over, without a word */
	FD_SET = 512,		/* it is an epoll set */
};

struct fd_row {
	uint16_t marks;
	uint16_t born;		/* who is told of it: scope.c */
	uint32_t object;	/* of what threads give and take by it: inner.h; 0: none */
	uint32_t epoll;		/* its registration, + 1; 0: none */
	uint32_t set;		/* its description: description.h; 0: nothing is known */
	uint64_t closer;	/* who gave it up last, as an edge: others.c; 0: nobody */
};

/* Something of it is kept; `closer` is not. */
static inline bool fd_row_kept(const struct fd_row *r)
{
	return r->marks | r->born | r->object | r->epoll | r->set;
}

#define FD_PAGE_ROWS	4096
extern void *fd_pages[FD_NUMBERS / FD_PAGE_ROWS];

/* NULL: nothing is known of it. */
static inline struct fd_row *fd_row(int64_t fd)
{
	struct fd_row *page;

	if ((uint64_t)fd >= FD_NUMBERS)
		return NULL;
	page = table_had(&fd_pages[fd / FD_PAGE_ROWS]);
	return page ? &page[fd % FD_PAGE_ROWS] : NULL;
}
/* NULL: there is no such number, or no memory. */
struct fd_row *fd_row_make(int64_t fd);
static inline bool fd_is(int64_t fd, enum fd_mark mark)
{
	const struct fd_row *r = fd_row(fd);

	/* What was done before the mark is seen. */
	return r && CONSUME(fd_marks, &r->marks) & mark;
}
/* One mark or several. */
void fd_set_mark(int64_t fd, unsigned marks, bool on);
/* The first number from this one on of which something may be known; -1: none. */
int64_t fd_next(int64_t from);
/* Each row of these numbers that there is: `fd` is its number. */
#define FD_ROWS_EACH(fd, n) \
	for (int64_t fd = fd_next((n).first); fd >= 0 && fd <= (n).last; fd = fd_next(fd + 1))

/* What kept.def says of marks and objects. */
struct numbers;
struct thread;
void marks_gone(struct thread *t, struct numbers n);
void marks_copied(int64_t from, int64_t to);

/* A follower's own descriptor goes where no number of the stream will be. */
long number_high(long fd);

#endif
