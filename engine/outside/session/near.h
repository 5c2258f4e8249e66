/* Files that are looked at without waiting for whoever keeps them. */
#ifndef MVE_OUTSIDE_NEAR_H
#define MVE_OUTSIDE_NEAR_H

#include <stdbool.h>
#include <sys/stat.h>

/* A file by its name: nothing has been asked of it. */
struct near_file {
	int fd;			/* opened with O_PATH */
	struct stat st;
	bool far;		/* to read it may wait: see mapped.h */
	bool kept;		/* by mapped.c, which closes it */
	uid_t user;		/* of one that is far: for whose process it is looked at */
};

/*
 * The file that the path leads to from the process' root, working folder or descriptor
 * (/proc/PID/root/usr/bin/env); 0, why there is none, or -EAGAIN: to know it takes a file
 * system that may let us wait.
 */
int near_open(const char *path, struct near_file *f);

/* What an O_PATH descriptor, which is taken in each case, says of itself; as near_open. */
int near_take(int fd, struct near_file *f);

/* The same file for reading, or a negative errno; of a file that is near it does not wait. */
int near_read(int fd);

void near_close(struct near_file *f);

/*
 * A file whose name another has chosen, for reading, or a negative errno: a regular one, or
 * none.  What is looked at is what is read, whatever is put in its place meanwhile.
 */
int near_regular(const char *path);

/* Whether we may wait: nobody is served yet, or this is a child.  At first so. */
void near_waits(bool may);

#endif
