/*
 * Whether a folder and all that is in it is ours: nobody else can have written it, or can.  Root's
 * is as good, since root could anyway.  What a link names is looked at, and not the link.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/core/must.h"
#include "engine/outside/log/ours.h"

#define AS_FOLDER	(O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
#define DEPTH_MAX	8	/* folders in one another, each open */

static bool all_ours(int at, const char *name, unsigned depth, struct foreign *f);

static bool is_ours(const struct stat *st, struct foreign *f)
{
	if (st->st_uid && st->st_uid != geteuid())
		snprintf(f->why, sizeof(f->why), "it belongs to another user (%u)", st->st_uid);
	else if (st->st_mode & (S_IWGRP | S_IWOTH))
		snprintf(f->why, sizeof(f->why), "other users can write it (mode %04o)",
			 st->st_mode & 07777);
	return !f->why[0];
}

static bool below_ours(int folder, unsigned depth, struct foreign *f)
{
	DIR *dir = fdopendir(folder);
	bool ours = dir;

	for (struct dirent *d; ours && (d = readdir(dir));)
		ours = !strcmp(d->d_name, ".") || !strcmp(d->d_name, "..") ||
		       all_ours(folder, d->d_name, depth + 1, f);
	if (dir)
		closedir(dir);
	else
		close(folder);
	return ours;
}

static bool all_ours(int at, const char *name, unsigned depth, struct foreign *f)
{
	struct stat st;
	int folder;

	MUST(at >= 0 && !f->why[0]);
	snprintf(f->name, sizeof(f->name), "%s", name);
	if (fstatat(at, name, &st, 0) < 0)
		return errno == ENOENT;		/* it has gone meanwhile, or leads nowhere */
	if (!is_ours(&st, f) || !S_ISDIR(st.st_mode))
		return !f->why[0];
	errno = EMFILE;
	folder = depth < DEPTH_MAX ? openat(at, name, AS_FOLDER) : -1;
	if (folder >= 0)
		return below_ours(folder, depth, f);
	if (errno == ELOOP)			/* a link: what it leads to is not in it */
		return true;
	snprintf(f->why, sizeof(f->why), "%s", strerror(errno));
	return false;
}

bool folder_is_ours(int folder, struct foreign *f)
{
	*f = (struct foreign){ .why = "" };
	return all_ours(folder, ".", 0, f);
}
