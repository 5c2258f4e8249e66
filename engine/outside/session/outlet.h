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
/* Writes from *at on what there is room for; 0: all, -EAGAIN: not yet, or why not. */
int outlet_write(int fd, const char *text, size_t len, size_t *at);
/* A whole file, made if it is not there; who does not read is given up after a second. */
int outlet_file(const char *path, const char *text, size_t len);

#endif
