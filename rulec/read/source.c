/*
 * Files: reading sources and what they use, and writing results so that nobody
 * ever sees half of one.
 *
 * A file is loaded once, however often it is used; a file's number is its place
 * in the order of loading, which is also the order of its rules: those of the
 * file itself before those of the files it uses, in the order it names them.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "rulec/rulec.h"

#define READ_MAX	(64 << 20)	/* more is no source, and no object */

char *file_read(struct arena *arena, const char *path, size_t *len)
{
	FILE *file = fopen(path, "re");
	struct buffer b = { 0 };
	char part[4096], *text = NULL;
	size_t n;

	if (!file)
		return NULL;
	buffer_add(&b, "", 0);
	while (b.len <= READ_MAX && (n = fread(part, 1, sizeof(part), file)) > 0)
		buffer_add(&b, part, n);
	if (!ferror(file)) {
		text = arena_copy(arena, b.at, b.len);
		*len = b.len;
	}
	fclose(file);
	free(b.at);
	return text;
}

static int write_all(int fd, const char *text, size_t len)
{
	while (len > 0) {
		ssize_t n = write(fd, text, len);

		if (n < 0)
			return -errno;
		text += n;
		len -= (size_t)n;
	}
	return 0;
}

/* A pipe, a terminal, /dev/null: written to; a file of ours in its place is not it. */
static bool is_special(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && !S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode);
}

static int special_write(const char *path, const char *text, size_t len)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC), err;

	if (fd < 0)
		return -errno;
	err = write_all(fd, text, len);
	if (close(fd) < 0 && !err)
		err = -errno;
	return err;
}

int file_write(const char *path, const char *text, size_t len)
{
	char temporary[PATH_MAX];
	int fd, err;

	if (!strcmp(path, "-"))
		return write_all(STDOUT_FILENO, text, len);
	if (is_special(path))
		return special_write(path, text, len);
	if (snprintf(temporary, sizeof(temporary), "%s.XXXXXX", path) >= (int)sizeof(temporary))
		return -ENAMETOOLONG;
	fd = mkostemp(temporary, O_CLOEXEC);
	if (fd < 0)
		return -errno;
	err = write_all(fd, text, len);
	if (!err && fchmod(fd, 0644) < 0)
		err = -errno;
	if (close(fd) < 0 && !err)
		err = -errno;
	if (!err && rename(temporary, path) < 0)
		err = -errno;
	if (err)
		unlink(temporary);
	return err;
}

const char *path_folder(struct arena *arena, const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? arena_copy(arena, path, (size_t)(slash - path) + 1) : "";
}

/* In the tree this program is build/rulec; installed, it is PREFIX/bin/rulec. */
const char *path_library(struct arena *arena)
{
	static const char *const places[] = { "../rules/lib/", "../share/mve/rules/lib/" };
	const char *set = getenv("MVE_RULES_LIB");
	char self[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

	if (set)
		return arena_format(arena, "%s/", set);
	self[n < 0 ? 0 : n] = 0;
	for (unsigned i = 0; i < 2; i++) {
		char *path = arena_format(arena, "%s%s", path_folder(arena, self), places[i]);

		if (access(path, R_OK) == 0)
			return path;
	}
	return "rules/lib/";
}

static bool same_file(const char *a, const char *b)
{
	struct stat x, y;

	if (stat(a, &x) < 0 || stat(b, &y) < 0)
		return !strcmp(a, b);
	return x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

static bool loaded(const struct unit *u, const char *path)
{
	for (unsigned i = 0; i < u->nsources; i++)
		if (same_file(u->sources[i].path, path))
			return true;
	return false;
}

/* A device or a pipe would be read for ever. */
static bool is_file(const char *path)
{
	struct stat st;

	if (stat(path, &st) == 0 && !S_ISREG(st.st_mode)) {
		errno = EINVAL;
		return false;
	}
	return true;
}

static void use(struct unit *u, const struct source *from, const struct item *item)
{
	const char *name = arena_copy(u->arena, item->path.at, item->path.len);
	const char *path = arena_format(u->arena, "%s%s", *name == '/' ? "" :
		path_folder(u->arena, from->path), name);
	struct diag *d;

	if (*name != '/' && access(path, R_OK) < 0)
		path = arena_format(u->arena, "%s%s", path_library(u->arena), name);
	if (loaded(u, path))
		return;
	if (u->nsources == SOURCES_MAX) {
		diag_error(u, item->loc, "more than %d files", SOURCES_MAX);
	} else if (!is_file(path) || !source_load(u, path)) {
		d = diag_error(u, item->loc, "cannot read `%s`: %s", name, strerror(errno));
		diag_hint(u, d, "it is looked for beside this file and in %s",
			path_library(u->arena));
	}
}

void source_load_text(struct unit *u, const char *path, const char *text, size_t len)
{
	unsigned file = u->nsources++;
	struct source *source = &u->sources[file];

	*source = (struct source){ .path = path, .text = text, .len = len };
	parse_source(u, file);
	for (const struct item *i = source->items; i; i = i->next)
		if (i->kind == ITEM_USE)
			use(u, source, i);
}

bool source_load(struct unit *u, const char *path)
{
	size_t len;
	struct stat st;
	char *text;

	if (stat(path, &st) == 0 && S_ISDIR(st.st_mode)) {
		errno = EISDIR;
		return false;
	}
	text = file_read(u->arena, path, &len);
	if (!text)
		return false;
	source_load_text(u, arena_copy(u->arena, path, strlen(path)), text, len);
	return true;
}
