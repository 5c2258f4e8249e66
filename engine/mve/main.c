/*
 * mve: a multi-version execution engine.  This file is the table of commands.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/mve/commands.h"
#include "engine/outside/monitor/say.h"
#include "engine/outside/start/start.h"

struct command {
	const char *name, *use, *what;
	int (*run)(int argc, char **argv);
};

static const struct command commands[] = {
	{ "run", "[-n NAME] [-f 'CMD...']... -- CMD...",
	  "run a program with every call held, and followers beside it", cmd_run },
	{ "trace", "[-o FILE] [--tier=...] -- CMD...", "print each call as it is made", cmd_trace },
	{ "record", "NAME DIR | --stop", "record a session that runs; or end that", cmd_record },
	{ "replay", "DIR [-- CMD...]", "run a recording again, and compare it", cmd_replay },
	{ "bisect", "DIR -- BUILD...", "which of some builds differs first from it", cmd_bisect },
	{ "go", "NAME EVENT|end", "a replay that stands goes on", cmd_go },
	{ "log", "DIR [show|connections|export|verify|pack]",
	  "what is in a recording", cmd_log },
	{ "ps", "[--json]", "list the sessions", cmd_ps },
	{ "status", "NAME [--json]", "what a session's calls were and how held", cmd_status },
	{ "top", "NAME [--interval S] [--once]", "a session on the terminal, as it runs", cmd_top },
	{ "report", "NAME [N] [--list] [--json]", "why a follower was dropped: both sides",
	  cmd_report },
	{ "audit", "NAME [--seconds N] [--json]", "the kernel's count beside ours", cmd_audit },
	{ "follow", "NAME [--name FOLLOWER] [-- CMD...]", "add a follower as it runs",
	  cmd_follow },
	{ "attach", "[-n NAME] PID", "a session around a server that runs", cmd_attach },
	{ "detach", "NAME", "the server goes on without mve, as it was", cmd_detach },
	{ "drop", "NAME FOLLOWER", "end a follower", cmd_drop },
	{ "compare", "NAME FOLLOWER", "words of memory in which a follower differs", cmd_compare },
	{ "promote", "NAME [FOLLOWER] [--keep] [--wait] [--dry-run]",
	  "a follower takes the leader's place", cmd_promote },
	{ "update", "NAME --to NEW.so [--xform FILE] [--code]",
	  "a prepared server's next build, in a twin", cmd_update },
	{ "commit", "NAME", "the new version leads for good", cmd_commit },
	{ "abort", "NAME", "back to the old version", cmd_abort },
	{ "rules", "NAME FOLLOWER FILE", "other rules for a follower, as it runs", cmd_rules },
	{ "stop", "NAME [--kill]", "end a session's server", cmd_stop },
	{ "doctor", "[--json]", "what mve needs of this machine", cmd_doctor },
};
#define COMMANDS (sizeof(commands) / sizeof(commands[0]))

static void usage(FILE *to)
{
	fputs("usage: mve COMMAND ...\n\n", to);
	for (size_t i = 0; i < COMMANDS; i++)
		fprintf(to, "  mve %-7s %s\n              %s\n", commands[i].name, commands[i].use,
			commands[i].what);
	fputs("\nmve COMMAND --help says more.\n", to);
}

static const struct command *command_find(const char *name)
{
	for (size_t i = 0; i < COMMANDS; i++)
		if (!strcmp(name, commands[i].name))
			return &commands[i];
	say_error("mve --help lists the commands", "unknown command: %s", name);
	return NULL;
}

/* `mve help`, `mve help run`: the latter is `mve run --help`. */
static int help(int argc, char **argv)
{
	char *ask[] = { argv[1], "--help", NULL };
	const struct command *c;

	if (argc < 2) {
		usage(stdout);
		return EXIT_OK;
	}
	c = command_find(argv[1]);
	return c ? c->run(2, ask) : EXIT_USE;
}

static bool is_one_of(const char *word, const char *a, const char *b, const char *c)
{
	return !strcmp(word, a) || !strcmp(word, b) || !strcmp(word, c);
}

/* What could not be printed is no answer; a reader that has gone wants none. */
static void printed(void)
{
	bool cut = ferror(stdout);
	int error = fflush(stdout) ? errno : cut ? EIO : 0;

	if (!error || error == EPIPE)
		return;
	say_error("check where it leads, and the disk", "cannot print: standard output: %s",
		  strerror(error));
	_exit(EXIT_SYSTEM);
}

int main(int argc, char **argv)
{
	static char room[1 << 16];
	const struct command *c;

	start_keep_first();
	/* No help is longer: why it cannot be printed is known in the end. */
	if (!isatty(STDOUT_FILENO))
		setvbuf(stdout, room, _IOFBF, sizeof(room));
	atexit(printed);
	if (argc < 2) {
		usage(stderr);
		return EXIT_USE;
	}
	if (is_one_of(argv[1], "help", "--help", "-h"))
		return help(argc - 1, argv + 1);
	if (is_one_of(argv[1], "version", "--version", "-V")) {
		puts("mve 0.1");
		return EXIT_OK;
	}
	c = command_find(argv[1]);
	return c ? c->run(argc - 1, argv + 1) : EXIT_USE;
}
