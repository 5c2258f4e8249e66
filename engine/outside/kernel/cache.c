/*
 * The bound of the user's cache.  A file's time of change is when it was used last:
 * times of access are not kept everywhere.  Whoever uses a file that is removed
 * meanwhile has it open, or makes it anew.
 */
#include <dirent.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "engine/outside/kernel/cache.h"

#define KEPT_S	(30 * 24 * 3600)

void cache_use(int folder, const char *name)
{
	utimensat(folder, name, NULL, AT_SYMLINK_NOFOLLOW);
}

void cache_clean(int folder, const char *suffix)
{
	int again = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = again < 0 ? NULL : fdopendir(again);
	struct dirent *e;
	struct stat st;

	while (dir && (e = readdir(dir)))
		if (strstr(e->d_name, suffix) &&
		    !fstatat(dirfd(dir), e->d_name, &st, AT_SYMLINK_NOFOLLOW) &&
		    S_ISREG(st.st_mode) && st.st_mtime < time(NULL) - KEPT_S)
			unlinkat(dirfd(dir), e->d_name, 0);
	if (dir)
		closedir(dir);
}
