/*
 * mve audit: the kernel's count of a session's calls beside the inside's.
 */
#include <string.h>
#include <unistd.h>

#include "engine/mve/commands.h"
#include "engine/mve/show.h"
#include "engine/outside/control/control.h"
#include "engine/outside/monitor/say.h"
#include "engine/outside/print/plain.h"

#define SECONDS	2

static const char help[] =
	"usage: mve audit NAME [--seconds N] [--json]\n"
	"\n"
	"Shows, call by call, what the kernel counted (an eBPF program: by where the\n"
	"call came from) and what mve counted.  A session that was started with\n"
	"mve run --audit is counted from its first call; any other is counted for\n"
	"N seconds from now (2).  `elsewhere` is what escaped mve; `answered` is what\n"
	"mve served itself; `again` is calls that a signal cut short and that the\n"
	"kernel may have made anew.\n"
	"Exit status 1: the counts differ or something came from elsewhere.\n";

static void table_show(const json_t *j)
{
	const json_t *row, *rows = json_object_get(j, "by_name");
	size_t i;

	printf("%-20s %10s %10s %9s %8s %6s %10s\n", "call", "gate", "net", "elsewhere", "answered",
	       "again", "mve");
	json_array_foreach(rows, i, row)
		printf("%-20.20s %10lld %10lld %9lld %8lld %6lld %10lld%s\n",
		       show_text(row, "name"), show_number(row, "gate"), show_number(row, "net"),
		       show_number(row, "elsewhere"), show_number(row, "answered"),
		       show_number(row, "again"), show_number(row, "inside"),
		       json_is_true(json_object_get(row, "agree")) ? "" : " *");
	printf("%-20s %10lld %10lld %9lld %8s %6s %10lld\n", "all", show_number(j, "gate"),
	       show_number(j, "net"), show_number(j, "elsewhere"), "", "",
	       show_number(j, "inside"));
	json_array_foreach(json_object_get(j, "strays"), i, row)
		printf("from elsewhere: %s at %s in pid %lld\n", show_text(row, "name"),
		       show_text(row, "address"), show_number(row, "pid"));
	printf("mve's own calls: %lld; before a program was held: %lld; 32-bit: %lld\n",
	       show_number(j, "own"), show_number(j, "before"), show_number(j, "compat"));
	puts(json_is_true(json_object_get(j, "agree")) ? "nothing was missed"
						       : "the counts DIFFER (rows marked *)");
}

static json_t *count(const struct session *s, long seconds)
{
	json_t *j = control_ask(s, "audit on");

	if (!j || json_object_get(j, "error"))
		return j;
	if (!json_is_true(json_object_get(j, "from_now")) && seconds < 0)
		return j;
	json_decref(j);
	sleep((unsigned)(seconds < 0 ? SECONDS : seconds));
	return control_ask(s, "audit");
}

int cmd_audit(int argc, char **argv)
{
	struct look l = look_take(argc, argv, "nsj", help);
	struct session s;
	json_t *j;
	int code = l.code ? l.code : look_session(&l, &s);

	if (code)
		return code;
	j = count(&s, l.seconds);
	if (!j || json_object_get(j, "error")) {
		say_error("the audit needs CAP_BPF and CAP_PERFMON: start mve as root",
			  "no audit: %s: %s", l.name, j ? show_text(j, "error") : "no answer");
		return EXIT_SYSTEM;
	}
	code = json_is_true(json_object_get(j, "agree")) ? EXIT_OK : EXIT_NO;
	if (l.json)
		return show_json(j), code;
	table_show(plain_json(j, false));
	json_decref(j);
	return code;
}
