/*
 * mve rules: a follower goes by other rules, as it runs.
 */
#include <unistd.h>

#include "engine/mve/commands.h"
#include "engine/mve/show.h"
#include "engine/outside/control/control.h"
#include "engine/outside/monitor/say.h"
#include "engine/outside/rules/rules_load.h"

static const char help[] =
	"usage: mve rules NAME FOLLOWER FILE\n"
	"\n"
	"FILE takes the place of the follower's rules, or is its first.  Each thread\n"
	"changes over when it is not in the middle of a rule.  Rules that rulec does not\n"
	"take change nothing.\n";

int cmd_rules(int argc, char **argv)
{
	struct look l = look_take(argc, argv, "nfF", help);
	struct session s;
	int object, code = l.code ? l.code : look_session(&l, &s);

	if (code)
		return code;
	if (!l.file) {
		say_error("a .rules file, or what rulec build made of it",
			  "mve rules: which file? give its path");
		return EXIT_USE;
	}
	code = rules_compile(l.file, &object);
	if (code)
		return code;
	code = show_done(control_ask_json(&s, json_pack("{s:s, s:s}", "do", "rules", "follower",
							l.follower), object),
			 "give rules to", l.follower);
	close(object);
	return code;
}
