/*
 * Memory that we share with versions.  What somebody must not write lies in a file of
 * its own: who has one page of a file mapped for writing can have any page of it so
 * (remap_file_pages, mremap), whatever was mapped for him.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/core/must.h"
#include "engine/outside/kernel/shared.h"

/* What was made, by the kernel's numbers: a name like its names anybody may give. */
static struct made { dev_t dev; ino_t inode; } *made;
static size_t mades;

bool shared_note(int fd)
{
	struct made *more = realloc(made, (mades + 1) * sizeof(*more));
	struct stat st;

	if (!more)
		return false;
	made = more;
	if (fstat(fd, &st) < 0)
		return false;
	made[mades++] = (struct made){ st.st_dev, st.st_ino };
	return true;
}

bool shared_is_ours(dev_t dev, ino_t inode)
{
	for (size_t i = 0; i < mades; i++)
		if (made[i].inode == inode && made[i].dev == dev)
			return true;
	return false;
}

void *shared_make(const char *name, size_t size, void *at, int seals, int *fd)
{
	int flags = MAP_SHARED | MAP_NORESERVE | (at ? MAP_FIXED : 0);

	MUST(size && !((uintptr_t)at % 4096));
	*fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (*fd < 0 || !shared_note(*fd) || ftruncate(*fd, (off_t)size) < 0)
		return NULL;
	at = mmap(at, size, PROT_READ | PROT_WRITE, flags, *fd, 0);
	if (at == MAP_FAILED)
		return NULL;
	seals |= F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
	return fcntl(*fd, F_ADD_SEALS, seals) < 0 ? NULL : at;
}

int shared_reader(int fd)
{
	char path[64];
	int reader;

	MUST(fd >= 0);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	reader = open(path, O_RDONLY | O_CLOEXEC);
	return reader < 0 ? -errno : reader;
}

int descriptors_send(int socket, const int *fd, unsigned n, const void *bytes, size_t size)
{
	char control[CMSG_SPACE(DESCRIPTORS_MOST * sizeof(int))] = { 0 };
	struct iovec iov = { (void *)bytes, size };
	struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = control,
			    .msg_controllen = CMSG_SPACE(n * sizeof(int)) };
	struct cmsghdr *c = CMSG_FIRSTHDR(&m);

	MUST(n && n <= DESCRIPTORS_MOST && size);
	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(n * sizeof(int));
	memcpy(CMSG_DATA(c), fd, n * sizeof(int));
	return sendmsg(socket, &m, MSG_NOSIGNAL | MSG_DONTWAIT) < 0 ? -errno : 0;
}
