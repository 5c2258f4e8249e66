/*
 * mve attach and mve detach: a session around a server that runs already, and back.
 */
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/mve/commands.h"
#include "engine/mve/show.h"
#include "engine/outside/attach/attach.h"
#include "engine/outside/control/control.h"
#include "engine/outside/monitor/monitor.h"
#include "engine/outside/monitor/say.h"

static const char attach_help[] =
	"usage: mve attach [-n NAME] [--audit] [--status FILE] PID\n"
	"\n"
	"A session around a server that runs already, with its children: from now on\n"
	"every system call of it is held, as if mve run had begun it.  The server\n"
	"stands still for some milliseconds; the command says how long.  It stays, as\n"
	"mve run does, until the server ends or mve detach is said; ^C is that, too.\n"
	"\n"
	"  -n, --name NAME     the session's name (default: made from its command)\n"
	"  --audit             count in the kernel too (needs CAP_BPF); see mve audit\n"
	"  --status FILE       write the final status there, as JSON\n";

static const char detach_help[] =
	"usage: mve detach NAME\n"
	"\n"
	"Ends the session of a server that mve attach has come to; the server goes on,\n"
	"with the code, the signals' actions and the memory that it would have had.\n";

enum { OPT_AUDIT = 256, OPT_STATUS };

static const struct option options[] = {
	{ "name", required_argument, NULL, 'n' },
	{ "audit", no_argument, NULL, OPT_AUDIT },
	{ "status", required_argument, NULL, OPT_STATUS },
	{ "help", no_argument, NULL, 'h' },
	{ 0 },
};

/* Its words, for people and for the session's name; never freed. */
static char **words_of(pid_t pid)
{
	static char text[65536];
	static char *word[1024];
	size_t n = 0, words = 0;
	char path[32];
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/cmdline", pid);
	f = fopen(path, "re");
	n = f ? fread(text, 1, sizeof(text) - 1, f) : 0;
	if (f)
		fclose(f);
	for (char *at = text; at < text + n && words < 1023; at += strlen(at) + 1)
		word[words++] = at;
	if (!words)
		word[words++] = strcpy(text, "?");
	return word;
}

static pid_t pid_take(const char *text)
{
	uint64_t pid;

	if (count_take(text, &pid) && pid < 1 << 22)
		return (pid_t)pid;
	say_error("mve attach wants the number of a process", "not a pid: %s", text);
	return 0;
}

static int attach_wrong(const char *what, const char *text)
{
	say_error("mve attach --help lists the options", "%s: %s", what, text);
	return EXIT_USE;
}

/* 0, or an exit code; -1: help was wanted. */
static int options_take(struct run_options *o, int argc, char **argv)
{
	int opt;

	opterr = 0;
	while ((opt = getopt_long(argc, argv, ":hn:", options, NULL)) != -1) {
		if (value_forgotten(argv) || opt == ':')
			return attach_wrong("option needs a value", argv[optind - 1]);
		if (opt == 'h')
			return -1;
		if (opt == 'n')
			o->name = optarg;
		else if (opt == OPT_AUDIT)
			o->audit = true;
		else if (opt == OPT_STATUS)
			o->status_file = optarg;
		else
			return attach_wrong("unknown option", argv[optind - 1]);
	}
	return 0;
}

int cmd_attach(int argc, char **argv)
{
	static struct run_options o = SERVER_OPTIONS;
	int code = options_take(&o, argc, argv);

	if (code < 0) {
		fputs(attach_help, stdout);
		return EXIT_OK;
	}
	if (code)
		return code;
	if (argc - optind != 1)
		return attach_wrong("one process is to be given", "for example mve attach 4711");
	o.attach = pid_take(argv[optind]);
	if (!o.attach)
		return EXIT_USE;
	if (!attach_check(o.attach))
		return EXIT_NO;
	o.argv = words_of(o.attach);
	return monitor_run(&o);
}

static int show_left(json_t *reply, const char *name)
{
	const char *hint = json_string_value(json_object_get(reply, "hint"));
	const char *error = json_string_value(json_object_get(reply, "error"));
	int code = reply && !error ? EXIT_OK : EXIT_NO;

	if (!code)
		printf("%s: the server stood for %.1f ms\n", name,
		       (double)show_number(reply, "stood_us") / 1000);
	else
		say_error(hint ? hint : "mve ps shows whether it is there",
			  "cannot detach: %s: %s", name,
			  error ? error : "the monitor does not answer");
	json_decref(reply);
	return code;
}

int cmd_detach(int argc, char **argv)
{
	struct look l = look_take(argc, argv, "n", detach_help);
	struct session s;
	int code = l.code ? l.code : look_session(&l, &s);

	if (code)
		return code;
	return show_left(control_ask_json(&s, json_pack("{s:s}", "do", "detach"), -1),
			 s.name);
}
