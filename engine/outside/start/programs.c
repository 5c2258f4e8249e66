/*
 * The programs of a session, before any of them runs: they are found, and have what is asked of
 * them.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/core/must.h"
#include "engine/outside/log/feeder.h"
#include "engine/outside/monitor/say.h"
#include "engine/outside/patch/hook.h"
#include "engine/outside/start/start.h"

/* A function with which a request begins must be there. */
static int seam_find(const char *path, const char *name)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC), result;
	struct hook h = { 0 };

	result = fd < 0 ? -errno : hook_plan_function(fd, name, &h);
	if (fd >= 0)
		close(fd);
	if (result == -ENOEXEC)
		say_error("give the program that has it instead of the script",
			  "no function for --mark: %s: not a program with symbols: %s", name, path);
	else if (result == -ENODATA)
		say_error("mark a call (accept, epoll_wait), or take a build with its symbols",
			  "no function for --mark: %s in %s: it is stripped", name, path);
	else if (result)
		say_error("nm shows a program's functions; a call (accept, epoll_wait) or a path "
			  "is a mark, too",
			  "no function for --mark: %s in %s", name, path);
	else if (h.why)
		say_error("take another one near it", "cannot mark a function: %s in %s: %s", name,
			  path, h.why);
	return result || h.why ? EXIT_USE : 0;
}

/* Behind the folder it is meant from; the caller's to free. */
static char *path_in(const char *folder, const char *path)
{
	char *at = NULL;

	if (asprintf(&at, "%s/%s", folder, path) < 0)
		at = NULL;
	MUST(at);
	return at;
}

/*
 * A recorded one is known by its path from the recorded folder, and is started by the same words
 * there; where another is given it need not be there.  That one is meant from where we are, and
 * starts in the recorded folder, too.
 */
static int program_find_replayed(const struct replay *r, char *const *argv, char **path)
{
	const char *name = argv == r->program.argv ? r->program.path : argv[0];
	bool recorded = argv == r->program.argv;
	char folder[PATH_MAX], *found, *at;
	int code;

	if (name[0] == '/' || (!recorded && !strchr(name, '/')))
		return program_find(name, path);
	if (!recorded && !getcwd(folder, sizeof(folder)))
		return program_find(name, path);
	at = path_in(recorded ? r->program.folder : folder, name);
	code = program_find(at, &found);
	if (!code)
		*path = recorded ? strdup(name) : found;
	if (!code && recorded)
		free(found);
	free(at);
	return code;
}

static int program_take(const struct run_options *o, unsigned i, struct version *v)
{
	if (o->replay)
		return program_find_replayed(o->replay, i ? v->argv : o->follower[0].argv,
					     &v->path);
	return program_find(v->argv[0], &v->path);
}

/* All programs are looked at before any of them runs. */
int programs_find(struct monitor *m)
{
	const struct run_options *o = m->options;
	int code = 0;

	MUST(o->followers < VERSIONS);

	if (o->attach) {	/* it runs: nobody looks for it */
		m->version[0].argv = o->argv;
		m->version[0].path = o->argv[0];
		return 0;
	}
	for (unsigned i = 0; !code && i <= o->followers; i++) {
		m->version[i].argv = i ? o->follower[i - 1].argv : o->argv;
		code = program_take(o, i, &m->version[i]);
		code = code || !i ? code : program_follows(m->version[i].path, m->version[0].path);
	}
	for (const char *const *name = o->seam_function; !code && *name; name++)
		code = seam_find(m->version[0].path, *name);
	return code;
}
