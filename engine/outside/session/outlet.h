/* Writing to what a user has named, without waiting for whoever reads it. */
#ifndef MVE_OUTSIDE_OUTLET_H
#define MVE_OUTSIDE_OUTLET_H

#include <stdbool.h>
#include <stddef.h>

/*
 * The file of this name, made if it is not there, or a negative errno.  A pipe that nobody
 * reads yet is only named by what is returned: outlet_open says -ENXIO of it until then.
 */
int outlet_create(const char *path);
/* Another descriptor of what `fd` is, by which a write does not wait; or a negative errno. */
int outlet_open(int fd);
/*
 * The same of a pipe that has no reader yet, once it has: by a thread, which waits in open()
 * as writers do, for whoever opens it to read waits for a writer and is seen by nobody before.
 * `comes` (an eventfd) is written when there is something; 0, or why there is no thread.
 */
struct outlet_wait {
	int fd, comes;
	int opened;		/* the descriptor, a negative errno, or OUTLET_WAITS */
};
#define OUTLET_WAITS	(-1000000)
int outlet_await(struct outlet_wait *w);
/* What has come, as of outlet_open(); OUTLET_WAITS: nothing has. */
int outlet_come(struct outlet_wait *w);
/* Writes from *at on what there is room for; 0: all, -EAGAIN: not yet, or why not. */
int outlet_write(int fd, const char *text, size_t len, size_t *at);
/* A whole file, made if it is not there; who does not read is given up after a second. */
int outlet_file(const char *path, const char *text, size_t len);

#endif
