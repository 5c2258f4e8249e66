/*
 * mve update: a twin of a prepared server becomes its next build and follows.  The monitor has
 * the stages (outside/stages/); what takes time, the transformation and rules, is made here
 * before anything is asked of it.
 */
#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "engine/mve/commands.h"
#include "engine/mve/show.h"
#include "engine/outside/control/control.h"
#include "engine/outside/kernel/maps.h"
#include "engine/outside/monitor/say.h"
#include "engine/outside/monitor/wakes.h"
#include "engine/outside/print/plain.h"
#include "engine/outside/rules/rules_load.h"

#define LOOK_MS		50
#define LIMIT_MS	1000	/* for threads to come to their points */
#define LIMIT_MOST_MS	3600000
#define AUTO_S		10

static const char help[] =
	"usage: mve update NAME --to NEW.so [--xform FILE] [--code] [--rules FILE]\n"
	"                  [--reverse FILE] [--auto[=S]] [--retry N/MS] [--limit MS]\n"
	"                  [--within S] [--dry-run] [--no-wait]\n"
	"\n"
	"The server of the session NAME, which is built for it and run by mve-driver\n"
	"(docs/updating.md), goes to its next build NEW.so: a copy of it becomes the new\n"
	"version, while it serves, and follows it.  Comes back when that follows (status\n"
	"0), or it is clear that it does not (1, and why): then the old version serves\n"
	"on.\n"
	"\n"
	"mve promote NAME lets the new version lead, and the old one follow; then mve\n"
	"commit NAME ends the old one. mve abort NAME goes back to the old version.\n"
	"\n"
	"  --xform FILE    how the state becomes the new build's: FILE.so, made by\n"
	"                  mve-xform; else what mve-xform is to be told, if anything\n"
	"  --code          nothing but code changed: all types are the same, and the\n"
	"                  state stays as it is; --xform FILE names types that are not,\n"
	"                  and of which there is nothing\n"
	"  --rules FILE    expected differences while the old version leads\n"
	"  --reverse FILE  and while the new one does; without it those of --rules\n"
	"  --auto[=S]      promote it when it has kept up for S seconds (10), commit\n"
	"                  after as many\n"
	"  --retry N/MS    if it fails before it follows, up to N times more, MS later\n"
	"  --limit MS      for threads to come to their update points (1000)\n"
	"  --within S      for the copy to become the new version; else it may take as\n"
	"                  long as it takes, and mve abort ends it\n"
	"  --dry-run       the copy is ended when it is the new version: says what became\n"
	"                  of the state\n"
	"  --no-wait       comes back at once; mve status shows the stage\n";

struct wish {
	const char *to, *xform, *rules, *reverse;
	unsigned tries, pause_ms, limit_ms, auto_s, within_s;
	bool dry, no_wait, code_only;
};

/* --- options ------------------------------------------------------------------------- */

static int wrong(const char *fmt, const char *text)
{
	say_error("mve update --help lists the options", fmt, text);
	return EXIT_USE;
}

static bool number_is(const char *text, unsigned from, unsigned to, unsigned *n)
{
	char *end;
	unsigned long value = strtoul(text, &end, 10);

	*n = (unsigned)value;
	return *text >= '0' && *text <= '9' && !*end && value >= from && value <= to;
}

static bool retry_is(const char *text, struct wish *w)
{
	char tail;

	return *text >= '0' && *text <= '9' &&
	       sscanf(text, "%5u/%7u%c", &w->tries, &w->pause_ms, &tail) == 2;
}

static int option_take(int opt, struct wish *w)
{
	switch (opt) {
	case 't': w->to = optarg; return 0;
	case 'x': w->xform = optarg; return 0;
	case 'r': w->rules = optarg; return 0;
	case 'R': w->reverse = optarg; return 0;
	case 'c': w->code_only = true; return 0;
	case 'd': w->dry = true; return 0;
	case 'n': w->no_wait = true; return 0;
	case 'a':
		w->auto_s = AUTO_S;
		return !optarg || number_is(optarg, 1, 86400, &w->auto_s) ? 0 :
		       wrong("not a number of seconds: %s", optarg);
	case 'l':
		return number_is(optarg, 1, LIMIT_MOST_MS, &w->limit_ms) ? 0 :
		       wrong("not a number of milliseconds: %s", optarg);
	case 'w':
		return number_is(optarg, 1, 86400, &w->within_s) ? 0 :
		       wrong("not a number of seconds: %s", optarg);
	case 'y':
		return retry_is(optarg, w) ? 0 : wrong("not N/MS: %s", optarg);
	default:
		return -1;
	}
}

static bool is_object(const char *path)
{
	size_t n = strlen(path);

	return n > 3 && !strcmp(path + n - 3, ".so");
}

static int options_take(int argc, char **argv, struct wish *w)
{
	static const struct option options[] = {
		{ "to", required_argument, NULL, 't' },
		{ "xform", required_argument, NULL, 'x' },
		{ "code", no_argument, NULL, 'c' },
		{ "rules", required_argument, NULL, 'r' },
		{ "reverse", required_argument, NULL, 'R' },
		{ "auto", optional_argument, NULL, 'a' },
		{ "retry", required_argument, NULL, 'y' },
		{ "limit", required_argument, NULL, 'l' },
		{ "within", required_argument, NULL, 'w' },
		{ "dry-run", no_argument, NULL, 'd' },
		{ "no-wait", no_argument, NULL, 'n' }, { 0 },
	};
	int opt, code = 0;

	opterr = 0;
	optind = 1;
	while (!code && (opt = getopt_long(argc, argv, "+:", options, NULL)) != -1) {
		if (opt == ':' || value_forgotten(argv))
			return wrong("option needs a value: %s", argv[optind - 1]);
		code = option_take(opt, w);
		if (code < 0)
			return wrong("unknown option: %s", argv[optind - 1]);
	}
	if (!code && optind < argc)
		return wrong("not understood: %s", argv[optind]);
	if (!code && w->code_only && w->xform && is_object(w->xform))
		return wrong("it is made already: %s", w->xform);
	if (!code && !w->to)
		return wrong("which build? give %s", "--to NEW.so");
	return code;
}

/* --- what is made before ------------------------------------------------------------- */

/* It lies where mve itself does. */
static void tool_path(const char *name, char *path, size_t size)
{
	ssize_t n = readlink("/proc/self/exe", path, size - 1);
	char *slash;

	path[n > 0 ? n : 0] = 0;
	slash = strrchr(path, '/');
	snprintf(slash ? slash + 1 : path, slash ? size - (size_t)(slash + 1 - path) : size, "%s",
		 name);
}

/* Its words are the user's to read. */
static int tool_run(char **argv)
{
	extern char **environ;
	int status, err;
	pid_t pid;

	err = posix_spawn(&pid, argv[0], NULL, NULL, argv, environ);
	if (err) {
		say_error(NULL, "cannot run: %s: %s", argv[0], strerror(err));
		return EXIT_SYSTEM;
	}
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return EXIT_SYSTEM;
	return WIFEXITED(status) ? WEXITSTATUS(status) : EXIT_SYSTEM;
}

/* Where the transformation is, which is made if there is none yet. */
static int xform_make(const struct session *s, const struct wish *w, const char *to, char *path,
		      size_t size)
{
	json_t *status = control_ask(s, "status");
	const json_t *update = json_object_get(status, "update");
	char tool[PATH_MAX], old[PATH_MAX];
	char *argv[12] = { tool, "-o", path };
	int n = 3;

	snprintf(old, sizeof(old), "%s", show_text(update, "build"));
	json_decref(status);
	if (!*old) {
		say_error("docs/updating.md says how; mve run without followers",
			  "cannot update: %s: its server is not prepared for it", s->name);
		return EXIT_NO;
	}
	tool_path("mve-xform", tool, sizeof(tool));
	snprintf(path, size, "%s/update-%d.so", s->folder, (int)getpid());
	if (w->code_only)
		argv[n++] = "-c";
	if (w->xform) {
		argv[n++] = "-t";
		argv[n++] = (char *)w->xform;
	}
	argv[n++] = "--";
	argv[n++] = old;
	argv[n] = (char *)to;
	return tool_run(argv);
}

static int path_find(const char *path, char *full)
{
	if (realpath(path, full))
		return 0;
	say_error(NULL, "cannot find: %s: %s", path, strerror(errno));
	return EXIT_NO;
}

/*
 * The loader would give the server what it has: a build is mapped as long as its process lives,
 * also when another runs.  Known here it costs no twin.
 */
static int not_mapped(const struct session *s, const char *to)
{
	json_t *status = control_ask(s, "status");
	struct maps maps = { 0 };
	struct stat st;
	bool is = false;

	if (stat(to, &st) < 0 || maps_read((pid_t)show_number(status, "server"), &maps))
		maps.n = 0;
	for (size_t i = 0; i < maps.n; i++)
		is |= maps.map[i].inode == st.st_ino && maps.map[i].dev == st.st_dev;
	maps_free(&maps);
	json_decref(status);
	if (is)
		say_error("give the new build a file of its own, a copy of it, say",
			  "cannot update: %s: it is in the server already: it runs, or did before: "
			  "%s", s->name, to);
	return is ? EXIT_NO : 0;
}

/* --- asked for, and waited for ------------------------------------------------------- */

/* 0; or its error is said. */
static int answer_of(json_t *reply, const char *name)
{
	bool done = json_is_true(json_object_get(reply, "done"));
	int code = show_done(reply, "update", name);

	return done ? 0 : code ? code : EXIT_NO;
}

static int rules_send(const struct session *s, const char *file, const char *what)
{
	int object, code = rules_compile(file, &object);

	if (code)
		return code;
	code = answer_of(control_ask_json(s, json_pack("{s:s}", "do", what), object), s->name);
	close(object);
	return code;
}

static int ask(const struct session *s, const struct wish *w, const char *to, const char *xform)
{
	json_t *wish = json_pack("{s:s, s:s, s:s, s:i, s:i, s:i, s:i, s:I, s:b}", "do", "update",
				 "to", to, "xform", xform, "limit_ms", (int)w->limit_ms,
				 "tries", (int)w->tries, "pause_ms", (int)w->pause_ms,
				 "auto_ms", (int)w->auto_s * 1000, "within_ms",
				 (json_int_t)w->within_s * 1000, "dry", w->dry);

	return answer_of(control_ask_json(s, wish, -1), s->name);
}

static void pause_ms(unsigned ms)
{
	struct timespec t = { ms / 1000, ms % 1000 * 1000000l };

	nanosleep(&t, NULL);
}

static int outcome(const struct session *s, const struct wish *w, const json_t *status)
{
	const json_t *u = json_object_get(status, "update");
	const char *why = show_text(u, "why");

	fputs(show_text(u, "said"), stdout);
	if (!strcmp(show_text(u, "stage"), "alone") && !w->dry) {
		say_error(show_number(show_leader(status), "pid") ?
			  "the old version serves on" : NULL,
			  "cannot update: %s: %s", s->name, why);
		return EXIT_NO;
	}
	if (w->dry) {
		printf("%s: %s\n", s->name, why);
		return strstr(why, "gone well") ? EXIT_OK : EXIT_NO;
	}
	printf("%s: %s, the new version; the server stood for %.1f ms\n", s->name,
	       show_text(u, "new"), (double)show_number(u, "stood_us") / 1000);
	return EXIT_OK;
}

static bool is_on_its_way(const char *stage)
{
	return !strcmp(stage, "stopping") || !strcmp(stage, "updating") ||
	       !strcmp(stage, "alone, to be tried again");
}

static int wait_for(const struct session *s, const struct wish *w)
{
	for (;; pause_ms(LOOK_MS)) {
		json_t *status = control_ask(s, "status");
		const json_t *u = json_object_get(status, "update");
		int code = EXIT_SYSTEM;
		bool over = !u || !is_on_its_way(show_text(u, "stage"));

		plain_json(status, true);
		if (!status)
			say_error(NULL, "the session is gone: %s", s->name);
		else if (over)
			code = outcome(s, w, status);
		json_decref(status);
		if (over)
			return code;
	}
}

static int update(const struct session *s, const struct wish *w)
{
	char to[PATH_MAX], xform[PATH_MAX] = "";
	bool made = !w->xform || !is_object(w->xform);
	int code = path_find(w->to, to);

	if (!code)
		code = not_mapped(s, to);
	if (!code)
		code = made ? xform_make(s, w, to, xform, sizeof(xform)) :
			      path_find(w->xform, xform);
	if (!code && w->rules)
		code = rules_send(s, w->rules, "update rules");
	if (!code && w->reverse)
		code = rules_send(s, w->reverse, "update reverse");
	if (!code)
		code = ask(s, w, to, xform);
	if (!code && w->no_wait)
		return code;	/* it is needed yet, and goes with the session */
	if (!code)
		code = wait_for(s, w);
	if (made && *xform)
		unlink(xform);
	return code;
}

int cmd_update(int argc, char **argv)
{
	struct look l = look_take(argc < 2 ? argc : 2, argv, "n", help);
	struct wish w = { .limit_ms = LIMIT_MS };
	struct session s;
	int code = l.code;

	if (!code)
		code = options_take(argc - 1, argv + 1, &w);
	if (!code)
		code = look_session(&l, &s);
	return code ? code : update(&s, &w);
}
