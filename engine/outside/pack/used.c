/*
 * Which files are mapped.  It is looked when a process says that it has mapped code: a loader
 * opens libraries by itself, and nobody is told of that.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/core/must.h"
#include "engine/outside/kernel/folder.h"
#include "engine/outside/kernel/maps.h"
#include "engine/outside/monitor/say.h"
#include "engine/outside/pack/used.h"

/* Limit (recordings): files that mve log pack puts in. Beyond: what is beyond is not there. */
#define USED_MOST	65536

static char *paths[USED_MOST];
static size_t count;
static int file = -1;

static void path_note(const char *path)
{
	for (size_t i = count; i--;)
		if (!strcmp(paths[i], path))
			return;
	if (count == USED_MOST)
		return;
	paths[count] = strdup(path);
	MUST(paths[count]);
	count++;
}

void used_see(const struct monitor *m, pid_t pid)
{
	struct maps maps;

	if (!m->options->used)
		return;
	if (!maps_read(pid, &maps))
		for (size_t i = 0; i < maps.n; i++)
			if (maps.map[i].path[0] == '/' && maps.map[i].inode)
				path_note(maps.map[i].path);
	maps_free(&maps);
}

static int cannot(const char *path, int error)
{
	say_error("check the folder and its rights", "cannot write what was used: %s: %s", path,
		  strerror(error));
	return EXIT_SYSTEM;
}

int used_open(const char *path)
{
	MUST(file < 0);
	file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
	return file < 0 ? cannot(path, errno) : 0;
}

void used_write(const struct monitor *m)
{
	int result = 0;

	for (size_t i = 0; i < count && !result; i++)
		result = fd_write(file, &(struct folder_part){ paths[i], strlen(paths[i]) + 1 });
	if (result)
		cannot(m->options->used, -result);
}
