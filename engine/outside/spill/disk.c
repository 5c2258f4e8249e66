/*
 * What the ring may have of a disk.  Nobody was asked for the room where spilling is the default,
 * and others write there: a file of ours has an eighth of what is free at most, itself counted as
 * free.  So it fills no disk, however small, and grows no more where others have filled it.
 *
 * It has no name and can be given none, so nobody comes to it but by a descriptor of ours, and
 * it is gone with the last of them; that file systems on other machines have no such files is as
 * well.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/fiemap.h>
#include <linux/fs.h>
#include <linux/magic.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>

#include "engine/core/must.h"
#include "engine/outside/spill/disk.h"

#define SHARE	8	/* of what is free, at most */
#define BLOCK	512	/* what st_blocks counts */

int disk_file(int folder)
{
	int fd;

	MUST(folder >= 0);
	fd = openat(folder, ".", O_TMPFILE | O_EXCL | O_RDWR | O_CLOEXEC, 0600);

	return fd < 0 ? -errno : fd;
}

/* Where a file's bytes lie can be said if that is a disk; its type is not that of what is below. */
static bool is_above_memory(int file)
{
	struct fiemap map = { .fm_length = FIEMAP_MAX_OFFSET };

	return ioctl(file, FS_IOC_FIEMAP, &map) < 0;
}

bool disk_is_memory(int file)
{
	struct statfs fs;

	MUST(file >= 0);
	if (fstatfs(file, &fs) < 0 || fs.f_type == TMPFS_MAGIC || fs.f_type == RAMFS_MAGIC)
		return true;
	return fs.f_type == OVERLAYFS_SUPER_MAGIC && is_above_memory(file);
}

static uint64_t size_on_disk(int file)
{
	struct stat is;

	return fstat(file, &is) ? 0 : (uint64_t)is.st_blocks * BLOCK;
}

static uint64_t free_for_us(int file)
{
	struct statvfs fs;

	return fstatvfs(file, &fs) ? 0 : fs.f_bavail * fs.f_frsize;
}

uint64_t disk_share(int file)
{
	MUST(file >= 0);
	return (free_for_us(file) + size_on_disk(file)) / SHARE;
}

bool disk_has_room(int file, uint64_t bytes)
{
	MUST(file >= 0 && bytes);
	return size_on_disk(file) + bytes <= disk_share(file);
}
