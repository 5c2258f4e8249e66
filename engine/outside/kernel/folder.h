/*
 * Folders and files that nobody but their owner can have written: what is kept in the
 * cache, in the folder of reports, and in a session's.
 *
 * A name is looked up once.  From then on a folder is its descriptor: whoever renames it,
 * or puts a link in its place, changes nothing for us.  Nothing here follows a link that
 * others may have made, and nothing waits, whatever stands in a file's place.
 */
#ifndef MVE_OUTSIDE_FOLDER_H
#define MVE_OUTSIDE_FOLDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum folder_how {
	FOLDER_LOOK = 0,
	FOLDER_MAKE = 1,	/* if it is not there: 0700 */
	FOLDER_CLOSED = 2,	/* others may not even look */
};

/*
 * The folder `name` in the open folder `at`, which must be ours, and which only we may
 * write.  A descriptor, or a negative errno; -EPERM: it is not so, and folder_why() says
 * how it is.
 */
int folder_open(int at, const char *name, int how);

/*
 * A folder of the user's own, by its kind: in $variable, or in ~/tail where that is not
 * set.  The home is that of the password file where HOME is not set (a unit of the
 * system's).  -ENOENT: there is no such place.
 */
int folder_base(const char *variable, const char *tail, int how);

/* The user has said where that is to be. */
bool folder_base_named(const char *variable);

/* What was wrong: the path that gave this error last, and why; else the error's own word. */
const char *folder_why(int error);
void folder_why_clear(void);
/* It is that the path cannot be opened; the error, negative. */
int folder_fault(const char *path, int error);

/* The path of an open folder, as long as nobody renames it. */
void folder_path(int folder, char *path, size_t size);

/* A regular file of ours in it, that nobody else may write; for reading. */
int folder_file(int folder, const char *name, uint64_t *size);

/* The same, made if need be, for writing at its end. */
int folder_append(int folder, const char *name);

/* Its text, with a 0 behind it, or NULL; a file that is larger than `most` is none. */
char *folder_read(int folder, const char *name, size_t most, size_t *len);

struct folder_part {
	const void *bytes;
	size_t len;
};

/* Writes a file, whole or not at all.  0 or a negative errno. */
int folder_write(int folder, const char *name, const struct folder_part *part, unsigned parts);

/* A regular file wherever it lies and whosever it is: only that nothing waits. */
char *file_read(const char *path, size_t most, size_t *len);
char *file_read_fd(int fd, size_t most, size_t *len);
/* All of it, to a file that is open; 0 or a negative errno. */
int fd_write(int fd, const struct folder_part *part);

#endif
