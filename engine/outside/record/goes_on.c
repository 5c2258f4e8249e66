/*
 * A recording ends where another version comes to lead: lanes, and all that is told from then on,
 * are that one's.  What goes on is another recording, in a folder beside the first (DIR.2, DIR.3,
 * and so on), which begins with an image of who leads now, as that of any session that runs
 * (foam/record_late.c).  What was done between the two is in neither.
 */
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "engine/core/must.h"
#include "engine/outside/foam/record_late.h"
#include "engine/outside/monitor/say.h"
#include "engine/outside/monitor/versions.h"
#include "engine/outside/record/goes_on.h"
#include "engine/outside/record/recorder.h"

#define AGAIN_MS	1000	/* what is against an image may have passed */

static struct {
	char first[PATH_MAX];	/* the folder of the first of them */
	char path[PATH_MAX + 16];	/* of the last */
	uint64_t next_ms;
	bool off;		/* none can be had, and that was said */
} series;

/* The next folder that is not there. */
static void path_next(void)
{
	char is[PATH_MAX];

	recorder_folder(is, sizeof(is));
	if (strcmp(is, series.path))
		strcpy(series.first, is);
	for (unsigned n = 2; n; n++) {
		snprintf(series.path, sizeof(series.path), "%s.%u", series.first, n);
		if (access(series.path, F_OK))
			return;
	}
}

static void again(struct monitor *m)
{
	struct run_options like = *m->options;
	uint64_t stood_us = 0;
	bool passes = false;
	char why[WHY_MAX];

	path_next();
	like.record = series.path;
	if (record_begin(m, &like, &stood_us, why, sizeof(why), &passes)) {
		say_error(NULL, "%s: recorded again, to %s; the server stood for %.1f ms",
			  m->session.name, series.path, (double)stood_us / 1000);
		return;
	}
	series.next_ms = now_ms() + AGAIN_MS;
	series.off = !passes;
	if (series.off)
		say_error("docs/recording.md says which servers have an image",
			  "%s: it is not recorded any more: %s", m->session.name, why);
}

/* The recorder may be over before the takeover is: nobody leads yet who could be copied. */
static bool is_led(struct monitor *m)
{
	return !leading(m)->gone && version_alive(leading(m));
}

void record_goes_on_look(struct monitor *m)
{
	series.off &= !recorder_is();
	if (recorder_left() && !series.off && !m->options->ship && !m->finishing && is_led(m) &&
	    now_ms() >= series.next_ms)
		again(m);
}
