/*
 * mve record: a session that runs is recorded from now on, or no more.
 */
#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "engine/mve/commands.h"
#include "engine/mve/run/run_record.h"
#include "engine/mve/show.h"
#include "engine/outside/control/control.h"
#include "engine/outside/monitor/say.h"

#define PASSES_S	60

static const struct timespec look = { 0, 20000000 };

static const char help[] =
	"usage: mve record NAME DIR [OPTIONS]\n"
	"       mve record NAME --stop\n"
	"\n"
	"Records a session that runs, from now on, into the folder DIR, which is made:\n"
	"the memory of its server (an image), then what it does.  The server stands for\n"
	"some milliseconds; the image is written beside it, and waited for.  mve replay\n"
	"DIR runs it from there.  It is for its owner alone: it holds what clients sent.\n"
	"\n"
	"  --sync WORD         as mve run has it: none, second, call\n"
	"  --compress LEVEL    with zstd: 1 to 19\n"
	"  --max-size SIZE, --max-age TIME, --keep first|last\n"
	"                      as mve run has them: no more is kept than that\n"
	"  --images TIME       another image each time: with --keep last what is kept\n"
	"                      can be replayed; and mve replay --from begins there\n"
	"  --wait S            so long is waited for what is against it and passes (60)\n"
	"  --stop              ends the recording, and waits for it; the session goes\n"
	"                      on.  What was written is whole, and replays up to there\n";

struct wanted {
	struct run_options o;
	const char *folder;
	long wait_s;
	bool stop;
};

/* --- what is asked -------------------------------------------------------------------- */

static int wait_take(struct wanted *w, const char *text)
{
	if (seconds_take(text, &w->wait_s))
		return 0;
	say_error("mve record --help lists the options", "not a number of seconds: %s", text);
	return EXIT_USE;
}

static int option_take(struct wanted *w, int opt, char **argv)
{
	switch (opt) {
	case 'y':
		return sync_take(&w->o, optarg);
	case 'c':
		return compress_take(&w->o, optarg);
	case 'm':
		return max_size_take(&w->o, optarg);
	case 'a':
		return max_age_take(&w->o, optarg);
	case 'k':
		return keep_take(&w->o, optarg);
	case 'i':
		return images_take(&w->o, optarg);
	case 'w':
		return wait_take(w, optarg);
	case 's':
		w->stop = true;
		return 0;
	case 'h':
		fputs(help, stdout);
		exit(EXIT_OK);
	}
	say_error("mve record --help lists the options",
		  opt == ':' ? "option needs a value: %s" : "unknown option: %s",
		  argv[optind - 1]);
	return EXIT_USE;
}

/* The session's name, and the folder; the words between are options. */
static int words_take(int argc, char **argv, const char **name, struct wanted *w)
{
	static const struct option options[] = {
		{ "sync", required_argument, NULL, 'y' },
		{ "compress", required_argument, NULL, 'c' },
		{ "max-size", required_argument, NULL, 'm' },
		{ "max-age", required_argument, NULL, 'a' },
		{ "keep", required_argument, NULL, 'k' },
		{ "images", required_argument, NULL, 'i' },
		{ "wait", required_argument, NULL, 'w' }, { "stop", no_argument, NULL, 's' },
		{ "help", no_argument, NULL, 'h' }, { 0 },
	};
	int opt, code = 0;

	opterr = 0;
	while (!code && (opt = getopt_long(argc, argv, ":h", options, NULL)) != -1)
		code = option_take(w, opt, argv);
	w->o.record = w->stop ? NULL : "";
	if (!code)
		code = record_complete(&w->o);
	if (code)
		return code;
	*name = optind < argc ? argv[optind] : NULL;
	w->folder = *name && optind + 1 < argc ? argv[optind + 1] : NULL;
	if (!*name || (!w->folder && !w->stop) || optind + 1 + !!w->folder < argc ||
	    (w->folder && w->stop)) {
		say_error("for example: mve record NAME DIR; or: mve record NAME --stop",
			  !*name ? "mve record: which session? give its name" :
			  w->stop ? "mve record --stop takes a session's name alone" :
			  "mve record: a folder is wanted, and nothing behind it");
		return EXIT_USE;
	}
	return 0;
}

/* The monitor has another working folder. */
static int folder_whole(struct wanted *w, char *out, size_t size)
{
	const char *slash = strrchr(w->folder, '/'), *last = slash ? slash + 1 : w->folder;
	char here[PATH_MAX] = "";

	if (!last[0] || !strcmp(last, ".") || !strcmp(last, "..")) {
		say_error("for example: mve record NAME shop.log",
			  "cannot record: %s: it is not the name of a folder", w->folder);
		return EXIT_USE;
	}
	if (w->folder[0] != '/' && !getcwd(here, sizeof(here)))
		here[0] = 0;
	if (snprintf(out, size, "%s%s%s", here, here[0] ? "/" : "", w->folder) < (int)size &&
	    out[0] == '/')
		return 0;
	say_error("give its whole path", "not a folder: %s", w->folder);
	return EXIT_USE;
}

/* --- its beginning -------------------------------------------------------------------- */

/* 1: the image is there; 0: not yet; -1: and never will be, in *why. */
static int image_state(const struct session *s, char *why, size_t size)
{
	json_t *status = control_ask(s, "status");
	const json_t *r = json_object_get(status, "recording"), *i = json_object_get(r, "image");
	int state = 0;

	snprintf(why, size, "%s", status ? show_text(r, "ended") : "the session is gone");
	if (!status || json_is_false(json_object_get(r, "active")))
		state = -1;
	else if (!strcmp(show_text(i, "state"), "written"))
		state = 1;
	json_decref(status);
	return state;
}

static int image_wait(const struct session *s, const char *folder)
{
	char why[WHY_MAX];
	int state;

	while (!(state = image_state(s, why, sizeof(why))))
		nanosleep(&look, NULL);
	if (state > 0) {
		printf("%s: its image is written\n", folder);
		return EXIT_OK;
	}
	say_error(access(folder, F_OK) ? "the session goes on without it" :
		  "the session goes on; remove the folder, which can be looked at, not replayed",
		  "cannot record: %s: %s", s->name, why);
	return EXIT_NO;
}

static int refused(json_t *reply, const char *name)
{
	const char *why = json_string_value(json_object_get(reply, "error"));

	if (!why)
		return show_done(reply, "record", name);
	say_error("docs/recording.md says what can be recorded, and where to",
		  "cannot record: %s: %s", name, why);
	json_decref(reply);
	return EXIT_NO;
}

static int begin(const struct session *s, struct wanted *w)
{
	const struct run_options *o = &w->o;
	char folder[PATH_MAX];
	int code = folder_whole(w, folder, sizeof(folder));
	json_t *reply;

	if (code)
		return code;
	reply = show_asked(s, json_pack("{s:s, s:s, s:i, s:i, s:I, s:I, s:b, s:I}", "do", "record",
					"folder", folder, "sync", (int)o->sync, "compress",
					o->compress, "bytes", (json_int_t)o->bounds.bytes,
					"age_ns", (json_int_t)o->bounds.age_ns, "last",
					o->bounds.last, "images_ms", (json_int_t)o->images_ms),
			   -1, w->wait_s);
	if (!json_is_true(json_object_get(reply, "done")))
		return refused(reply, s->name);
	say_error(NULL, "recording to %s: it will hold what clients send, and what they are sent",
		  w->folder);
	printf("%s: recorded from now on; the server stood for %.1f ms\n", s->name,
	       (double)show_number(reply, "stood_us") / 1000);
	fflush(stdout);
	json_decref(reply);
	return image_wait(s, w->folder);
}

/* Until all of it is written: what comes next may replay it, or begin another. */
static void end_wait(const struct session *s)
{
	json_t *status = control_ask(s, "status");

	while (json_is_true(json_object_get(json_object_get(status, "recording"), "active"))) {
		nanosleep(&look, NULL);
		json_decref(status);
		status = control_ask(s, "status");
	}
	printf("%s: its recording has ended: %s\n", s->name, status ?
	       show_text(json_object_get(status, "recording"), "ended") : "the session is gone");
	json_decref(status);
}

static int end(const struct session *s)
{
	json_t *reply = control_ask_json(s, json_pack("{s:s}", "do", "record stop"), -1);
	const char *why = json_string_value(json_object_get(reply, "error"));
	int code;

	if (why) {
		say_error("mve record NAME DIR begins one", "cannot end the recording of %s: %s",
			  s->name, why);
		json_decref(reply);
		return EXIT_NO;
	}
	code = show_done(reply, "end the recording of", s->name);
	if (!code)
		end_wait(s);
	return code;
}

int cmd_record(int argc, char **argv)
{
	struct wanted w = { .wait_s = PASSES_S };
	struct look l = { .seconds = -1 };
	struct session s;
	int code = words_take(argc, argv, &l.name, &w);

	if (!code)
		code = look_session(&l, &s);
	if (code)
		return code;
	return w.stop ? end(&s) : begin(&s, &w);
}
