/* Work that takes long, or waits for who knows whom: by a child each, beside the loop. */
#ifndef MVE_OUTSIDE_BESIDE_H
#define MVE_OUTSIDE_BESIDE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#define BESIDE_MS	60000	/* one may take so long; a gigabyte is planned in a few seconds */
#define BESIDE_ABOUT	400

struct beside {
	size_t size;		/* of the result: zero at first */
	/* In the child, whose only descriptor behind the first three is 3: what it was given. */
	void (*work)(void *result, const void *about);
	/* In the loop: what it has left, which is to be checked; or why it has left nothing. */
	void (*end)(const void *result, const void *about, int error);
};

/* From now on others are served: what may wait is done beside. */
void beside_begin(void);
bool beside_begun(void);

#define BESIDE_NEAR	((uid_t)-1)

/*
 * 0, -ENOMEM, or -EBUSY: when one has ended it may be.  `user`: whose process a file is
 * looked at for that may let us wait; BESIDE_NEAR: of one that does not.  `about` is copied;
 * two that are about the same are equal bytes.
 */
int beside_start(const struct beside *what, int fd, uid_t user, const void *about, size_t len);
bool beside_under_way(const struct beside *what, const void *about, size_t len);

/* A child has ended: true when it was one of these. */
bool beside_ended(pid_t pid, int status);

struct monitor;
/* Ends those that have had their time; true: their `end` has heard of it. */
bool beside_look(struct monitor *m);

/* In a copy of the monitor: they are the original's. */
void beside_forget(void);

#endif
