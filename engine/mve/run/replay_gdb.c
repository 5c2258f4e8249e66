/*
 * mve replay --gdb: becomes gdb, with the commands of gdb.py, which begins the replay.
 */
#include <errno.h>
#include <jansson.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "engine/core/must.h"
#include "engine/mve/run/replay_gdb.h"
#include "engine/outside/monitor/say.h"
#include "engine/outside/print/text_json.h"

/* The commands' text is in this program. */
__asm__(".section .rodata\n"
	"gdb_commands:\n"
	".incbin \"engine/mve/run/gdb.py\"\n"
	"gdb_commands_end:\n"
	".previous");
extern const char gdb_commands[], gdb_commands_end[];

#define EXECUTE	"python exec(compile(open('/proc/self/fd/%d').read(), 'mve-gdb.py', 'exec'))"

static json_t *list_of(char *const *words, int n)
{
	json_t *list = json_array();

	for (int i = 0; i < n; i++)
		json_array_append_new(list, text_json(words[i]));
	return list;
}

/* Options that are handed on: not the session's name, nor what gdb.py sees to itself. */
static int options_left(char **argv, int n, char **left)
{
	int kept = 0;

	for (int i = 0; i < n; i++) {
		bool value = !strcmp(argv[i], "-n") || !strcmp(argv[i], "--name") ||
			     !strcmp(argv[i], "--until");

		if (value)
			i++;
		else if (strncmp(argv[i], "-n", 2) && strncmp(argv[i], "--name=", 7) &&
			 strncmp(argv[i], "--until=", 8) && strcmp(argv[i], "--gdb") &&
			 strcmp(argv[i], "--"))
			left[kept++] = argv[i];
	}
	return kept;
}

static char *ask_make(const struct gdb_want *w)
{
	char **left = calloc((size_t)w->n_options + 1, sizeof(*left));
	char self[PATH_MAX] = "", *text;
	json_t *ask;

	MUST(left);
	if (readlink("/proc/self/exe", self, sizeof(self) - 1) < 0)
		return NULL;
	ask = json_pack("{s:s, s:s, s:s, s:o, s:o}", "mve", self, "folder", w->folder, "until",
			w->until ? w->until : "1", "options",
			list_of(left, options_left(w->options, w->n_options, left)), "command",
			list_of(w->command, w->n_command));
	free(left);
	text = ask ? json_dumps(ask, 0) : NULL;
	json_decref(ask);
	return text;
}

int replay_gdb(const struct gdb_want *w)
{
	size_t len = (size_t)(gdb_commands_end - gdb_commands);
	int fd = memfd_create("mve-gdb", 0);	/* it is for what we become */
	char *ask = ask_make(w), execute[128];

	if (!ask || fd < 0 || write(fd, gdb_commands, len) != (ssize_t)len ||
	    setenv("MVE_REPLAY", ask, 1)) {
		say_error(NULL, "cannot hand its commands to gdb: %s", strerror(errno));
		return EXIT_SYSTEM;
	}
	snprintf(execute, sizeof(execute), EXECUTE, fd);
	lseek(fd, 0, SEEK_SET);
	execlp("gdb", "gdb", "-q", "-ex", execute, NULL);
	say_error("is it installed, and on the PATH?", "cannot run gdb: %s", strerror(errno));
	return EXIT_NOT_FOUND;
}
