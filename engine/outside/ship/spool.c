/* What is removed are files by a segment's name, nothing else. */
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#include "engine/abi/log.h"
#include "engine/core/must.h"
#include "engine/outside/kernel/folder.h"
#include "engine/outside/ship/spool.h"

void spool_drop(int folder, uint32_t *from, uint32_t before)
{
	char name[32];

	MUST(folder >= 0);
	for (; *from < before; ++*from) {
		snprintf(name, sizeof(name), LOG_NAME, *from);
		unlinkat(folder, name, 0);
	}
}

static void segments_remove(int folder)
{
	int copy = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = copy < 0 ? NULL : fdopendir(copy);
	const struct dirent *e;
	unsigned number;
	char name[32];

	while (dir && (e = readdir(dir))) {
		if (sscanf(e->d_name, "%6u.log", &number) != 1)
			continue;
		snprintf(name, sizeof(name), LOG_NAME, number);
		if (!strcmp(name, e->d_name))
			unlinkat(folder, name, 0);
	}
	if (dir)
		closedir(dir);
}

void spool_remove(int folder)
{
	char link[64], path[PATH_MAX];
	ssize_t n;

	segments_remove(folder);
	snprintf(link, sizeof(link), "/proc/self/fd/%d", folder);
	n = readlink(link, path, sizeof(path) - 1);
	if (n > 0) {
		path[n] = 0;
		rmdir(path);
	}
}

static int spool_folder(void)
{
	int base = folder_base("XDG_CACHE_HOME", ".cache", FOLDER_MAKE), folder;

	if (base < 0)
		return base;
	folder = folder_open(base, "spool", FOLDER_MAKE | FOLDER_CLOSED);
	close(base);
	return folder;
}

int spool_name(char *path, size_t size)
{
	static unsigned made;
	char of[PATH_MAX];
	int folder = spool_folder();

	if (folder < 0)
		return folder;
	folder_path(folder, of, sizeof(of));
	close(folder);
	if (snprintf(path, size, "%s/%d-%lu-%u", of, getpid(), (unsigned long)time(NULL),
		     made++) >= (int)size)
		return -ENAMETOOLONG;
	return 0;
}
