/* See mire.h.  All by raw calls: a follower's worker makes them, too. */
#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>

#include "tests/attack/mire.h"

#define SIZE	8192
#define NOBODY	65534

struct mire mire_by_fault(mire_call *call)
{
	struct mire m = { .fd = (int)call(SYS_userfaultfd, O_CLOEXEC, 0, 0, 0, 0, 0) };
	struct uffdio_api api = { .api = UFFD_API };
	struct uffdio_register on = { .range.len = SIZE, .mode = UFFDIO_REGISTER_MODE_MISSING };
	long at = call(SYS_mmap, 0, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		       0);

	on.range.start = (uint64_t)at;
	if (m.fd >= 0 && at > 0 && !call(SYS_ioctl, m.fd, UFFDIO_API, (long)&api, 0, 0, 0) &&
	    !call(SYS_ioctl, m.fd, UFFDIO_REGISTER, (long)&on, 0, 0, 0))
		m.at = (char *)at;
	return m;
}

/* --- a file system of one file, which is never read ------------------------------------ */

static union {
	struct {
		struct fuse_in_header head;
		char rest[1 << 17];
	};
	char bytes[1 << 17];
} asked;

static struct {
	struct fuse_out_header head;
	union {
		struct fuse_init_out init;
		struct fuse_entry_out entry;
		struct fuse_attr_out attr;
		struct fuse_open_out open;
	};
} told;

static struct fuse_attr attributes(uint64_t node)
{
	return (struct fuse_attr){ .ino = node, .size = SIZE, .nlink = 1, .blksize = 4096,
				   .mode = node == 1 ? S_IFDIR | 0755 : S_IFREG | 0777 };
}

/* How long the answer is; 0: there is none. */
static size_t answer_make(void)
{
	memset(&told, 0, sizeof(told));
	switch (asked.head.opcode) {
	case FUSE_INIT:
		told.init = (struct fuse_init_out){ .major = FUSE_KERNEL_VERSION,
			.minor = FUSE_KERNEL_MINOR_VERSION, .max_write = 4096 };
		return sizeof(told.init);
	case FUSE_LOOKUP:
		told.entry = (struct fuse_entry_out){ .nodeid = 2, .attr = attributes(2),
			.entry_valid = 1000, .attr_valid = 1000 };
		return sizeof(told.entry);
	case FUSE_GETATTR:
		told.attr = (struct fuse_attr_out){ .attr_valid = 1000,
			.attr = attributes(asked.head.nodeid) };
		return sizeof(told.attr);
	case FUSE_OPEN:
		return sizeof(told.open);
	case FUSE_FLUSH:
		told.head.error = -ENOSYS;
		return 0;
	default:
		return 0;
	}
}

/* `closes`: who closes it has an answer, too. */
static void serve(mire_call *call, int fd, bool closes)
{
	while (call(SYS_read, fd, (long)&asked, sizeof(asked), 0, 0, 0) > 0) {
		size_t len = answer_make();

		if (!len && (asked.head.opcode != FUSE_FLUSH || !closes))
			continue;
		told.head.len = (uint32_t)(sizeof(told.head) + len);
		told.head.unique = asked.head.unique;
		call(SYS_write, fd, (long)&told, told.head.len, 0, 0, 0);
	}
}

struct mire mire_by_file(mire_call *call, const char *folder, bool closes)
{
	struct mire m = { .fd = (int)call(SYS_openat, AT_FDCWD, (long)"/dev/fuse", O_RDWR, 0, 0, 0) };
	char options[100], path[300];
	long at, file;

	call(SYS_mkdir, (long)folder, 0755, 0, 0, 0, 0);
	snprintf(options, sizeof(options), "fd=%d,rootmode=40000,user_id=0,group_id=0,allow_other",
		 m.fd);
	if (call(SYS_unshare, CLONE_NEWNS, 0, 0, 0, 0, 0) ||
	    call(SYS_mount, 0, (long)"/", 0, MS_PRIVATE | MS_REC, 0, 0) ||
	    call(SYS_mount, (long)"mire", (long)folder, (long)"fuse", 0, (long)options, 0))
		return m;
	m.server = (int)call(SYS_clone, SIGCHLD, 0, 0, 0, 0, 0);
	if (!m.server) {
		/* As the worker, who ends it. */
		call(SYS_setresuid, NOBODY, NOBODY, NOBODY, 0, 0, 0);
		call(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0, 0);
		serve(call, m.fd, closes);
		call(SYS_exit_group, 0, 0, 0, 0, 0, 0);
	}
	snprintf(path, sizeof(path), "%s/file", folder);
	file = call(SYS_openat, AT_FDCWD, (long)path, O_RDONLY | O_CLOEXEC, 0, 0, 0);
	m.file = (int)file;
	at = call(SYS_mmap, 0, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE, file, 0);
	/* Else the file system goes on while we do. */
	call(SYS_close, m.fd, 0, 0, 0, 0, 0);
	m.at = file >= 0 && at > 0 ? (char *)at : NULL;
	return m;
}

/* --- its map ---------------------------------------------------------------------------- */

static mire_call *caller;
static const char *far_page;

/* Who reads so does not give the map free while it waits. */
static void *hold(void *arg)
{
	static char byte;
	long fd = caller(SYS_openat, AT_FDCWD, (long)"/proc/self/mem", O_RDONLY, 0, 0, 0);

	caller(SYS_pread64, fd, (long)&byte, 1, (long)far_page, 0, 0);
	return arg;
}

/* And behind who wants to change it nobody comes to look at it. */
static void *want(void *arg)
{
	caller(SYS_mmap, 0, SIZE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	return arg;
}

void mire_map_held(mire_call *call, const struct mire *file)
{
	struct timespec moment = { 0, 100000000 };
	pthread_t thread;

	caller = call;
	far_page = file->at;
	pthread_create(&thread, NULL, hold, NULL);
	call(SYS_nanosleep, (long)&moment, 0, 0, 0, 0, 0);
	pthread_create(&thread, NULL, want, NULL);
	call(SYS_nanosleep, (long)&moment, 0, 0, 0, 0, 0);
}

void mire_end(mire_call *call, const struct mire *m)
{
	if (m->server)
		call(SYS_kill, m->server, SIGKILL, 0, 0, 0, 0);
	else
		call(SYS_close, m->fd, 0, 0, 0, 0, 0);
}
