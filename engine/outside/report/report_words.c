/*
 * A report in one line: what the follower did, how that differs, and where.
 */
#include <string.h>

#include "engine/outside/monitor/monitor.h"
#include "engine/outside/report/finding.h"
#include "engine/outside/report/report_parts.h"
#include "engine/outside/rules/rules_at_work.h"

#define CALL_COLUMNS	64	/* of a call in the line */

/* A call, cut so that the line stays one. */
static json_t *call_short(const char *call)
{
	size_t len = strlen(call);

	return len <= CALL_COLUMNS ? json_string(call)
				   : json_sprintf("%.*s...", CALL_COLUMNS - 3, call);
}

static json_t *argument_words(const json_t *report, const char *call)
{
	const json_t *a = json_object_get(report, "argument");
	const json_t *leader = json_object_get(a, "leader"), *own = json_object_get(a, "follower");
	const json_t *content = json_object_get(a, "content");
	const char *name = text_of(a, "name"), *what = text_of(report, "difference");

	if (!strcmp(what, "value") && json_is_object(content))
		return json_sprintf("%s argument %s is %lld, the leader's %lld; %s differs at byte "
				    "%lld", call, name, number_of(own, "value"),
				    number_of(leader, "value"), text_of(content, "name"),
				    number_of(content, "offset"));
	if (!strcmp(what, "value"))
		return json_sprintf("%s argument %s is %lld, the leader's %lld", call, name,
				    number_of(own, "value"), number_of(leader, "value"));
	if (!strcmp(what, "length") && leader)
		return json_sprintf("%s argument %s has %lld bytes, the leader's %lld", call, name,
				    number_of(own, "length"), number_of(leader, "length"));
	return json_sprintf("%s argument %s differs at byte %lld", call, name,
			    number_of(a, "offset"));
}

static json_t *diverged_words(const struct making *k, const char *call, const char *leaders)
{
	switch (k->w->what) {
	case DIFFERS_CALL:
		return *leaders ? json_sprintf("%s where the leader made %s", call, leaders)
				: json_sprintf("%s where the leader made no call", call);
	case DIFFERS_END:
		return json_sprintf("%s where the leader's thread has ended", call);
	case DIFFERS_EXTRA:
		return json_sprintf("its thread has ended, the leader's went on");
	default:
		return json_is_object(json_object_get(k->report, "argument")) ?
		       argument_words(k->report, call) : json_string(call);
	}
}

static json_t *verdict_words(const struct making *k, const char *call, const char *leaders)
{
	const struct report_want *w = k->w;
	char fault[WHY_MAX];

	switch (w->verdict) {
	case VERDICT_DIVERGED:
		return diverged_words(k, call, leaders);
	case VERDICT_CRASHED:
		if (w->what)
			return json_sprintf("%s at address 0x%lx", signal_word(w->what), w->where);
		return json_string(w->why ? w->why : "it ended");
	case VERDICT_UNSUPPORTED:
		return json_string(call);
	case VERDICT_FAULTY:
		rules_word(w->slot, fault, sizeof(fault));
		return json_string(fault);
	case VERDICT_FOUND:
		finding_summary(w->finding, fault, sizeof(fault));
		return json_string(fault);
	case VERDICT_BROKEN:
		return json_string("the stream makes no sense");
	default:
		return json_string(w->why ? w->why : "");
	}
}

/* ": kv_reply at v1.c:88" */
json_t *report_place(const json_t *stack)
{
	const json_t *f = stack_frame_own(stack);
	const char *file = text_of(f, "file"), *base = strrchr(file, '/');
	const char *module = text_of(f, "module"), *name = strrchr(module, '/');
	const char *function = text_of(f, "function");

	if (!f)
		return json_string("");
	function = *function ? function : text_of(f, "address");
	if (!*file)
		return json_sprintf(": %s of %s", function, name ? name + 1 : module);
	return json_sprintf(": %s at %s:%lld", function, base ? base + 1 : file,
			    number_of(f, "line"));
}

json_t *report_words(const struct making *k)
{
	const json_t *follower = json_object_get(k->report, "follower");
	json_t *call = call_short(text_of(follower, "call"));
	json_t *leaders = call_short(text_of(json_object_get(k->report, "leader"), "call"));
	json_t *words = verdict_words(k, json_string_value(call), json_string_value(leaders));
	json_t *place = report_place(json_object_get(follower, "stack"));
	json_t *all = json_sprintf("%s%s", json_string_value(words), json_string_value(place));

	json_decref(call);
	json_decref(leaders);
	json_decref(words);
	json_decref(place);
	return all;
}

const char *report_summary(const json_t *report)
{
	return text_of(report, "summary");
}
