/*
 * --mark on the command line of mve run.
 */
#include <stdbool.h>
#include <string.h>

#include "engine/abi/table.h"
#include "engine/mve/run_sample.h"
#include "engine/outside/say.h"

/* A libc has one function for several calls: whoever names one means all. */
static const char *const families[][3] = {
	{ "accept", "accept4" },
	{ "epoll_wait", "epoll_pwait", "epoll_pwait2" },
	{ "poll", "ppoll" },
	{ "select", "pselect6" },
};

static int call_add(struct run_options *o, const char *name)
{
	struct seams *s = &o->seams;

	for (uint32_t i = 0; i < s->calls; i++)
		if (s->call[i] == call_number(name))
			return 0;
	if (s->calls == SEAM_CALLS) {
		say_error("a request has one beginning", "too many calls for --mark: at most %d",
			  SEAM_CALLS);
		return EXIT_USE;
	}
	s->call[s->calls++] = (uint16_t)call_number(name);
	return 0;
}

static int path_take(struct run_options *o, const char *path)
{
	if (strlen(path) < sizeof(o->seams.path) && !o->seams.path[0]) {
		strcpy(o->seams.path, path);
		return 0;
	}
	say_error("one path for all of the program, shorter than 256 letters",
		  "not a path for --mark: %s", path);
	return EXIT_USE;
}

/* One that is never told is no place in a stream. */
static bool is_told(const char *name)
{
	const struct call_desc *d = call_find(call_number(name));

	return d && d->class != CLASS_LOCAL && d->class != CLASS_SOFT && d->class != CLASS_LIFE;
}

int mark_take(struct run_options *o, const char *text)
{
	int code = 0;

	if (text[0] == '/')
		return path_take(o, text);
	if (call_number(text) < 0 || !is_told(text)) {
		say_error("a call that is told, accept or epoll_wait say, or a path",
			  "nothing to begin a request with: %s", text);
		return EXIT_USE;
	}
	for (unsigned i = 0; i < sizeof(families) / sizeof(families[0]); i++)
		if (!strcmp(text, families[i][0]))
			for (unsigned k = 1; !code && k < 3 && families[i][k]; k++)
				code = call_add(o, families[i][k]);
	return code ? code : call_add(o, text);
}

int marks_complete(const struct run_options *o)
{
	if ((!o->seams.calls && !o->seams.path[0]) || o->followers)
		return 0;
	say_error("for example: mve run --mark accept -f same -- ./server",
		  "--mark without a follower: nobody is told of requests");
	return EXIT_USE;
}
