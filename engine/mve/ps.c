/*
 * mve ps: the user's sessions.  A folder whose monitor and server are both gone
 * is a leftover of a crash, and is cleared away.
 */
#include <limits.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "engine/mve/commands.h"
#include "engine/mve/show.h"
#include "engine/outside/kernel/folder.h"
#include "engine/outside/monitor/say.h"
#include "engine/outside/print/plain.h"
#include "engine/outside/print/text_json.h"

static const char help[] = "usage: mve ps [--json]\n\nLists the sessions of this user.\n";

struct listing {
	bool json;
	int columns;
	json_t *rows;
	int n;
};

#define COMMAND_LEAST	10	/* columns, however narrow the terminal is */

/* A terminal's columns; INT_MAX where none is. */
static int columns_read(void)
{
	struct winsize size = { 0 };

	if (!isatty(STDOUT_FILENO))
		return INT_MAX;
	return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) || !size.ws_col ? 80 : size.ws_col;
}

/* The rest of the line; dots where it is not all. */
static void command_print(const char *command, int room)
{
	if (room < COMMAND_LEAST)
		room = COMMAND_LEAST;
	if (strlen(command) <= (size_t)room)
		puts(command);
	else
		printf("%.*s...\n", room - 3, command);
}

static void row_show(struct session *s, void *arg)
{
	struct listing *l = arg;
	enum session_state state = session_state(s);
	int used;
	const char *word = state == SESSION_RUNNING ? "running" : "unwatched";

	if (state == SESSION_GONE) {
		session_sweep(s->name);
		return;
	}
	if (l->json) {
		json_array_append_new(l->rows,
				      json_pack("{s:s, s:s, s:i, s:i, s:s, s:I, s:o, s:o}", "name",
						s->name, "state", word, "server", (int)s->server,
						"monitor", (int)s->monitor, "tier", s->tier,
						"started", (json_int_t)s->started, "command",
						text_json(s->command), "argv",
						session_words(s)));
		return;
	}
	if (!l->n++)
		printf("%-20s %-10s %7s %6s %8s  %s\n", "NAME", "STATE", "SERVER", "TIER",
		       "SECONDS", "COMMAND");
	used = printf("%-20s %-10s %7d %6s %8ld  ", s->name, word, s->server, s->tier,
		      (long)(time(NULL) - s->started));
	command_print(plain(s->command), l->columns > used ? l->columns - used : 0);
}

int cmd_ps(int argc, char **argv)
{
	struct look l = look_take(argc, argv, "j", help);
	struct listing list = { .json = l.json, .rows = json_array(), .columns = columns_read() };
	int result;

	if (l.code)
		return l.code;
	result = session_each(row_show, &list);
	if (result) {
		say_error("XDG_RUNTIME_DIR names the folder that sessions live in",
			  "cannot look at the sessions: %s",
			  folder_why(-result));
		return EXIT_SYSTEM;
	}
	if (l.json)
		return show_json(list.rows);
	if (!list.n)
		puts("no sessions");
	return EXIT_OK;
}
