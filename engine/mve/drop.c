/*
 * mve drop: a follower is followed no more.
 */
#include "engine/mve/commands.h"
#include "engine/mve/show.h"
#include "engine/outside/control/control.h"
#include "engine/outside/monitor/say.h"

static const char help[] =
	"usage: mve drop NAME FOLLOWER\n"
	"\n"
	"Ends one follower of the session; the leader and the others go on.\n";

int cmd_drop(int argc, char **argv)
{
	struct look l = look_take(argc, argv, "nf", help);
	struct session s;
	int code = l.code ? l.code : look_session(&l, &s);

	if (code)
		return code;
	return show_done(control_ask_json(&s, json_pack("{s:s, s:s}", "do", "drop", "follower",
							l.follower), -1),
			 "drop", l.follower);
}
