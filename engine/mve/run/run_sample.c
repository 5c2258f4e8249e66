/*
 * --mark, --sample and --stateless on the command line of mve run.
 */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "engine/abi/table.h"
#include "engine/mve/run/run_sample.h"
#include "engine/outside/monitor/say.h"

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

/* Whether the program has it is seen when the program is known: programs_find. */
static int function_take(struct run_options *o, const char *name)
{
	const char **place = o->seam_function;

	if (!*name || *name == '-') {
		say_error("for example: --mark accept, or --mark processCommand",
			  "--mark without a call, a function or a path: '%s'", name);
		return EXIT_USE;
	}
	for (unsigned i = 0; i < SEAM_FUNCTIONS; i++, place++) {
		if (*place && strcmp(*place, name))
			continue;
		*place = name;
		return 0;
	}
	say_error("a request has one beginning", "too many functions for --mark: at most %d",
		  SEAM_FUNCTIONS);
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
	if (!strcmp(text, "recv"))
		text = "recvfrom";	/* as the kernel has it */
	if (call_number(text) < 0)
		return function_take(o, text);
	if (!is_told(text)) {
		say_error("a call that is told: accept or epoll_wait, say",
			  "nothing to begin a request with: %s", text);
		return EXIT_USE;
	}
	for (unsigned i = 0; i < sizeof(families) / sizeof(families[0]); i++)
		if (!strcmp(text, families[i][0]))
			for (unsigned k = 1; !code && k < 3 && families[i][k]; k++)
				code = call_add(o, families[i][k]);
	return code ? code : call_add(o, text);
}

/* --- sampling ------------------------------------------------------------------ */

#define WINDOW_MAX	(1u << 30)

/* `N%`, and nothing behind it but `end`; where that is, or NULL. */
static const char *share_read(const char *text, uint32_t *share)
{
	char *end;
	double percent = strspn(text, "0123456789.") ? strtod(text, &end) : 0;

	if (!percent || end != text + strspn(text, "0123456789.") || *end != '%' ||
	    !(percent > 0 && percent <= 100))
		return NULL;
	*share = (uint32_t)(percent * SHARE_ALL / 100 + 0.5);
	return *share ? end + 1 : NULL;
}

static bool window_read(const char *text, struct sampling *s)
{
	const char *at = share_read(text, &s->share);
	char *end;
	unsigned long n = at && *at == '/' ? strtoul(at + 1, &end, 10) : 0;

	s->window = (uint32_t)n;
	return n && n <= WINDOW_MAX && end != at + 1 && !*end;
}

static bool sample_read(const char *text, struct sampling *s)
{
	const char *end = NULL;

	if (!strcmp(text, "auto"))
		text = "auto:3%";
	if (!strncmp(text, "auto:", 5)) {
		s->how = SAMPLE_AUTO;
		end = share_read(text + 5, &s->share);
		return end && !*end;
	}
	if (!strncmp(text, "window:", 7)) {
		s->how = SAMPLE_WINDOW;
		return window_read(text + 7, s);
	}
	s->how = strncmp(text, "conn:", 5) ? SAMPLE_SHARE : SAMPLE_PEER;
	end = share_read(s->how == SAMPLE_PEER ? text + 5 : text, &s->share);
	return end && !*end;
}

int sample_take(struct run_options *o, const char *text)
{
	if (sample_read(text, &o->sampling))
		return 0;
	say_error("10%, conn:10%, window:10%/32768, auto or auto:10%",
		  "not a value of --sample: %s", text);
	return EXIT_USE;
}

static int sample_complete(struct run_options *o)
{
	const struct sampling *s = &o->sampling;

	if (s->how != SAMPLE_ALL && !s->stateless) {
		say_error("--stateless says that no connection changes what another gets; "
			  "else all must be followed",
			  "--sample without --stateless: a follower that misses a part would "
			  "drift");
		return EXIT_USE;
	}
	if (s->how != SAMPLE_ALL && !o->followers && !options_joinable(o)) {
		say_error("for example: mve run --stateless --sample 10% -f same -- ./server",
			  "--sample without a follower: nobody is told of connections");
		return EXIT_USE;
	}
	for (unsigned i = 0; i < o->followers; i++)
		if (o->follower[i].again && !options_joinable(o)) {
			say_error("for example: mve run --stateless --mark epoll_wait -f same "
				  "--again",
				  "--again without --stateless and --mark: a follower cannot come "
				  "late");
			return EXIT_USE;
		}
	if (s->how == SAMPLE_AUTO && o->when_full == WHEN_FULL_BLOCK) {
		say_error("leave one of them out",
			  "--sample auto with --when-full block: the leader never waits with auto");
		return EXIT_USE;
	}
	if (s->how == SAMPLE_AUTO)
		o->full_ms = 0;
	if (s->stateless && o->followers > FOLLOWERS_MAX - 1) {
		say_error("one place is kept for what the leader's start was",
			  "too many followers: at most %d with --stateless", FOLLOWERS_MAX - 1);
		return EXIT_USE;
	}
	return 0;
}

int marks_complete(struct run_options *o)
{
	int code = sample_complete(o);

	if (code || !options_seams(o) || o->followers || o->sampling.stateless || o->brings)
		return code;
	say_error("for example: mve run --mark accept -f same -- ./server",
		  "--mark without a follower: nobody is told of requests");
	return EXIT_USE;
}
