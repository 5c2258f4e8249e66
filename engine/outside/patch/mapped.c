/*
 * The files that a process has mapped, as they can be looked at without waiting.
 *
 * A file on a file system that may not answer (near.c) is looked at by a child.  It hands
 * over what the file is, and its name (O_PATH), which keeps the inode's number from being
 * another's; and it has touched the mapping, so that its pages are there when its code is
 * patched.  That is kept until who has asked has been answered.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "engine/core/must.h"
#include "engine/outside/kernel/process.h"
#include "engine/outside/kernel/remote.h"
#include "engine/outside/patch/beside.h"
#include "engine/outside/monitor/monitor.h"
#include "engine/outside/monitor/say.h"
#include "engine/outside/patch/mapped.h"
#include "engine/outside/start/program.h"

/* Limit (files that may let us wait): looked at, at a time. Beyond: the net holds their calls. */
#define FARS	64

struct far_about {
	pid_t pid;
	uint32_t row;
	uint64_t start;
};

struct far_found {
	int error;
	struct stat st;
	bool dynamic;
	char interpreter[INTERPRETER_MAX];
};

static struct far_row {
	pid_t pid;		/* 0: the row is free */
	struct map map;
	int socket;		/* by which the name comes; -1: it has, or does not */
	bool done;
	int fd;			/* the name; or -1 */
	struct far_found found;
} fars[FARS];

/* --- by name --------------------------------------------------------------------------- */

static bool is_mapped(const struct near_file *f, const struct map *m)
{
	return f->st.st_ino == m->inode && S_ISREG(f->st.st_mode);
}

static void link_name(pid_t pid, const struct map *m, char link[64])
{
	snprintf(link, 64, "/proc/%d/map_files/%lx-%lx", pid, m->link, m->link_end);
}

/* /proc/PID/maps is read with room for most paths: a longer one is the map's own link's. */
static bool path_whole(pid_t pid, const struct map *m, char path[PATH_MAX])
{
	char link[64];
	ssize_t n;

	snprintf(path, PATH_MAX, "%s", m->path);
	if (strlen(path) + 1 < sizeof(m->path))
		return path[0] == '/';
	link_name(pid, m, link);
	n = readlink(link, path, PATH_MAX - 1);
	path[n < 0 ? 0 : n] = 0;
	return path[0] == '/';
}

/* By its path as the process sees it, else by the map. */
static int name_find(pid_t pid, const struct map *m, struct near_file *f)
{
	char name[PATH_MAX + 32], path[PATH_MAX];
	int result, fd;

	if (path_whole(pid, m, path)) {
		snprintf(name, sizeof(name), "/proc/%d/root%s", pid, path);
		result = near_open(name, f);
		if (!result && is_mapped(f, m))
			return 0;
		if (!result)
			near_close(f);
		else if (result == -EAGAIN)
			return result;
	}
	link_name(pid, m, name);
	fd = open(name, O_PATH | O_CLOEXEC);
	return fd < 0 ? -errno : near_take(fd, f);
}

/* --- kept ------------------------------------------------------------------------------ */

/*
 * Programs that begin one after the other map the same files.  So a name that was found, of a
 * file that is near, is kept for a while: its inode is no other file's meanwhile, and what it
 * is now is asked of it without a path's being walked.
 */
/* Limit (programs): files that are kept by name. Beyond: their paths are walked again. */
#define NAMES		32	/* the one that was used longest ago goes */
#define NAME_MS		2000	/* a name keeps a file system from being unmounted */

static struct kept_name {
	int fd;			/* 0: the row is free */
	dev_t dev;
	ino_t inode;
	uint64_t used_ms;
} names[NAMES];

static bool names_find(const struct map *m, struct near_file *f)
{
	for (struct kept_name *h = names; h < names + NAMES; h++) {
		if (!h->fd || h->inode != m->inode || h->dev != m->dev)
			continue;
		h->used_ms = now_ms();
		*f = (struct near_file){ .fd = h->fd, .kept = true };
		return !fstat(h->fd, &f->st) && is_mapped(f, m);
	}
	return false;
}

static void name_free(struct kept_name *h)
{
	close(h->fd);
	*h = (struct kept_name){ 0 };
}

static void names_keep(const struct map *m, struct near_file *f)
{
	struct kept_name *row = names;

	if (f->st.st_dev != m->dev || f->st.st_ino != m->inode || f->fd <= 0)
		return;
	for (struct kept_name *h = names; h < names + NAMES; h++)
		if (h->used_ms < row->used_ms)
			row = h;
	if (row->fd)
		name_free(row);
	*row = (struct kept_name){ f->fd, m->dev, m->inode, now_ms() };
	f->kept = true;
}

static void names_look(struct monitor *m)
{
	uint64_t now = now_ms();

	for (struct kept_name *h = names; h < names + NAMES; h++) {
		if (h->fd && now - h->used_ms >= NAME_MS)
			name_free(h);
		else if (h->fd)
			monitor_wake_after(m, NAME_MS);
	}
}

/* --- in the child ---------------------------------------------------------------------- */

static void map_touch(pid_t pid, const struct map *m)
{
	char byte;

	for (uint64_t at = m->start; at < m->end; at += 4096)
		if (memory_peek(pid, at, &byte, 1) < 0)
			break;
}

static void name_send(int socket, int fd)
{
	char control[CMSG_SPACE(sizeof(int))] = { 0 }, byte = 0;
	struct iovec iov = { &byte, 1 };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = control,
			      .msg_controllen = sizeof(control) };
	struct cmsghdr *c = CMSG_FIRSTHDR(&msg);

	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(c), &fd, sizeof(int));
	if (sendmsg(socket, &msg, MSG_NOSIGNAL) < 0)
		_exit(EXIT_SYSTEM);
}

static void far_work(void *to, const void *about)
{
	const struct far_row *row = &fars[((const struct far_about *)about)->row];
	struct far_found *found = to;
	struct near_file f;
	int fd;

	found->error = name_find(row->pid, &row->map, &f);
	if (found->error)
		return;
	found->st = f.st;
	fd = near_read(f.fd);
	if (fd >= 0)
		found->dynamic = program_interpreter(fd, found->interpreter, INTERPRETER_MAX);
	map_touch(row->pid, &row->map);
	name_send(3, f.fd);
}

/* --- in the monitor -------------------------------------------------------------------- */

static int name_take(int socket)
{
	char control[CMSG_SPACE(sizeof(int))], byte;
	struct iovec iov = { &byte, 1 };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = control,
			      .msg_controllen = sizeof(control) };
	const struct cmsghdr *c;
	int fd = -1;

	if (recvmsg(socket, &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC) != 1)
		return -1;
	c = CMSG_FIRSTHDR(&msg);
	if (c && c->cmsg_type == SCM_RIGHTS && c->cmsg_len == CMSG_LEN(sizeof(int)))
		memcpy(&fd, CMSG_DATA(c), sizeof(int));
	return fd;
}

static void far_end(const void *result, const void *about, int error)
{
	const struct far_about *a = about;
	struct far_row *row = &fars[a->row];

	MUST(a->row < FARS && row->pid == a->pid && !row->done && row->socket >= 0);
	row->found = *(const struct far_found *)result;
	row->found.interpreter[INTERPRETER_MAX - 1] = 0;
	row->fd = error || row->found.error ? -1 : name_take(row->socket);
	row->found.error = error ? error : row->found.error ? row->found.error :
			   row->fd < 0 ? -EIO : 0;
	close(row->socket);
	row->socket = -1;
	row->done = true;
}

static const struct beside far = { sizeof(struct far_found), far_work, far_end };

static void far_close(struct far_row *row)
{
	MUST(row->pid && row->socket < 0);	/* nobody looks at it any more */
	if (row->fd >= 0)
		close(row->fd);
	*row = (struct far_row){ 0 };
}

static int far_start(pid_t pid, const struct map *m)
{
	struct far_about about;
	struct far_row *row = fars;
	int ends[2], result;

	while (row < fars + FARS && row->pid)
		row++;
	if (row == fars + FARS)
		return -EBUSY;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
		return -errno;
	*row = (struct far_row){ .pid = pid, .map = *m, .socket = ends[0], .fd = -1 };
	memset(&about, 0, sizeof(about));
	about.pid = pid;
	about.row = (uint32_t)(row - fars);
	about.start = m->start;
	result = beside_start(&far, ends[1], process_user(pid), &about, sizeof(about));
	close(ends[1]);
	if (result) {
		close(row->socket);
		*row = (struct far_row){ 0 };
	}
	return result && result != -EBUSY ? result : -EAGAIN;
}

static int far_find(pid_t pid, const struct map *m, struct near_file *f)
{
	for (struct far_row *row = fars; row < fars + FARS; row++) {
		if (row->pid != pid || row->map.start != m->start ||
		    row->map.inode != m->inode || row->map.end != m->end)
			continue;
		if (!row->done)
			return -EAGAIN;
		if (row->found.error)
			return row->found.error;
		f->fd = fcntl(row->fd, F_DUPFD_CLOEXEC, 0);
		f->st = row->found.st;
		f->far = true;
		f->kept = false;
		f->user = process_user(pid);
		return f->fd < 0 ? -errno : 0;
	}
	return far_start(pid, m);
}

int mapped_find(pid_t pid, const struct map *m, struct near_file *f)
{
	int result;

	if (names_find(m, f))
		return 0;
	result = name_find(pid, m, f);
	if (!result)
		names_keep(m, f);
	return result == -EAGAIN ? far_find(pid, m, f) : result;
}

bool mapped_interpreter(pid_t pid, ino_t inode, char name[INTERPRETER_MAX], bool *dynamic)
{
	for (const struct far_row *row = fars; row < fars + FARS; row++)
		if (row->pid == pid && row->done && !row->found.error &&
		    row->map.inode == inode) {
			memcpy(name, row->found.interpreter, INTERPRETER_MAX);
			*dynamic = row->found.dynamic;
			return true;
		}
	return false;
}

static bool waits(const struct monitor *m, pid_t pid)
{
	for (int i = 0; i < TRACEES_MAX; i++)
		if (m->tracees[i].tid == pid && m->tracees[i].waits)
			return true;
	for (unsigned i = 0; i < m->held_high; i++)
		if (m->held[i].version && m->held[i].request.tid == pid)
			return true;
	return false;
}

void mapped_look(struct monitor *m)
{
	for (struct far_row *row = fars; row < fars + FARS; row++)
		if (row->pid && row->done && !waits(m, row->pid))
			far_close(row);
	names_look(m);
}

void mapped_forget(void)
{
	for (struct kept_name *h = names; h < names + NAMES; h++)
		if (h->fd)
			name_free(h);
	for (struct far_row *row = fars; row < fars + FARS; row++) {
		if (!row->pid || row->done)
			continue;
		close(row->socket);
		row->socket = -1;
		far_close(row);
	}
}
