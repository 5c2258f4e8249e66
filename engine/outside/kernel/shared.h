/*
 * Memory that we share with versions.
 */
#ifndef MVE_OUTSIDE_SHARED_H
#define MVE_OUTSIDE_SHARED_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/*
 * A memfd, mapped for us to write; `at`: where, over what is mapped there, or NULL.
 * Nobody can take pages away from under others.  With F_SEAL_FUTURE_WRITE nobody else
 * can ever write there.  NULL, and errno.
 */
void *shared_make(const char *name, size_t size, void *at, int seals, int *fd);
/* A memfd that is made in another way is one of these, too; false: there is no memory. */
bool shared_note(int fd);
/* The file is one of these, whatever its name is. */
bool shared_is_ours(dev_t dev, ino_t inode);
/* The same file for reading: what is mapped by it cannot be made writable.  Or -errno. */
int shared_reader(int fd);
/* Sends `n` descriptors with some bytes, at once, or a negative errno: one message. */
int descriptors_send(int socket, const int *fd, unsigned n, const void *bytes, size_t size);
#define DESCRIPTORS_MOST	16

#endif
