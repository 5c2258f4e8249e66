/*
 * See folder.h.  A file is written under another name, made with O_EXCL, and moved to its
 * place when it is whole; the name holds the pid, so that two do not meet.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pwd.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/core/must.h"
#include "engine/outside/kernel/folder.h"

#define AS_FOLDER	(O_RDONLY | O_DIRECTORY | O_CLOEXEC)
#define AS_FILE		(O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC)
#define AS_LOG		(O_WRONLY | O_APPEND | O_CREAT | O_NONBLOCK | O_NOCTTY | O_CLOEXEC)
#define TEMP_TRIES	16	/* what a killed one of the same pid has left */

/* --- what was wrong ----------------------------------------------------------------- */

static __thread char why[PATH_MAX + 256];

static __thread int why_error;

const char *folder_why(int error)
{
	return error == why_error ? why : strerror(error);
}

void folder_why_clear(void)
{
	why_error = 0;
}

void folder_path(int folder, char *path, size_t size)
{
	char link[64];
	ssize_t n;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", folder);
	n = readlink(link, path, size - 1);
	path[n < 0 ? 0 : n] = 0;
}

__attribute__((format(printf, 4, 5)))
static int fault(int at, const char *name, int error, const char *fmt, ...)
{
	char path[PATH_MAX] = "";
	va_list ap;
	int n;

	MUST(error > 0);	/* whoever is told takes 0 for success */
	if (name[0] != '/')
		folder_path(at, path, sizeof(path));
	n = !*path && !*name ? 0 : snprintf(why, sizeof(why), "%.3000s%s%.512s: ", path,
					    *path ? "/" : "", name);
	MUST((size_t)n < sizeof(why));
	va_start(ap, fmt);
	vsnprintf(why + n, sizeof(why) - (size_t)n, fmt, ap);
	va_end(ap);
	why_error = error;
	return -error;
}

int folder_fault(const char *path, int error)
{
	return fault(-1, path, error, "%s", strerror(error));
}

/* Only we can have written it. */
static int owner_check(int at, const char *name, const struct stat *st, mode_t others)
{
	if (st->st_uid != geteuid())
		return fault(at, name, EPERM, "it belongs to another user (%u)", st->st_uid);
	if (st->st_mode & others)
		return fault(at, name, EPERM, "it is open to other users (mode %04o)",
			     st->st_mode & 07777);
	return 0;
}

/* --- folders ------------------------------------------------------------------------- */

/* One name, not a way to somewhere else. */
static bool is_name(const char *name)
{
	return *name && !strchr(name, '/') && strcmp(name, "..") && strcmp(name, ".");
}

int folder_open(int at, const char *name, int how)
{
	mode_t others = how & FOLDER_CLOSED ? 077 : 022;
	struct stat st;
	int fd, result;

	MUST(at >= 0 && is_name(name));
	if (how & FOLDER_MAKE && mkdirat(at, name, 0700) < 0 && errno != EEXIST)
		return fault(at, name, errno, "%s", strerror(errno));
	fd = openat(at, name, AS_FOLDER | O_NOFOLLOW);
	if (fd < 0 && !fstatat(at, name, &st, AT_SYMLINK_NOFOLLOW)) {
		/* Whose it is says more than why it does not open. */
		result = owner_check(at, name, &st, 0);
		return result ? result : fault(at, name, errno, "%s", S_ISDIR(st.st_mode) ?
					       strerror(errno) : "it is not a folder");
	}
	if (fd < 0)
		return fault(at, name, errno, "%s", strerror(errno));
	result = fstat(fd, &st) ? -errno : owner_check(at, name, &st, others);
	if (result)
		close(fd);
	return result ? result : fd;
}

static bool is_path(const char *text)
{
	return text && text[0] == '/';
}

bool folder_base_named(const char *variable)
{
	return is_path(getenv(variable)) || is_path(getenv("HOME"));
}

static const char *home_find(void)
{
	static char *found;
	const char *home = getenv("HOME");
	const struct passwd *p;

	if (is_path(home))
		return home;
	if (!found) {
		p = getpwuid(geteuid());
		found = strdup(p && p->pw_dir[0] == '/' ? p->pw_dir : "");
	}
	return found && found[0] ? found : NULL;
}

/*
 * Every folder on the way, as XDG asks: those that are new are the user's.  Where one is not
 * there, why it could not be made says more than that.
 */
static int way_open(char *path, int how)
{
	int fd, error = 0;

	for (char *at = path; how & FOLDER_MAKE && at;) {
		at = strchr(at + 1, '/');
		if (at)
			*at = 0;
		if (mkdir(path, 0700) < 0 && errno != EEXIST && !error)
			error = errno;
		if (at)
			*at = '/';
	}
	fd = open(path, AS_FOLDER);
	if (fd < 0 && (errno != ENOENT || !error))
		error = errno;
	return fd < 0 ? fault(-1, path, error, "%s", strerror(error)) : fd;
}

int folder_base(const char *variable, const char *tail, int how)
{
	const char *base = getenv(variable), *home;
	char path[PATH_MAX];
	int n, way, fd;

	if (is_path(base)) {
		n = snprintf(path, sizeof(path), "%s", base);
	} else {
		home = home_find();
		if (!home)
			return fault(-1, "", ENOENT, "neither %s nor HOME is set", variable);
		n = snprintf(path, sizeof(path), "%s/%s", home[1] ? home : "", tail);
	}
	if ((size_t)n >= sizeof(path))
		return fault(-1, "", ENAMETOOLONG, "%s is too long", variable);
	way = way_open(path, how);
	if (way < 0)
		return way;
	fd = folder_open(way, "mve", how);
	close(way);
	return fd;
}

/* --- files ---------------------------------------------------------------------------- */

static int file_open(int folder, const char *name, int how, struct stat *st)
{
	int fd, result = 0;

	MUST(folder >= 0 && is_name(name));
	fd = openat(folder, name, how | O_NOFOLLOW, 0600);
	if (fd < 0)
		return fault(folder, name, errno, "%s", strerror(errno));
	if (fstat(fd, st) < 0 || !S_ISREG(st->st_mode))
		result = fault(folder, name, EPERM, "it is not a file");
	if (!result)
		result = owner_check(folder, name, st, 022);
	if (result)
		close(fd);
	return result ? result : fd;
}

int folder_file(int folder, const char *name, uint64_t *size)
{
	struct stat st;
	int fd = file_open(folder, name, AS_FILE, &st);

	*size = fd < 0 ? 0 : (uint64_t)st.st_size;
	return fd;
}

int folder_append(int folder, const char *name)
{
	struct stat st;
	int fd = file_open(folder, name, AS_LOG, &st);

	if (fd >= 0)
		fcntl(fd, F_SETFL, O_APPEND);	/* O_NONBLOCK was for what is no file */
	return fd;
}

/* It may grow or shrink meanwhile: what is read is what was there, up to the first size. */
char *file_read_fd(int fd, size_t most, size_t *len)
{
	struct stat st;
	char *text;
	size_t at = 0;
	ssize_t n;

	if (fstat(fd, &st) < 0)
		return NULL;
	errno = S_ISREG(st.st_mode) ? EFBIG : EINVAL;
	if (!S_ISREG(st.st_mode) || (uint64_t)st.st_size > most)
		return NULL;
	text = malloc((size_t)st.st_size + 1);
	while (text && at < (size_t)st.st_size) {
		n = pread(fd, text + at, (size_t)st.st_size - at, (off_t)at);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			break;
		at += (size_t)n;
	}
	MUST(at <= (size_t)st.st_size && (size_t)st.st_size <= most);
	if (text)
		text[at] = 0;
	*len = at;
	return text;
}

char *folder_read(int folder, const char *name, size_t most, size_t *len)
{
	uint64_t size;
	int fd = folder_file(folder, name, &size);
	char *text = fd < 0 ? NULL : file_read_fd(fd, most, len);

	if (fd >= 0)
		close(fd);
	return text;
}

char *file_read(const char *path, size_t most, size_t *len)
{
	int fd = open(path, AS_FILE), error;
	char *text = fd < 0 ? NULL : file_read_fd(fd, most, len);

	error = errno;
	if (fd >= 0)
		close(fd);
	errno = error;
	return text;
}

int fd_write(int fd, const struct folder_part *part)
{
	const char *p = part->bytes;

	for (size_t left = part->len; left;) {
		ssize_t n = write(fd, p, left);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : -ENOSPC;
		p += n;
		left -= (size_t)n;
	}
	return 0;
}

static int temp_make(int folder, const char *name, char *temp, size_t size)
{
	static unsigned turn;

	for (int i = 0; i < TEMP_TRIES; i++) {
		int fd, n = snprintf(temp, size, "%s.%d-%u.tmp", name, getpid(), turn++);

		MUST((size_t)n < size);		/* cut, two would meet */
		fd = openat(folder, temp, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
			    0600);
		if (fd >= 0 || errno != EEXIST)
			return fd < 0 ? -errno : fd;
	}
	return -EEXIST;
}

int folder_write(int folder, const char *name, const struct folder_part *part, unsigned parts)
{
	char temp[NAME_MAX + 1];
	int fd, result;

	MUST(folder >= 0 && is_name(name) && parts);
	fd = temp_make(folder, name, temp, sizeof(temp));
	result = fd < 0 ? fd : 0;
	for (unsigned i = 0; i < parts && !result; i++)
		result = fd_write(fd, &part[i]);
	if (fd >= 0 && close(fd) < 0 && !result)
		result = -errno;
	if (!result && renameat(folder, temp, folder, name) < 0)
		result = -errno;
	if (result && fd >= 0)
		unlinkat(folder, temp, 0);
	return result ? fault(folder, name, -result, "%s", strerror(-result)) : 0;
}
