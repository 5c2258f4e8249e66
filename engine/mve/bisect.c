/*
 * mve bisect: which of a row of builds is the first that differs from a recording.
 *
 * Each trial is an `mve replay` of its own, in a session of its own, so that its report is there
 * afterwards.  Builds are taken to be equal up to one and to differ from it on: by halving a few
 * trials find it.  Whatever the builds are like, what is named has been seen to differ, and the
 * build before it to be equal; only that none before it differs is concluded (--all tries them).
 */
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "engine/core/must.h"
#include "engine/mve/commands.h"
#include "engine/mve/run/run.h"
#include "engine/mve/show.h"
#include "engine/mve/words.h"
#include "engine/outside/log/feeder.h"
#include "engine/outside/monitor/say.h"
#include "engine/outside/pack/packed.h"
#include "engine/outside/print/text_json.h"
#include "engine/outside/report/report.h"

static const char help[] =
	"usage: mve bisect [options] DIR -- BUILD...\n"
	"\n"
	"Replays the recording DIR against builds, the oldest first, and says which is\n"
	"the first that differs, with its report.  A BUILD is a program, run with the\n"
	"recorded arguments, or, if there are spaces in it, a command, split as a shell\n"
	"does.\n"
	"\n"
	"Half of what is left is tried at a time: so it is if a build that differs is\n"
	"followed by none that is equal.  A build that cannot be run is passed over.  The\n"
	"exit status is 1 where one differs, 0 where none does.\n"
	"\n"
	"  --all               every build is tried, and said where it changes\n"
	"  --json              the trials, and the report, as JSON\n"
	"  --tier=patch|trap, --from TIME\n"
	COMPARED_HELP
	"                      as in mve replay, for each trial\n";

#define SAID	4096	/* bytes of what a trial says that are looked at */

enum result { UNTRIED, EQUAL, DIFFERS, BROKEN };

static const char *const result_words[] = {
	[UNTRIED] = "not tried", [EQUAL] = "equal", [DIFFERS] = "differs",
	[BROKEN] = "cannot be tried",
};

struct trial {
	const char *build;
	char **words;
	enum result result;
	char session[48];
	char said[SAID];	/* the first lines of it */
};

struct bisect {
	const char *path;
	char **options;		/* for mve replay */
	int n_options;
	struct program program;
	struct trial *trial;
	int n;
	bool all, json;
};

/* --- a trial -------------------------------------------------------------------------- */

/* In its process: what it says goes to `to`. */
static _Noreturn void trial_exec(const struct bisect *b, const struct trial *t, int to)
{
	int n = 0, words = 0, null = open("/dev/null", O_RDWR);
	char **argv;

	while (t->words[words])
		words++;
	argv = calloc((size_t)(b->n_options + words + 9), sizeof(*argv));
	MUST(argv);
	argv[n++] = "mve";
	argv[n++] = "replay";
	argv[n++] = "--partial";
	for (int i = 0; i < b->n_options; i++)
		argv[n++] = b->options[i];
	argv[n++] = "-n";
	argv[n++] = (char *)t->session;
	argv[n++] = (char *)b->path;
	argv[n++] = "--";
	for (int i = 0; i < words; i++)
		argv[n++] = t->words[i];
	dup2(null, STDIN_FILENO);
	dup2(to, STDOUT_FILENO);
	dup2(to, STDERR_FILENO);
	execv("/proc/self/exe", argv);
	_exit(EXIT_SYSTEM);
}

static void said_read(struct trial *t, int fd)
{
	ssize_t n = pread(fd, t->said, sizeof(t->said) - 1, 0);

	t->said[n > 0 ? n : 0] = 0;
}

static enum result trial_make(const struct bisect *b, struct trial *t)
{
	int said = memfd_create("mve-bisect", MFD_CLOEXEC), status = 0;
	pid_t pid = said < 0 ? -1 : fork();

	if (!pid)
		trial_exec(b, t, said);
	while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (said >= 0) {
		said_read(t, said);
		close(said);
	}
	if (pid < 0 || !WIFEXITED(status))
		return BROKEN;
	return WEXITSTATUS(status) == EXIT_OK ? EQUAL : WEXITSTATUS(status) == EXIT_NO ? DIFFERS :
	       BROKEN;
}

/* What it said, up to a line's end and without "mve: ". */
static void said_print(const struct trial *t)
{
	const char *from = strncmp(t->said, "mve: ", 5) ? t->said : t->said + 5;

	printf("%.*s\n", (int)strcspn(from, "\n"), from);
}

static enum result try(struct bisect *b, int i)
{
	struct trial *t = &b->trial[i];

	MUST(i >= 0 && i < b->n);
	if (t->result != UNTRIED)
		return t->result;
	if (!b->json) {
		printf("build %d of %d: %s: ", i + 1, b->n, t->build);
		fflush(stdout);
	}
	t->result = trial_make(b, t);
	if (!b->json) {
		printf("%s: ", result_words[t->result]);
		said_print(t);
		fflush(stdout);		/* what is said of all of them comes behind it */
	}
	return t->result;
}

/* --- the search ------------------------------------------------------------------------- */

/* What is known: `equal` is, or is before the first; `differs` does, or is behind the last. */
struct found {
	int equal, differs;
};

/* One that is between them and not known to be broken: the nearest to the middle; or -1. */
static int middle(const struct bisect *b, struct found f)
{
	int at = f.equal + (f.differs - f.equal) / 2;

	for (int away = 0; away < b->n; away++)
		for (int side = -1; side <= 1; side += 2) {
			int i = at + side * away;

			if (i > f.equal && i < f.differs && b->trial[i].result != BROKEN)
				return i;
		}
	return -1;
}

static struct found halve(struct bisect *b)
{
	struct found f = { -1, b->n };
	int i;

	while ((i = middle(b, f)) >= 0)
		switch (try(b, i)) {
		case EQUAL:
			f.equal = i;
			break;
		case DIFFERS:
			f.differs = i;
			break;
		default:
			break;
		}
	return f;
}

static struct found all_try(struct bisect *b)
{
	struct found f = { -1, b->n };

	for (int i = 0; i < b->n; i++) {
		enum result result = try(b, i);

		if (result == DIFFERS && f.differs == b->n)
			f.differs = i;
		if (result == EQUAL && f.differs == b->n)
			f.equal = i;
	}
	return f;
}

/* --- what is said ------------------------------------------------------------------------- */

static json_t *report_of(const struct trial *t)
{
	unsigned *numbers = NULL;
	int n = report_list(t->session, &numbers);
	json_t *r = n > 0 ? report_load(t->session, numbers[0]) : NULL;

	free(numbers);
	return r;
}

static int count(const struct bisect *b, enum result result)
{
	int n = 0;

	for (int i = 0; i < b->n; i++)
		n += b->trial[i].result == result;
	return n;
}

/* Behind the first one that differs there is one that is equal, as far as was tried. */
static void changes_print(const struct bisect *b, int first)
{
	for (int i = first + 1; i < b->n; i++)
		if (b->trial[i].result == EQUAL)
			printf("%s, behind it, is equal again\n", b->trial[i].build);
}

static void found_print(const struct bisect *b, struct found f)
{
	json_t *r = report_of(&b->trial[f.differs]);

	printf("\n%s is the first that differs", b->trial[f.differs].build);
	printf(f.equal >= 0 ? "; %s is equal\n" : "%s\n",
	       f.equal >= 0 ? b->trial[f.equal].build : "");
	if (f.differs - f.equal > 1)
		printf("or one of the %d before it, which cannot be tried\n",
		       f.differs - f.equal - 1);
	if (count(b, UNTRIED))
		printf("%d of %d were tried: a build between two that are alike is taken to be as "
		       "they are\n", b->n - count(b, UNTRIED), b->n);
	changes_print(b, f.differs);
	if (!r)
		return;
	printf("\n");
	report_text(stdout, r);
	json_decref(r);
}

static json_t *trials_json(const struct bisect *b)
{
	json_t *list = json_array();

	for (int i = 0; i < b->n; i++) {
		const struct trial *t = &b->trial[i];

		json_array_append_new(list, json_pack("{s:o, s:s, s:s, s:o}", "build",
						      text_json(t->build), "result",
						      result_words[t->result], "session",
						      t->result == UNTRIED ? "" : t->session,
						      "said", text_json(t->said)));
	}
	return list;
}

static int found_json(const struct bisect *b, struct found f)
{
	bool any = f.differs < b->n;
	json_t *r = any ? report_of(&b->trial[f.differs]) : NULL;

	return show_json(json_pack("{s:o, s:o, s:b, s:o}", "builds", trials_json(b), "first",
				   any ? json_integer(f.differs) : json_null(), "exact",
				   any && f.differs - f.equal == 1, "report",
				   r ? r : json_null()));
}

static int found_say(const struct bisect *b, struct found f)
{
	int code = f.differs < b->n ? EXIT_NO : count(b, EQUAL) ? EXIT_OK : EXIT_SYSTEM;

	if (b->json) {
		found_json(b, f);
		return code;
	}
	if (f.differs < b->n)
		found_print(b, f);
	else if (code == EXIT_SYSTEM)
		say_error("mve replay DIR -- BUILD says why", "no build could be tried: %s",
			  b->path);
	else
		printf("\nnone of those that were tried differs\n");
	return code;
}

/* --- the command --------------------------------------------------------------------------- */

/* A word alone is a program: the rest is as it was recorded. */
static bool words_make(const struct bisect *b, struct trial *t)
{
	uint32_t argc = b->program.head.argc;

	t->words = words_split(t->build);
	if (!t->words) {
		say_error("quotes have an end", "not a command: %s", t->build);
		return false;
	}
	if (t->words[1] || !argc)
		return true;
	t->words = realloc(t->words, (argc + 1) * sizeof(*t->words));
	MUST(t->words);
	for (uint32_t i = 1; i < argc; i++)
		t->words[i] = b->program.argv[i];
	t->words[argc] = NULL;
	return true;
}

static int wrong(const char *what, const char *text)
{
	say_error("for example: mve bisect DIR -- ./server-1.0 ./server-1.1", "%s: %s", what,
		  text);
	return EXIT_USE;
}

/* Ours are taken out; the others are for mve replay. */
static int options_sort(struct bisect *b, int argc, char **argv)
{
	char **words = calloc((size_t)argc + 1, sizeof(*words));
	int n = 0, code;

	MUST(words);
	for (int i = 0; i < argc; i++) {
		if (!strcmp(argv[i], "--json"))
			b->json = true;
		else if (!strcmp(argv[i], "--all"))
			b->all = true;
		else
			words[n++] = argv[i];
	}
	code = replay_trial_take(n, words, help);
	if (code)
		return code;
	if (optind == n)
		return wrong("no recording is given", argv[0]);
	b->path = words[optind];
	b->options = words + 1;
	b->n_options = optind - 1;
	return 0;
}

static int builds_take(struct bisect *b, int n, char **build)
{
	b->trial = calloc((size_t)n, sizeof(*b->trial));
	MUST(b->trial);
	for (b->n = 0; b->n < n; b->n++) {
		struct trial *t = &b->trial[b->n];

		t->build = build[b->n];
		snprintf(t->session, sizeof(t->session), "bisect-%d-%d", getpid(), b->n + 1);
		if (!words_make(b, t))
			return EXIT_USE;
	}
	return 0;
}

int cmd_bisect(int argc, char **argv)
{
	static struct bisect b;
	struct replay r;
	int end = 1, code;

	while (end < argc && strcmp(argv[end], "--"))
		end++;
	code = options_sort(&b, end, argv);
	if (!code && end + 1 >= argc)
		return wrong("no build is given", b.path);
	if (code == HELPED)
		return EXIT_OK;
	if (!code)
		code = replay_open(&r, b.path);
	if (!code)
		code = replay_begins(&r);
	if (!code)
		code = replay_builds(&r);
	if (code)
		return code;
	b.program = r.program;
	code = builds_take(&b, argc - end - 1, argv + end + 1);
	/* Once, for all of them. */
	if (!code)
		code = packed_enter(b.path, b.program.folder);
	if (!code)
		code = found_say(&b, b.all ? all_try(&b) : halve(&b));
	frames_close(&r.frames);
	return code;
}
