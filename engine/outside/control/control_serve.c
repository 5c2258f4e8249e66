/*
 * What the other commands ask of a session's monitor, and the answers.
 */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "engine/outside/attach/attach.h"
#include "engine/outside/control/control.h"
#include "engine/outside/follow/followers.h"
#include "engine/outside/follow/pace.h"
#include "engine/outside/late/join.h"
#include "engine/outside/foam/record_late.h"
#include "engine/outside/late/twin.h"
#include "engine/outside/kernel/witness.h"
#include "engine/outside/record/recorder.h"
#include "engine/outside/log/stand.h"
#include "engine/outside/monitor/monitor.h"
#include "engine/outside/monitor/say.h"
#include "engine/outside/monitor/status.h"
#include "engine/outside/monitor/versions.h"
#include "engine/outside/print/text_json.h"
#include "engine/outside/rules/rules_load.h"
#include "engine/outside/stages/stages.h"
#include "engine/outside/takeover/takeover.h"

json_t *control_error(const char *fmt, ...)
{
	char text[200];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	/* It may be cut within a character. */
	return json_pack("{s:o}", "error", text_json(text));
}

static struct version *version_asked(struct monitor *m, const json_t *ask)
{
	const char *name = json_string_value(json_object_get(ask, "follower"));

	return name ? version_named(m, name) : NULL;
}

/* passes: what is against it goes by itself, so that whoever asked may ask again. */
static json_t *refusal(const char *why, bool passes)
{
	MUST(why);
	return json_pack("{s:o, s:b}", "error", text_json(why), "passes", passes);
}

/* The same, of what the leader has stood for all the same. */
static json_t *refusal_stood(const char *why, bool passes, uint64_t stood_us)
{
	json_t *reply = refusal(why, passes);

	json_object_set_new(reply, "stood_us", json_integer((json_int_t)stood_us));
	return reply;
}

/* A follower that lives, by its name; or NULL and *error. */
static struct version *follower_of(struct monitor *m, const json_t *ask, json_t **error)
{
	struct version *v = version_asked(m, ask);

	if (!v)
		*error = control_error("no such follower");
	else if (v->index == m->leader)
		*error = control_error("it leads");
	else if (v->state == VERSION_LEAVES)
		*error = refusal("another takeover is under way", true);
	else if (!version_lives(v))
		*error = control_error("it has ended: %s", v->why);
	return *error ? NULL : v;
}

static json_t *drop(struct monitor *m, const json_t *ask)
{
	json_t *error = NULL;
	struct version *v = follower_of(m, ask, &error), *ended = version_asked(m, ask);

	if (!v && ended && ended->again_ms) {
		ended->again_ms = 0;	/* it does not come again */
		json_decref(error);
		return json_pack("{s:b}", "done", 1);
	}
	if (!v)
		return error;
	follower_drop(v, VERDICT_MATCH, "by mve drop");
	return json_pack("{s:b}", "done", 1);
}

/* Clients wait at a promotion until the successor has read all. */
static const char *promote_uneven(const struct monitor *m, const struct version *v, char *why,
				  size_t size)
{
	uint64_t behind = pace_behind_ms(m, v);

	snprintf(why, size, "it is %.1f s behind, and clients would wait for that",
		 (double)behind / 1000);
	return behind > PACE_EVEN_MS ? why : NULL;
}

static json_t *promote(struct monitor *m, const json_t *ask)
{
	bool keep = json_is_true(json_object_get(ask, "keep"));
	bool dry = json_is_true(json_object_get(ask, "dry")), passes = true;
	char why[WHY_MAX];
	json_t *error = NULL;
	struct version *v = follower_of(m, ask, &error);
	const char *no = v ? takeover_refused(m, v, &passes) : NULL;

	if (!v)
		return error;
	if (!no && json_is_true(json_object_get(ask, "even"))) {
		no = promote_uneven(m, v, why, sizeof(why));
		passes = true;
	}
	/* A leader that could not be stopped now may stand at the next call. */
	if (!no && !dry &&
	    takeover_promote(m, v, keep ? PROMOTE_KEEP : PROMOTE_END, why, sizeof(why)))
		no = why;
	if (no)
		return refusal(no, passes);
	return dry ? json_pack("{s:b}", "done", 1) : NULL;
}

/* One that failed may do so no more when it is asked for again. */
json_t *control_promotion(const char *why)
{
	return why ? refusal(why, true) : json_pack("{s:b}", "done", 1);
}

/* The object that came with the request; NULL and *why.  Who sent it cannot change it now. */
static struct rules_bank *object_take(int object, const char **why)
{
	if (object < 0)
		*why = "no object came with it";
	else if (rules_sealed(object))
		return rules_read(object, why);
	else
		*why = "what came with it is not sealed";
	return NULL;
}

static json_t *rules(struct monitor *m, const json_t *ask, int object)
{
	const char *why = "";
	json_t *error = NULL;
	struct version *v = follower_of(m, ask, &error);
	struct rules_bank *bank = v ? object_take(object, &why) : NULL;

	MUST(!bank || (v && v->index != m->leader));
	if (!bank)
		return error ? error : control_error("the rules cannot be used: %s", why);
	rules_put(v->brief, bank);
	free(bank);
	return json_pack("{s:b}", "done", 1);
}

/* A copy of the leader that follows it. */
static json_t *twin(struct monitor *m, const json_t *ask)
{
	struct follower_options like = {
		.name = json_string_value(json_object_get(ask, "name")),
	};
	uint64_t stood_us = 0;
	bool passes = false;
	char why[WHY_MAX];
	const struct version *v = twin_begin(m, &like, &stood_us, why, sizeof(why), &passes);

	if (!v)
		return refusal_stood(why, passes, stood_us);
	return json_pack("{s:b, s:s, s:I}", "done", 1, "follower", v->name, "stood_us",
			 (json_int_t)stood_us);
}

/* Recorded from now on, in a folder by its whole path. */
static json_t *record(struct monitor *m, const json_t *ask)
{
	struct run_options o = *m->options;
	uint64_t stood_us = 0;
	bool passes = false;
	char why[WHY_MAX];

	o.record = json_string_value(json_object_get(ask, "folder"));
	o.sync = (enum log_sync)json_integer_value(json_object_get(ask, "sync"));
	o.compress = (int)json_integer_value(json_object_get(ask, "compress"));
	o.bounds = (struct record_bounds){
		.bytes = (uint64_t)json_integer_value(json_object_get(ask, "bytes")),
		.age_ns = (uint64_t)json_integer_value(json_object_get(ask, "age_ns")),
		.last = json_is_true(json_object_get(ask, "last")),
	};
	o.images_ms = (uint64_t)json_integer_value(json_object_get(ask, "images_ms"));
	if (!o.record || o.record[0] != '/' || o.sync > SYNC_CALL)
		return control_error("not a request");
	if (!record_begin(m, &o, &stood_us, why, sizeof(why), &passes))
		return refusal_stood(why, passes, stood_us);
	return json_pack("{s:b, s:I}", "done", 1, "stood_us", (json_int_t)stood_us);
}

/* A follower that comes late. */
static json_t *follow(struct monitor *m, const json_t *ask, int object)
{
	const json_t *words = json_object_get(ask, "argv"), *word;
	const char *path = json_string_value(json_object_get(ask, "path"));
	struct follower_options like = {
		.name = json_string_value(json_object_get(ask, "name")),
		.again = json_is_true(json_object_get(ask, "again")),
		.from_start = json_is_true(json_object_get(ask, "from_start")),
	};
	char **argv, why[WHY_MAX];
	const struct version *v;
	bool passes = false;
	const char *no;
	size_t i;

	if (object >= 0)
		like.rules_bank = object_take(object, &no);
	if (object >= 0 && !like.rules_bank)
		return control_error("the rules cannot be used: %s", no);
	argv = calloc(json_array_size(words) + 1, sizeof(*argv));
	MUST(argv);
	json_array_foreach(words, i, word) {
		argv[i] = strdup(json_is_string(word) ? json_string_value(word) : "");
		MUST(argv[i]);
	}
	v = join_begin(m, path, argv, &like, why, sizeof(why), &passes);
	free(like.rules_bank);
	if (v)
		return json_pack("{s:b, s:s}", "done", 1, "follower", v->name);
	for (i = 0; argv[i]; i++)
		free(argv[i]);
	free(argv);
	return refusal(why, passes);
}

/* A replay goes on to another event. */
static json_t *go(struct monitor *m, const json_t *ask)
{
	json_int_t event = json_integer_value(json_object_get(ask, "event"));

	if (!m->options->replay)
		return control_error("it is no replay");
	if (event < 0 || !stand_ask(m, (uint64_t)event, 0))
		return control_error("it is behind that event");
	return json_pack("{s:b}", "done", 1);
}

/* --- live updates ------------------------------------------------------------------------ */

/* Rules that come before the update that they are for. */
static struct rules_bank *update_rules[2];

static json_t *update_rules_take(int object, int which)
{
	const char *why = "";
	struct rules_bank *bank = object_take(object, &why);

	if (!bank)
		return control_error("the rules cannot be used: %s", why);
	free(update_rules[which]);
	update_rules[which] = bank;
	return json_pack("{s:b}", "done", 1);
}

static uint64_t number_asked(const json_t *ask, const char *key)
{
	json_int_t n = json_integer_value(json_object_get(ask, key));

	return n > 0 && n <= UINT32_MAX ? (uint64_t)n : 0;
}

static json_t *update(struct monitor *m, const json_t *ask)
{
	const char *to = json_string_value(json_object_get(ask, "to"));
	const char *xform = json_string_value(json_object_get(ask, "xform"));
	struct update_wish w = {
		.to = to ? to : "", .xform = xform ? xform : "",
		.limit_ms = (unsigned)number_asked(ask, "limit_ms"),
		.within_ms = number_asked(ask, "within_ms"),
		.tries = (unsigned)number_asked(ask, "tries"),
		.pause_ms = (unsigned)number_asked(ask, "pause_ms"),
		.promote_ms = number_asked(ask, "auto_ms"),
		.commit_ms = number_asked(ask, "auto_ms"),
		.dry = json_is_true(json_object_get(ask, "dry")),
		.rules = update_rules[0], .reverse = update_rules[1],
	};
	bool passes = false;
	const char *no = *w.to == '/' && *w.xform == '/' ? NULL : "no build was given";

	if (no)
		return refusal(no, false);
	update_rules[0] = update_rules[1] = NULL;
	no = stages_update(m, &w, &passes);
	return no ? refusal(no, passes) : json_pack("{s:b}", "done", 1);
}

static json_t *update_end(struct monitor *m, bool commit)
{
	bool passes = false;
	const char *no = commit ? stages_commit(m, &passes) : stages_abort(m, &passes);

	return no ? refusal(no, passes) : json_pack("{s:b}", "done", 1);
}

static json_t *update_serve(struct monitor *m, const json_t *ask, const char *what, int object)
{
	if (!strcmp(what, "update"))
		return update(m, ask);
	if (!strcmp(what, "update rules"))
		return update_rules_take(object, 0);
	if (!strcmp(what, "update reverse"))
		return update_rules_take(object, 1);
	return update_end(m, !strcmp(what, "commit"));
}

static json_t *detach_asked(struct monitor *m)
{
	struct attach_done done;

	if (!detach(m, &done))
		return json_pack("{s:o, s:s}", "error", text_json(done.why), "hint", done.hint);
	return json_pack("{s:b, s:I}", "done", 1, "stood_us", (json_int_t)done.stood_us);
}

json_t *control_serve(struct monitor *m, const json_t *ask, int object)
{
	const char *what = json_string_value(json_object_get(ask, "do"));

	if (!what)
		return control_error("not a request");
	if (!strcmp(what, "drop"))
		return drop(m, ask);
	if (!strcmp(what, "rules"))
		return rules(m, ask, object);
	if (!strcmp(what, "promote"))
		return promote(m, ask);
	if (!strcmp(what, "record"))
		return record(m, ask);
	if (!strncmp(what, "update", 6) || !strcmp(what, "commit") || !strcmp(what, "abort"))
		return update_serve(m, ask, what, object);
	if (!strcmp(what, "record stop"))
		return recorder_stop(m) ? json_pack("{s:b}", "done", 1) :
		       control_error("it is not recorded");
	if (!strcmp(what, "detach"))
		return detach_asked(m);
	if (!strcmp(what, "stop")) {
		m->stopping = true;
		return json_pack("{s:b}", "done", 1);
	}
	if (!strcmp(what, "go"))
		return go(m, ask);
	if (!strcmp(what, "twin"))
		return twin(m, ask);
	if (!strcmp(what, "follow"))
		return follow(m, ask, object);
	if (!strcmp(what, "status"))
		return status_json(m);
	if (!strcmp(what, "audit on") && !m->audit)
		return witness_begin(m);
	if (!strcmp(what, "audit on") || !strcmp(what, "audit"))
		return witness_json(m);
	return json_pack("{s:s}", "error", "unknown request");
}
