/*
 * A recording's own files in their places, for one process and those it starts: in a mount
 * namespace of its own, so that nothing of the machine is changed.
 *
 * A tmpfs is mounted over the recording's own folder of files.  What is needed is copied there,
 * and compared with the SHA-256 that it is named by.  A file of the machine that is another gets
 * the copy mounted over it.  For one that is missing the folder that it would be in becomes one of
 * the tmpfs, with all that was there mounted into it, and can be written.  Files that are here as
 * they were are left alone.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/core/must.h"
#include "engine/outside/kernel/folder.h"
#include "engine/outside/monitor/say.h"
#include "engine/outside/pack/packed.h"

#define INDEX_DAMAGED	PACKED_INDEX ": damaged, or of another version of mve"
#define INDEX_MOST	(64u << 20)	/* bytes */
#define COPY_BYTES	(1u << 16)	/* at a time */

struct place {
	int from;		/* the recording's folder of files */
	const json_t *rows;
	char top[PATH_MAX];	/* where the tmpfs is */
	dev_t dev;		/* its */
	unsigned dirs, files;
	char why[256];
};

__attribute__((format(printf, 2, 3)))
static bool fails(struct place *p, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(p->why, sizeof(p->why), fmt, ap);
	va_end(ap);
	return false;
}

int packed_sum(int fd, char text[SHA256_TEXT])
{
	static uint8_t bytes[COPY_BYTES];
	struct sha256 s;
	off_t at = 0;
	ssize_t n;

	sha256_begin(&s);
	while ((n = pread(fd, bytes, sizeof(bytes), at)) > 0) {
		sha256_add(&s, bytes, (size_t)n);
		at += n;
	}
	sha256_end(&s, text);
	return n < 0 ? -errno : 0;
}

/* --- what is here -------------------------------------------------------------------- */

static const char *word(const json_t *row, const char *key)
{
	const char *text = json_string_value(json_object_get(row, key));

	return text ? text : "";
}

static bool is_here(const json_t *row)
{
	const char *path = word(row, "path"), *link = word(row, "link");
	char text[PATH_MAX] = "";
	struct stat is;
	int fd;

	if (link[0])
		return readlink(path, text, sizeof(text) - 1) > 0 && !strcmp(text, link);
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0)
		return false;
	if (fstat(fd, &is) || !S_ISREG(is.st_mode) || packed_sum(fd, text))
		text[0] = 0;
	close(fd);
	return !strcmp(text, word(row, "sha256"));
}

/* Not believed: it names nothing outside of its folder, and a path from the root on. */
static bool row_possible(const json_t *row)
{
	const char *sum = word(row, "sha256"), *path = word(row, "path");

	return path[0] == '/' && strlen(path) < PATH_MAX - 64 && !strstr(path, "/../") &&
	       strlen(word(row, "link")) < PATH_MAX &&
	       (word(row, "link")[0] || (strlen(sum) == SHA256_TEXT - 1 &&
					 strspn(sum, "0123456789abcdef") == SHA256_TEXT - 1));
}

/* --- a namespace ---------------------------------------------------------------------- */

static bool map_write(const char *file, const char *text)
{
	int fd = open(file, O_WRONLY | O_CLOEXEC);
	bool done = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);

	if (fd >= 0)
		close(fd);
	return done;
}

/* Ours as it is; who is not root has rights in it all the same. */
static bool namespace_make(struct place *p)
{
	unsigned uid = geteuid(), gid = getegid();
	char text[64];

	if (unshare(CLONE_NEWNS)) {
		if (unshare(CLONE_NEWUSER | CLONE_NEWNS))
			return fails(p, "no mount namespace: %s", strerror(errno));
		map_write("/proc/self/setgroups", "deny");
		snprintf(text, sizeof(text), "%u %u 1", uid, uid);
		if (!map_write("/proc/self/uid_map", text))
			return fails(p, "no user namespace: %s", strerror(errno));
		snprintf(text, sizeof(text), "%u %u 1", gid, gid);
		map_write("/proc/self/gid_map", text);
	}
	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL))
		return fails(p, "the mounts cannot be made private: %s", strerror(errno));
	return true;
}

static bool top_make(struct place *p)
{
	struct stat is;

	if (mount("mve", p->top, "tmpfs", MS_NOSUID | MS_NODEV, "mode=0700") || stat(p->top, &is))
		return fails(p, "no tmpfs: %s", strerror(errno));
	p->dev = is.st_dev;
	return true;
}

/* --- folders --------------------------------------------------------------------------- */

/* A copy is mounted over it: it stays where it is. */
static bool is_over(const json_t *row)
{
	struct stat is;

	return !word(row, "link")[0] && !stat(word(row, "path"), &is) && S_ISREG(is.st_mode);
}

/* Something else comes there, which can be put in no place that something is mounted in. */
static bool is_replaced(const struct place *p, const char *path)
{
	const json_t *row;
	size_t i;

	json_array_foreach(p->rows, i, row)
		if (!strcmp(word(row, "path"), path))
			return !is_here(row) && !is_over(row);
	return false;
}

/* What is in a folder of the machine, in one of ours; what cannot be had is missing there. */
static void entry_bind(const struct place *p, int from, int to, const char *old, const char *new,
		       const char *name)
{
	char source[PATH_MAX], target[PATH_MAX], text[PATH_MAX] = "";
	const char *above = old[1] ? old : "";
	struct stat is;
	int fd;

	if (snprintf(source, sizeof(source), "%s/%s", above, name) >= (int)sizeof(source) ||
	    snprintf(target, sizeof(target), "%s/%s", new, name) >= (int)sizeof(target) ||
	    fstatat(from, name, &is, AT_SYMLINK_NOFOLLOW) || is_replaced(p, source))
		return;
	if (S_ISLNK(is.st_mode)) {
		if (readlinkat(from, name, text, sizeof(text) - 1) > 0)
			(void)!symlinkat(text, to, name);
		return;
	}
	if (S_ISDIR(is.st_mode)) {
		mkdirat(to, name, 0755);
	} else {
		fd = openat(to, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
		if (fd >= 0)
			close(fd);
	}
	mount(source, target, NULL, MS_BIND | MS_REC, NULL);
}

static void entries_bind(const struct place *p, const char *old, const char *new)
{
	DIR *dir = opendir(old);
	int to = open(new, O_PATH | O_DIRECTORY | O_CLOEXEC);

	for (struct dirent *d; dir && to >= 0 && (d = readdir(dir));)
		if (strcmp(d->d_name, ".") && strcmp(d->d_name, ".."))
			entry_bind(p, dirfd(dir), to, old, new, d->d_name);
	if (dir)
		closedir(dir);
	if (to >= 0)
		close(to);
}

/* The folder becomes one of the tmpfs, in which there can be more. */
static bool folder_open_up(struct place *p, const char *path)
{
	char new[PATH_MAX];
	struct stat is;

	if (stat(path, &is))
		return fails(p, "%s: %s", path, strerror(errno));
	if (is.st_dev == p->dev)
		return true;
	if (snprintf(new, sizeof(new), "%s/d%u", p->top, p->dirs++) >= (int)sizeof(new) ||
	    mkdir(new, 0700) || chmod(new, is.st_mode & 0777))
		return fails(p, "%s: %s", new, strerror(errno));
	entries_bind(p, path, new);
	if (!strcmp(path, "/") ? chroot(new) : mount(new, path, NULL, MS_BIND | MS_REC, NULL))
		return fails(p, "%s cannot be another: %s", path, strerror(errno));
	return true;
}

/* The folder in which `path` is can be written; folders on the way are made. */
static bool parent_ready(struct place *p, const char *path)
{
	char part[PATH_MAX], above[PATH_MAX];
	struct stat is;

	for (const char *at = strchr(path + 1, '/'); at; at = strchr(at + 1, '/')) {
		snprintf(part, sizeof(part), "%.*s", (int)(at - path), path);
		if (!stat(part, &is))
			continue;
		snprintf(above, sizeof(above), "%.*s", (int)(strrchr(part, '/') - part), part);
		if (!folder_open_up(p, above[0] ? above : "/"))
			return false;
		if (mkdir(part, 0755))
			return fails(p, "%s: %s", part, strerror(errno));
	}
	snprintf(part, sizeof(part), "%.*s", (int)(strrchr(path, '/') - path), path);
	return folder_open_up(p, part[0] ? part : "/");
}

/* --- files ------------------------------------------------------------------------------- */

static bool bytes_copy(struct place *p, int from, int to, const char *sum)
{
	static uint8_t bytes[COPY_BYTES];
	char text[SHA256_TEXT];
	struct sha256 s;
	ssize_t n;

	sha256_begin(&s);
	while ((n = read(from, bytes, sizeof(bytes))) > 0) {
		sha256_add(&s, bytes, (size_t)n);
		if (fd_write(to, &(struct folder_part){ bytes, (size_t)n }))
			return fails(p, "no memory for a copy of %s", sum);
	}
	sha256_end(&s, text);
	return (n == 0 && !strcmp(text, sum)) || fails(p, "its file %s is damaged", sum);
}

static bool file_copy(struct place *p, const json_t *row, const char *to)
{
	const char *sum = word(row, "sha256");
	int from = openat(p->from, sum, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	int fd = open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	bool done = from >= 0 && fd >= 0 ? bytes_copy(p, from, fd, sum) :
		    fails(p, "its file %s: %s", sum, strerror(errno));

	if (fd >= 0 && done)
		fchmod(fd, json_integer_value(json_object_get(row, "mode")) & 0777);
	if (from >= 0)
		close(from);
	if (fd >= 0)
		close(fd);
	return done;
}

static bool row_place(struct place *p, const json_t *row)
{
	const char *path = word(row, "path"), *link = word(row, "link");
	char copy[PATH_MAX];

	if (is_here(row))
		return true;
	p->files++;
	if (is_over(row)) {
		snprintf(copy, sizeof(copy), "%.4000s/f%u", p->top, p->files);
		return file_copy(p, row, copy) &&
		       (!mount(copy, path, NULL, MS_BIND, NULL) ||
			fails(p, "%s cannot be another: %s", path, strerror(errno)));
	}
	if (!parent_ready(p, path))
		return false;
	unlink(path);
	if (!link[0])
		return file_copy(p, row, path);
	return !symlink(link, path) || fails(p, "%s: %s", path, strerror(errno));
}

static bool all_place(struct place *p, const json_t *list, const char *folder)
{
	char at[PATH_MAX], below[PATH_MAX];
	const json_t *row;
	bool done = true;
	size_t i;

	if (!getcwd(at, sizeof(at)))
		strcpy(at, "/");
	p->rows = list;
	json_array_foreach(list, i, row)
		done = done && row_place(p, row);
	if (snprintf(below, sizeof(below), "%s/.", folder) >= (int)sizeof(below))
		return fails(p, "%s: too long", folder);
	/* By its name: there may be another folder in its place. */
	return done && (!access(folder, F_OK) || parent_ready(p, below)) &&
	       (!chdir(at) || fails(p, "%s: %s", at, strerror(errno)));
}

/* --- all of it ------------------------------------------------------------------------------ */

/* NULL: it is damaged, or another version's. */
static json_t *index_read(int folder)
{
	size_t len = 0;
	int fd = openat(folder, PACKED_INDEX, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	char *text = fd < 0 ? NULL : file_read_fd(fd, INDEX_MOST, &len);
	json_t *j = text ? json_loadb(text, len, 0, NULL) : NULL, *list, *row;
	bool sane = json_integer_value(json_object_get(j, "version")) == PACKED_VERSION;
	size_t i;

	free(text);
	if (fd >= 0)
		close(fd);
	list = json_object_get(j, "files");
	json_array_foreach(list, i, row)
		sane = sane && row_possible(row);
	if (sane && list)
		return j;
	json_decref(j);
	return NULL;
}

json_t *packed_index(int recording, bool *damaged)
{
	bool is = !faccessat(recording, PACKED_INDEX, F_OK, AT_SYMLINK_NOFOLLOW);
	json_t *j = is ? index_read(recording) : NULL;

	*damaged = is && !j;
	return j;
}

bool packed_has(int files, const char *sum)
{
	int fd = openat(files, sum, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	char text[SHA256_TEXT] = "";
	struct stat is;

	if (fd < 0)
		return false;
	if (fstat(fd, &is) || !S_ISREG(is.st_mode) || packed_sum(fd, text))
		text[0] = 0;
	close(fd);
	return !strcmp(text, sum);
}

static json_t *file_damage(int files, const json_t *row)
{
	const char *sum = word(row, "sha256");

	if (word(row, "link")[0] || packed_has(files, sum))
		return NULL;
	return json_sprintf("its file %s is %s: %s", sum,
			    faccessat(files, sum, F_OK, AT_SYMLINK_NOFOLLOW) ? "missing" :
			    "damaged", word(row, "path"));
}

json_t *packed_damage(int recording, size_t *n)
{
	int files = openat(recording, PACKED_FOLDER, O_RDONLY | O_DIRECTORY | O_CLOEXEC |
			   O_NOFOLLOW);
	json_t *texts = json_array(), *j, *list, *row, *text;
	bool damaged;
	size_t i;

	MUST(texts);
	j = packed_index(recording, &damaged);
	if (damaged)
		json_array_append_new(texts, json_string(INDEX_DAMAGED));
	list = json_object_get(j, "files");
	json_array_foreach(list, i, row) {
		text = file_damage(files, row);
		if (text)
			json_array_append_new(texts, text);
	}
	*n = json_array_size(list);
	json_decref(j);
	if (files >= 0)
		close(files);
	return texts;
}

static bool any_missing(const json_t *list, const char *folder)
{
	const json_t *row;
	size_t i;

	json_array_foreach(list, i, row)
		if (!is_here(row))
			return true;
	return access(folder, F_OK) != 0;
}

static int enter(int recording, const char *path, const json_t *list, const char *folder)
{
	struct place p = { .from = openat(recording, PACKED_FOLDER, O_RDONLY | O_DIRECTORY |
					  O_CLOEXEC | O_NOFOLLOW) };
	bool done = p.from >= 0 || fails(&p, "%s: %s", PACKED_FOLDER, strerror(errno));

	if (done)
		folder_path(p.from, p.top, sizeof(p.top));
	done = done && namespace_make(&p) && top_make(&p) && all_place(&p, list, folder);
	if (p.from >= 0)
		close(p.from);
	if (done)
		say_error(NULL, p.files == 1 ?
			  "%s: its own is taken of %u file that is missing here, or is another" :
			  "%s: its own are taken of %u files that are missing here, or are others",
			  path, p.files);
	else
		say_error("install them: files.json in it says where they belong",
			  "%s: its files cannot be put in their places: %s", path, p.why);
	return done ? 0 : EXIT_SYSTEM;
}

int packed_enter(const char *path, const char *folder)
{
	int recording = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC), result = 0;
	bool damaged = false;
	json_t *j = recording < 0 ? NULL : packed_index(recording, &damaged);

	if (damaged) {
		say_error(PACKED_HINT, "%s/%s", path, INDEX_DAMAGED);
		result = EXIT_SYSTEM;
	}
	if (j && any_missing(json_object_get(j, "files"), folder))
		result = enter(recording, path, json_object_get(j, "files"), folder);
	json_decref(j);
	if (recording >= 0)
		close(recording);
	return result;
}
