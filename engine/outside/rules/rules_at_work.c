/*
 * Rules, as the monitor sees them: which versions there are, a thread that does not
 * come back from the code of a rule, and what a report says of a rule.
 */
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "engine/core/must.h"
#include "engine/core/rules.h"
#include "engine/outside/follow/followers.h"
#include "engine/outside/kernel/process.h"
#include "engine/outside/monitor/monitor.h"
#include "engine/outside/monitor/versions.h"
#include "engine/outside/print/print.h"
#include "engine/outside/rules/rules_at_work.h"
#include "engine/outside/rules/rules_load.h"
#include "engine/outside/stages/stages.h"

#define RULE_MS		1000	/* the code of a rule may run so long */
#define GIVE_UP_MS	3000	/* and if it does not even hear that it is over */

/* --- the versions --------------------------------------------------------------------- */

/* The session's command is the old version unless its follower is said to be older. */
static int age_of(const struct version *v)
{
	if (v->age)
		return v->age;
	return !v->options ? 0 : v->options->older ? -1 : 1;
}

_Static_assert(RELEASES == VERSIONS, "a row for each version");

/* Which stage it is follows from whose stream a thread reads. */
void rules_releases(struct monitor *m)
{
	for (unsigned i = 0; i < m->versions; i++) {
		struct brief *b = m->version[i].brief;

		b->self = i;
		for (unsigned k = 0; k < m->versions; k++) {
			const struct follower_options *f = m->version[k].options;
			const char *name = f ? f->release : m->options->release;

			b->release[k].age = age_of(&m->version[k]);
			snprintf(b->release[k].name, sizeof(b->release[k].name), "%s",
				 name ? name : "");
		}
	}
}

void rules_pass(const struct version *from, struct version *to)
{
	const struct rules_bank *reverse = stages_reverse(from->monitor, to);

	MUST(from != to && from->monitor == to->monitor);
	if (reverse)
		rules_put(to->brief, reverse);
	else if (from->brief->rules && !to->brief->rules)
		rules_put(to->brief, &from->brief->bank[from->brief->rules % 2]);
}

/* --- a rule that does not end --------------------------------------------------------- */

static struct seen {
	uint32_t matching;
	uint64_t since_ms;
} seen[VERSIONS][AREA_THREADS];

static void slot_look(struct version *v, uint32_t i, uint64_t now)
{
	struct slot *s = &v->area->slot[i];
	struct seen *was = &seen[v->index][i];
	uint32_t matching = __atomic_load_n(&s->matching, __ATOMIC_RELAXED);
	pid_t pid = s->pid, tid = (pid_t)s->owner;

	MUST(i < AREA_THREADS && v->index != v->monitor->leader);	/* it may be dropped */
	if (!matching || matching != was->matching) {
		*was = (struct seen){ matching, now };
		return;
	}
	if (now - was->since_ms < RULE_MS || !version_owns(v, pid, tid))
		return;
	s->match_over = matching;
	if (now - was->since_ms > GIVE_UP_MS)
		follower_drop(v, VERDICT_FAULTY, "a rule does not end");
	else
		thread_knock(pid, tid);
}

void rules_look(struct monitor *m)
{
	uint64_t now = now_ms();

	for (unsigned i = 0; i < m->versions; i++) {
		struct version *v = &m->version[i];

		if (!v->brief->rules || !version_lives(v) || v->index == m->leader)
			continue;
		for (uint32_t n = 0; n < version_slots(v); n++)
			slot_look(v, n, now);
	}
}

/* --- reports -------------------------------------------------------------------------- */

/* A copy with an end: the follower may have written anything. */
#define TEXT(to, from) snprintf(to, sizeof(to), "%.*s", (int)sizeof(from) - 1, from)

/* The call that the rule was tried on, and its argument's name; "" when not known. */
static const char *arg_name(const struct rule_note *n)
{
	const struct call_desc *d = n->had_call ? call_find((long)n->had_call - 1) : NULL;

	return d && n->arg < d->nargs ? d->args[n->arg].name : "";
}

static const char *call_name(const struct rule_note *n)
{
	const struct call_desc *d = n->had_call ? call_find((long)n->had_call - 1) : NULL;

	return d ? d->name : "";
}

static void reason_word(const struct rule_note *n, char *text, size_t size)
{
	unsigned call = (n->step & 0x7fu) + 1;
	const char *side = n->step & 0x80 ? "right" : "left";

	switch (n->why) {
	case RULES_WHY_ARG:
		snprintf(text, size, "%s of %s, call %u on its %s, is another", arg_name(n),
			 call_name(n), call, side);
		break;
	case RULES_WHY_GUARD:
		snprintf(text, size, "the guard of call %u on its %s says no", call, side);
		break;
	case RULES_WHY_CALL:
		snprintf(text, size, "call %u on its %s is another", call, side);
		break;
	case RULES_WHY_MORE:
		snprintf(text, size, "call %u on its left has not come", call);
		break;
	case RULES_WHY_FOREIGN:
		snprintf(text, size, "%s of %s is none that a rule opened", arg_name(n),
			 call_name(n));
		break;
	case RULES_WHY_DIFFERS:
		snprintf(text, size, "%s of %s is not what it makes of it", arg_name(n),
			 call_name(n));
		break;
	default:
		snprintf(text, size, "it holds, but does not make the two the same");
	}
}

static void why_word(const struct rule_note *n, char *text, size_t size)
{
	char reason[96];

	reason_word(n, reason, sizeof(reason));
	if (n->kind == NOTE_FAILED)
		snprintf(text, size, "%.*s", (int)sizeof(n->text) - 1, n->text);
	else if (n->kind == NOTE_FOLLOWED)
		snprintf(text, size, "it was followed: %s", reason);
	else
		snprintf(text, size, "%s", reason);
}

/* A copy may hold any bytes; JSON may not. */
static json_t *text_json(const char *text)
{
	json_t *j = json_string(text);
	struct call_print print = { 0 };

	if (j)
		return j;
	print_bytes(&print, text, strlen(text));
	j = json_stringn_nocheck(print.text, print.len);
	print_free(&print);
	return j;
}

static json_t *number_json(const struct rule_note *n, const struct note_value *v)
{
	const struct call_desc *d = call_find((long)n->had_call - 1);

	return d && n->arg < d->nargs
		? json_sprintf("%lld", (long long)arg_number(&d->args[n->arg], v->number))
		: json_null();
}

static json_t *value_json(const struct rule_note *n, const struct note_value *v)
{
	size_t have = v->len < sizeof(v->bytes) ? v->len : sizeof(v->bytes);
	struct call_print print = { 0 };
	json_t *j;

	if (!v->known)
		return json_null();
	if (!v->memory)
		return number_json(n, v);
	print_bytes(&print, v->bytes, have);
	j = json_sprintf("%.*s%s", (int)print.len, print.text, have < v->len ? "..." : "");
	print_free(&print);
	return j;
}

/* What was there: the argument alone, or of another call its name and what it is about. */
static json_t *had_json(const struct rule_note *n)
{
	json_t *value, *j;

	if (!n->had_call)
		return json_null();
	value = value_json(n, &n->had);
	if (n->why == RULES_WHY_ARG || n->why >= RULES_WHY_FOREIGN)
		return value;
	j = *arg_name(n) && json_is_string(value)
		? json_sprintf("%s, %s %s", call_name(n), arg_name(n), json_string_value(value))
		: json_string(call_name(n));
	json_decref(value);
	return j;
}

static json_t *wanted_json(const struct rule_note *n)
{
	char want[sizeof(n->text)];

	TEXT(want, n->text);
	if (n->kind == NOTE_FAILED)
		return json_null();
	if (n->want_made)
		return value_json(n, &n->made);
	return *want ? text_json(want) : json_null();
}

void rules_word(const struct slot *s, char *text, size_t size)
{
	const struct rule_note n = s->rule;
	char why[128], name[sizeof(n.name)], file[sizeof(n.file)];
	const char *slash;

	why_word(&n, why, sizeof(why));
	TEXT(name, n.name);
	TEXT(file, n.file);
	slash = strrchr(file, '/');
	snprintf(text, size, "rule %.40s (%.48s:%u): %.60s", name, slash ? slash + 1 : file, n.line,
		 why);
}

json_t *rules_json(const struct rule_note *note)
{
	static const char *const how[] = { [NOTE_NEAREST] = "nearest", [NOTE_FOLLOWED] = "followed",
					   [NOTE_FAILED] = "failed" };
	const struct rule_note n = *note;
	char why[160], name[sizeof(n.name)], file[sizeof(n.file)];

	if (n.kind == NOTE_NONE || n.kind > NOTE_FAILED)
		return json_null();
	why_word(&n, why, sizeof(why));
	TEXT(name, n.name);
	TEXT(file, n.file);
	return json_pack("{s:o, s:o, s:I, s:s, s:o, s:o, s:o}", "name", text_json(name), "file",
			 text_json(file), "line", (json_int_t)n.line, "how", how[n.kind], "why",
			 text_json(why), "wanted", wanted_json(&n), "had", had_json(&n));
}
