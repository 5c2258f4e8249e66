/*
 * mve report: the reports of a session's followers.  They are files, so they can
 * be read while the session runs and long after.
 */
#include <errno.h>
#include <limits.h>
#include <string.h>

#include "engine/mve/commands.h"
#include "engine/mve/show.h"
#include "engine/outside/kernel/folder.h"
#include "engine/outside/monitor/say.h"
#include "engine/outside/print/plain.h"
#include "engine/outside/report/report.h"

static const char help[] =
	"usage: mve report NAME [N] [--list] [--json]\n"
	"\n"
	"Shows the last report of the sessions of that name, or report N: what a\n"
	"follower did and what the leader had done, the first byte that differs, the\n"
	"follower's stack, and the last 16 calls of both.  --list shows a line for each;\n"
	"its verdict is `itself` where the follower is the leader's own program, which is\n"
	"no finding.\n"
	"\n"
	"Reports stay when the session ends, the last 100 of a name, as text and JSON in\n"
	"$XDG_STATE_HOME/mve/NAME (~/.local/state/mve/NAME).\n";

static void row_show(const json_t *r)
{
	char line[512];
	size_t n;

	snprintf(line, sizeof(line), "%4lld  %.19s  %-8s  %-9s  %s", show_number(r, "number"),
		 show_text(r, "time"), show_text(json_object_get(r, "follower"), "name"),
		 *show_text(r, "itself") ? "itself" : show_text(r, "verdict"),
		 show_text(r, "summary"));
	n = strlen(line);
	printf("%.*s%s\n", n > 80 ? 77 : 80, line, n > 80 ? "..." : "");
}

static json_t *all_load(const char *name, const unsigned *numbers, int n)
{
	json_t *all = json_array();

	for (int i = 0; i < n; i++) {
		json_t *r = report_load(name, numbers[i]);

		if (r)
			json_array_append_new(all, r);
	}
	return all;
}

static int list_show(const struct look *l, const unsigned *numbers, int n)
{
	json_t *r, *all = all_load(l->name, numbers, n);
	size_t i;

	if (l->json)
		return show_json(all);
	plain_json(all, false);
	printf("%4s  %-19s  %-8s  %-9s  %s\n", "N", "TIME", "FOLLOWER", "VERDICT", "WHAT");
	json_array_foreach(all, i, r)
		row_show(r);
	json_decref(all);
	return EXIT_OK;
}

static int one_show(const struct look *l, unsigned number)
{
	json_t *r = report_load(l->name, number);

	if (!r) {
		say_error("mve report NAME --list shows which there are", "no such report: %s: %u",
			  l->name, number);
		return EXIT_NO;
	}
	if (l->json)
		return show_json(r);
	report_text(stdout, r);
	json_decref(r);
	return EXIT_OK;
}

int cmd_report(int argc, char **argv)
{
	struct look l = look_take(argc, argv, "nlj#", help);
	unsigned *numbers = NULL;
	int code = l.code, n;

	if (code)
		return code;
	n = report_list(l.name, &numbers);
	if (n < 0 && n != -ENOENT && n != -EINVAL) {
		say_error("the folder must be yours, and closed to others",
			  "cannot read the reports: %s: %s", l.name, folder_why(-n));
		return EXIT_SYSTEM;
	}
	if (n <= 0) {
		say_error("a report is written when a follower is dropped", "no report: %s",
			  l.name);
		return EXIT_NO;
	}
	code = l.list ? list_show(&l, numbers, n)
		      : one_show(&l, l.number ? l.number : numbers[n - 1]);
	free(numbers);
	return code;
}
