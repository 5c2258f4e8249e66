/*
 * mve go: a replay that stands goes on to another event.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/mve/commands.h"
#include "engine/mve/show.h"
#include "engine/outside/control/control.h"
#include "engine/outside/monitor/say.h"

#define LOOK_US	20000

static const char help[] =
	"usage: mve go NAME EVENT|end\n"
	"\n"
	"A replay (mve replay --until) goes on to the event of that number, as mve log\n"
	"DIR show has it, and stands there; or to the end of the recording.  Waits until\n"
	"it stands; the exit status is 1 if it does not come there.\n";

static int wrong(const char *text)
{
	say_error("mve log DIR show has the numbers of events", "not an event: %s", text);
	return EXIT_USE;
}

/* It stands, or is over: then nobody answers. */
static int stand_wait(const struct session *s)
{
	for (;; usleep(LOOK_US)) {
		json_t *all = control_ask(s, "status"), *r = json_object_get(all, "replay");

		if (!r) {
			say_error("mve report NAME shows what has become of it",
				  "it has ended before: %s", s->name);
			json_decref(all);
			return EXIT_NO;
		}
		if (json_is_true(json_object_get(r, "stands"))) {
			printf("stands at event %lld: pid %lld, thread %lld\n",
			       show_number(r, "event"), show_number(r, "pid"),
			       show_number(r, "tid"));
			json_decref(all);
			return EXIT_OK;
		}
		json_decref(all);
	}
}

int cmd_go(int argc, char **argv)
{
	struct look l = look_take(argc, argv, "nf?", help);
	struct session s;
	uint64_t event = 0;
	int code = l.code;

	if (!code && !l.follower)
		code = wrong("none is given");
	else if (!code && strcmp(l.follower, "end") && !count_take(l.follower, &event))
		code = wrong(l.follower);
	if (!code)
		code = look_session(&l, &s);
	if (code)
		return code;
	code = show_done(control_ask_json(&s, json_pack("{s:s, s:I}", "do", "go", "event",
							(json_int_t)event), -1),
			 "go on", l.name);
	return code || !event ? code : stand_wait(&s);
}
