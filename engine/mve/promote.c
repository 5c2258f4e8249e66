/*
 * mve promote: a follower takes the leader's place.
 */
#include "engine/mve/commands.h"
#include "engine/mve/show.h"
#include "engine/outside/control.h"
#include "engine/outside/say.h"

static const char help[] =
	"usage: mve promote NAME FOLLOWER [--keep]\n"
	"\n"
	"The follower takes over the leader's connections, files and timers and goes on\n"
	"in its place.  The old leader ends; with --keep it stays, as a follower.\n";

int cmd_promote(int argc, char **argv)
{
	struct look l = look_take(argc, argv, "nfK", help);
	struct session s;
	int code = l.code ? l.code : look_session(&l, &s);

	if (code)
		return code;
	return show_done(control_ask_json(&s, json_pack("{s:s, s:s, s:b}", "do", "promote",
							"follower", l.follower, "keep", l.keep), -1),
			 "promote", l.follower);
}
