/*
 * The programs of a session, before any of them runs: they are found, and have what is asked of
 * them.
 */
#include <errno.h>
#include <fcntl.h>
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

/* A recorded one is known by its path; where another is given it need not be there. */
static const char *program_named(const struct run_options *o, unsigned i)
{
	const struct follower_options *f = i ? &o->follower[i - 1] : &o->follower[0];
	char *const *argv = i || o->replay ? f->argv : o->argv;

	return o->replay && argv == o->argv ? o->replay->program.path : argv[0];
}

/* All programs are looked at before any of them runs. */
int programs_find(struct monitor *m)
{
	const struct run_options *o = m->options;
	int code = 0;

	MUST(o->followers < VERSIONS);

	for (unsigned i = 0; !code && i <= o->followers; i++) {
		m->version[i].argv = i ? o->follower[i - 1].argv : o->argv;
		code = program_find(program_named(o, i), &m->version[i].path);
		code = code || !i ? code : program_follows(m->version[i].path, m->version[0].path);
	}
	for (const char *const *name = o->seam_function; !code && *name; name++)
		code = seam_find(m->version[0].path, *name);
	return code;
}
