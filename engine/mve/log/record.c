/*
 * mve record: a session that is recorded is recorded no more.
 */
#include <string.h>

#include "engine/mve/commands.h"
#include "engine/mve/show.h"
#include "engine/outside/control/control.h"
#include "engine/outside/monitor/say.h"

static const char help[] =
	"usage: mve record NAME --stop\n"
	"\n"
	"Ends the session's recording (mve run --record); the session goes on.  What was\n"
	"written is whole, and replays up to there.  A recording begins with its session.\n";

/* Takes the option out of the words; false: it is not among them. */
static bool stop_take(int *argc, char **argv)
{
	for (int i = 1; i < *argc; i++)
		if (!strcmp(argv[i], "--stop")) {
			memmove(argv + i, argv + i + 1, (size_t)(*argc - i) * sizeof(*argv));
			--*argc;
			return true;
		}
	return false;
}

int cmd_record(int argc, char **argv)
{
	bool stop = stop_take(&argc, argv);
	struct look l = look_take(argc, argv, "n", help);
	struct session s;
	int code = l.code;

	if (!code && !stop) {
		say_error("begin it with the session: mve run --record DIR",
			  "a recording cannot begin in the middle: %s", l.name);
		return EXIT_USE;
	}
	code = code ? code : look_session(&l, &s);
	if (code)
		return code;
	return show_done(control_ask_json(&s, json_pack("{s:s}", "do", "record stop"), -1),
			 "end the recording of", l.name);
}
