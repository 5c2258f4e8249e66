/*
 * The record locks (fcntl F_SETLK) of the twin: a process of the old leader, which stands.
 * Only the kernel knows them.  Any close of any descriptor of a file, a dup2 over one too,
 * gives up all that the process has on the file; an execve keeps them; and which bytes a call
 * has locked may hang on where the file was read.  So the kernel is asked, in ways that ask no
 * file system, which might not answer: the fdinfo of a descriptor says which bytes, and of many
 * files /proc/locks first on which there are any.  That stops all locking of the machine for a
 * moment, for which the kernel waits until each of its processors has passed: 10 to 20 ms.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/core/must.h"
#include "engine/outside/monitor/say.h"
#include "engine/outside/takeover/taking.h"

#define LOCKS_ASKED	1024	/* descriptors: their fdinfo is cheaper, 7 us each */

/* Files by their inodes; grown as they come. */
struct inodes {
	struct lockable {
		uint64_t ino;
		int fd;		/* the twin's; -1: of one that is locked */
		bool met;	/* of a locked one: the twin has it open */
	} *row;
	size_t n, room;
};

/* What the twin has open and may have locked: once for each descriptor, in no order. */
static struct inodes open_files;

/* False: there is no memory. */
static bool inode_add(struct inodes *of, uint64_t ino, int fd)
{
	size_t room = of->room ? of->room * 2 : 64;
	struct lockable *more;

	MUST(of->n <= of->room);
	if (of->n == of->room) {
		more = realloc(of->row, room * sizeof(*more));
		if (!more)
			return false;
		of->row = more;
		of->room = room;
	}
	of->row[of->n++] = (struct lockable){ ino, fd, false };
	return true;
}

void locks_forget(void)
{
	open_files.n = 0;
}

bool locks_lockable(const struct stat *st)
{
	return !S_ISSOCK(st->st_mode) && !S_ISFIFO(st->st_mode);
}

void locks_meet(int fd, uint64_t ino)
{
	MUST(fd >= 0);
	if (!inode_add(&open_files, ino, fd))
		say_log("take", "no memory for descriptor %d's locks", fd);
}

static int by_inode(const void *a, const void *b)
{
	uint64_t x = ((const struct lockable *)a)->ino, y = ((const struct lockable *)b)->ino;

	return x < y ? -1 : x > y;
}

/* In order and each once, as inode_find wants them. */
static void inodes_sort(struct inodes *of)
{
	size_t n = 0;

	if (of->n)
		qsort(of->row, of->n, sizeof(*of->row), by_inode);
	for (size_t i = 0; i < of->n; i++)
		if (!n || of->row[n - 1].ino != of->row[i].ino)
			of->row[n++] = of->row[i];
	of->n = n;
}

/* The files on which the process has locks; false: not all, for want of memory or of the list. */
static bool locked_read(pid_t pid, struct inodes *locked)
{
	FILE *f = fopen("/proc/locks", "re");
	bool all = f;
	unsigned long ino;
	char line[256];
	int whose;

	while (all && fgets(line, sizeof(line), f))
		if (sscanf(line, "%*u: POSIX %*s %*s %d %*x:%*x:%lu", &whose, &ino) == 2 &&
		    whose == pid)
			all = inode_add(locked, ino, -1);
	if (f)
		fclose(f);
	inodes_sort(locked);
	return all;
}

static struct lockable *inode_find(const struct inodes *in, uint64_t ino)
{
	const struct lockable key = { .ino = ino };

	return in->n ? bsearch(&key, in->row, in->n, sizeof(key), by_inode) : NULL;
}

/*
 * Whether each locked file is one that the twin has open.  If not, the file system gives stat
 * other inodes than /proc/locks has, and each descriptor must be asked.
 */
static bool all_met(struct inodes *locked)
{
	for (size_t i = 0; i < open_files.n; i++) {
		struct lockable *l = inode_find(locked, open_files.row[i].ino);

		if (l)
			l->met = true;
	}
	for (size_t i = 0; i < locked->n; i++)
		if (!locked->row[i].met)
			return false;
	return true;
}

/* A line of fdinfo; false: it is about no record lock. */
static bool lock_read(const char *line, int fd, struct taken_lock *l)
{
	char type[8], last[24];
	long from;

	if (sscanf(line, "lock: %*u: POSIX %*s %7s %*d %*s %ld %23s", type, &from, last) != 3)
		return false;
	*l = (struct taken_lock){ .fd = fd, .from = from,
				  .type = !strcmp(type, "WRITE") ? F_WRLCK : F_RDLCK };
	l->to = !strcmp(last, "EOF") ? TAKEN_LOCK_END : strtol(last, NULL, 10);
	return from >= 0 && l->to >= from;
}

static int batch_send(struct taking *k, struct taken_message *message)
{
	int result = message->n ? message_send(k, message, sizeof(message->lock[0]), NULL) : 0;

	message->n = 0;
	return result;
}

/*
 * Anybody has one on what our copy is of too.  Of a device (/dev/null, a terminal) no file system
 * is asked.
 */
static bool device_may(int ours)
{
	struct flock any = { .l_type = F_WRLCK, .l_whence = SEEK_SET };

	return fcntl(ours, F_GETLK, &any) < 0 || any.l_type != F_UNLCK;
}

/* Of most files fdinfo is short, and says nothing: clients wait. */
bool locks_may(pid_t pid, int number, int ours, const struct stat *st)
{
	char path[64], text[256];
	ssize_t n;
	int fd;

	if (S_ISCHR(st->st_mode) && !device_may(ours))
		return false;
	snprintf(path, sizeof(path), "/proc/%d/fdinfo/%d", pid, number);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? (ssize_t)sizeof(text) : read(fd, text, sizeof(text));
	if (fd >= 0)
		close(fd);
	return n == sizeof(text) || (n > 0 && memmem(text, (size_t)n, "lock:", 5));
}

/* Those that were taken by this descriptor, or by another of the same open file. */
static int locks_of(struct taking *k, int fd, struct taken_message *message)
{
	char path[64], line[256];
	int result = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/fdinfo/%d", k->twin, fd);
	f = fopen(path, "re");
	while (f && !result && fgets(line, sizeof(line), f)) {
		if (!lock_read(line, fd, &message->lock[message->n]))
			continue;
		if (++message->n == TAKEN_LOCKS)
			result = batch_send(k, message);
	}
	if (f)
		fclose(f);
	return result;
}

int locks_send(struct monitor *m, struct taking *k)
{
	struct taken_message message = { .kind = STATE_locks_held };
	struct inodes locked = { 0 };
	bool said = open_files.n > LOCKS_ASKED && locked_read(k->twin, &locked);
	bool all = !said || !all_met(&locked);
	int result = 0;

	(void)m;
	MUST(k->twin > 0);
	for (size_t i = 0; !result && (locked.n || !said) && i < open_files.n; i++)
		if (all || inode_find(&locked, open_files.row[i].ino))
			result = locks_of(k, open_files.row[i].fd, &message);
	free(locked.row);
	return result ? result : batch_send(k, &message);
}
