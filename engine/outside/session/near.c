/*
 * Files that are looked at without waiting for whoever keeps them.
 *
 * A path may lead to a file system of another machine (NFS) or another process (FUSE), where
 * looking a name up, opening, reading and fstat() wait for an answer that may never come.  So
 * a path is walked in what the kernel remembers (RESOLVE_CACHED), the end of it also in the
 * folder itself, where that is on a file system of this machine; and of the file that is
 * found nothing is asked before it is known on what it lies.  What is near waits for a disk
 * at most.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "engine/core/must.h"
#include "engine/outside/session/near.h"

/* Limit (mounts): so many are known. Beyond: what lies there is looked at by a child. */
#define MOUNTS_MAX	512

/* --- file systems -------------------------------------------------------------------- */

/* Those that ask nobody outside the kernel; whatever is not known may wait. */
static bool type_is_near(const char *type)
{
	static const char *const types[] = {
		"ext2", "ext3", "ext4", "xfs", "btrfs", "bcachefs", "f2fs", "zfs", "jfs",
		"reiserfs", "tmpfs", "ramfs", "devtmpfs", "overlay", "squashfs", "erofs",
		"iso9660", "udf", "vfat", "exfat", "ntfs3", "rootfs", "proc", "sysfs",
	};

	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
		if (!strcmp(type, types[i]))
			return true;
	return false;
}

static struct mounts {
	unsigned n;
	struct mount {
		uint64_t id;
		bool is_near;
	} mount[MOUNTS_MAX];
} mounts;

/* ID PARENT MAJOR:MINOR ROOT PLACE OPTIONS [MORE...] - TYPE SOURCE OPTIONS */
static void mount_read(const char *line)
{
	const char *at = strstr(line, " - ");
	char type[32];

	if (at && mounts.n < MOUNTS_MAX && sscanf(at, " - %31s", type) == 1)
		mounts.mount[mounts.n++] = (struct mount){ strtoull(line, NULL, 10),
							   type_is_near(type) };
}

/* Of our mount namespace, read again when the kernel says that it has changed. */
static void mounts_read(void)
{
	static FILE *file;
	struct pollfd change = { .events = POLLPRI };
	char *line = NULL;
	size_t size = 0;

	if (file) {
		change.fd = fileno(file);
		if (!poll(&change, 1, 0))
			return;
		rewind(file);
	} else {
		file = fopen("/proc/self/mountinfo", "re");
	}
	mounts.n = 0;
	while (file && getline(&line, &size, file) > 0)
		mount_read(line);
	free(line);
}

/* A mount of another namespace is none that we know. */
static bool is_near(int fd)
{
	struct statx x;

	if (statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_MNT_ID, &x) ||
	    !(x.stx_mask & STATX_MNT_ID))
		return false;
	mounts_read();
	for (unsigned i = 0; i < mounts.n; i++)
		if (mounts.mount[i].id == x.stx_mnt_id)
			return mounts.mount[i].is_near;
	return false;
}

/* --- paths --------------------------------------------------------------------------- */

static int walk(int at, const char *path, uint64_t flags, uint64_t resolve)
{
	struct open_how how = { .flags = O_PATH | O_CLOEXEC | flags, .resolve = resolve };
	int fd = (int)syscall(SYS_openat2, at, path, &how, sizeof(how));

	return fd < 0 ? -errno : fd;
}

/* The last name, of a folder that is near: a link and another mount may lead away. */
static int end_walk(int at, const char *path)
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
	char folder[PATH_MAX];
	struct stat st;
	int in, fd;

	if (!*name || (size_t)snprintf(folder, sizeof(folder), "%.*s",
				       slash ? (int)(slash - path) : 0, path) >= sizeof(folder))
		return -EAGAIN;
	in = walk(at, folder[0] ? folder : ".", O_DIRECTORY, RESOLVE_CACHED);
	if (in < 0)
		return in;
	fd = is_near(in) ? walk(in, name, O_NOFOLLOW, RESOLVE_NO_XDEV) : -EAGAIN;
	close(in);
	if (fd < 0)
		return fd == -EXDEV ? -EAGAIN : fd;
	if (!fstat(fd, &st) && !S_ISLNK(st.st_mode))
		return fd;
	close(fd);
	return -EAGAIN;
}

/* How much of it is /proc/PID/root, cwd, exe or fd/N: a jump to what the process has. */
static size_t base_length(const char *path)
{
	const char *at = path + sizeof("/proc/") - 1;

	if (strncmp(path, "/proc/", sizeof("/proc/") - 1) || !strspn(at, "0123456789"))
		return 0;
	at += strspn(at, "0123456789");
	if (!strncmp(at, "/fd/", 4))
		return (size_t)(at + 4 + strspn(at + 4, "0123456789") - path);
	return *at == '/' ? (size_t)(at + 1 + strcspn(at + 1, "/") - path) : 0;
}

static int base_open(const char *path, size_t n)
{
	char base[64];
	int fd;

	MUST(n && n <= strlen(path));
	if (n >= sizeof(base))
		return -ENAMETOOLONG;
	memcpy(base, path, n);
	base[n] = 0;
	fd = open(base, O_PATH | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

static int path_walk(const char *path)
{
	size_t base = base_length(path);
	int at = base ? base_open(path, base) : AT_FDCWD, fd;

	path += base;
	path += base ? strspn(path, "/") : 0;
	if (base && (at < 0 || !*path))
		return at;
	fd = walk(at, path, 0, RESOLVE_CACHED);
	if (fd == -EAGAIN)
		fd = end_walk(at, path);
	if (base)
		close(at);
	/* Before Linux 5.12 no path is known to be near. */
	return fd == -EINVAL || fd == -ENOSYS ? -EAGAIN : fd;
}

static bool may_wait = true;

void near_waits(bool may)
{
	may_wait = may;
}

int near_take(int fd, struct near_file *f)
{
	int result;

	MUST(fd >= 0);
	result = may_wait || is_near(fd) ? fstat(fd, &f->st) : 1;
	f->fd = fd;
	f->far = f->kept = false;
	if (!result)
		return 0;
	result = result > 0 ? -EAGAIN : -errno;
	near_close(f);
	return result;
}

int near_open(const char *path, struct near_file *f)
{
	int fd = may_wait ? open(path, O_PATH | O_CLOEXEC) : path_walk(path);

	return fd < 0 ? may_wait ? -errno : fd : near_take(fd, f);
}

int near_read(int fd)
{
	char path[32];
	int again;

	MUST(fd >= 0);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	again = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	return again < 0 ? -errno : again;
}

int near_regular(const char *path)
{
	struct near_file f;
	int result = near_open(path, &f);

	if (result)
		return result;
	result = S_ISREG(f.st.st_mode) ? near_read(f.fd) : S_ISDIR(f.st.st_mode) ? -EISDIR :
		 -EINVAL;
	near_close(&f);
	return result;
}

void near_close(struct near_file *f)
{
	MUST(f->fd >= 0);	/* once: the number may be another's by now */
	if (!f->kept)
		close(f->fd);
	f->fd = -1;
}
