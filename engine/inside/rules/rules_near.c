/*
 * The rule that came nearest, for a report.
 */
#include <asm/signal.h>
#include <asm/unistd.h>
#include <linux/errno.h>
#include <linux/mman.h>
#include <linux/sched.h>
#include <linux/time.h>
#include <linux/time_types.h>

#include "engine/core/rules.h"
#include "engine/core/walk.h"
#include "engine/inside/gate/thread.h"
#include "engine/inside/rules/follow_rules.h"
#include "engine/inside/rules/opened.h"
#include "engine/inside/rules/rules_near.h"
#include "engine/inside/rules/rules_sight.h"

static void text_copy(char *to, size_t size, const char *from)
{
	size_t n = 0;

	/* Names lie in the object, which may be damaged. */
	while (n + 1 < size && !target_in(&to[n], (uint64_t)from + n, 1) && to[n])
		n++;
	to[n] = 0;
}

static bool is_memory(const struct rules_call *call, unsigned arg)
{
	const struct call_desc *d = call_find_variant(call->nr, call->args);

	return d && arg < d->nargs && d->args[arg].kind >= KIND_VALUES;
}

static void value_bytes(struct note_value *v, struct view bytes)
{
	v->memory = 1;
	v->len = bytes.len_;
	target_in(v->bytes, (uint64_t)bytes.at_,
		  bytes.len_ < sizeof(v->bytes) ? bytes.len_ : sizeof(v->bytes));
}

static void value_take(struct thread *t, struct note_value *v, const struct rules_call *call,
		       unsigned arg)
{
	*v = (struct note_value){ .known = 1, .number = call->args[arg % RULES_ARGS] };
	if (is_memory(call, arg))
		value_bytes(v, sight_bytes(t, call, arg));
}

/* Of a whole call: the first content that there is, else its first argument. */
static unsigned telling_arg(struct thread *t, const struct rules_call *call)
{
	for (unsigned i = 0; i < RULES_ARGS; i++)
		if (is_memory(call, i) && sight_bytes(t, call, i).len_)
			return i;
	return 0;
}

/* What the rule was tried on, and what that had there. */
static void note_had(struct thread *t, struct rule_note *to)
{
	struct rules_thread *rt = t->rules;
	const struct rules_call *call = to->step & 0x80 ? &rt->call : sight_peek(t, to->step);

	if (!call)
		return;
	if (to->why != RULES_WHY_ARG && to->why != RULES_WHY_FOREIGN)
		to->arg = (uint8_t)telling_arg(t, call);
	to->had_call = call->nr + 1;
	value_take(t, &to->had, call, to->arg);
}

/* A match whose content or number, as the rule left it, is another. */
static void note_made(struct thread *t, struct rule_note *to)
{
	struct rules_thread *rt = t->rules;
	const struct rules_edit *edit = &rt->answer.edit;
	unsigned arg = rt->mismatch.arg % RULES_ARGS;
	const struct rules_call *call = sight_peek(t, rt->answer.event);

	to->why = RULES_WHY_DIFFERS;
	to->step = 0x80;
	to->arg = (uint8_t)arg;
	to->had_call = rt->call.nr + 1;
	value_take(t, &to->had, &rt->call, arg);
	if (!call)
		return;
	to->want_made = 1;
	value_take(t, &to->made, call, arg);
	if (!(edit->edited >> arg & 1))
		return;
	to->made.number = edit->args[arg];
	if (to->made.memory)
		value_bytes(&to->made, edit->buf[arg]);
}

void rules_near_note(struct thread *t, enum note_kind kind, unsigned rule, const char *text)
{
	struct rules_thread *rt = t->rules;
	struct rule_note *to = &t->slot->rule;
	const struct rules_object *o = rt->now ? &rt->rules.object : NULL;
	bool inner;

	*to = (struct rule_note){ .kind = kind, .why = rt->run.why, .step = rt->run.why_step,
				  .arg = rt->run.why_arg };
	if (text)
		text_copy(to->text, sizeof(to->text), text);
	if (!o || rule >= o->rules)
		return;
	if (kind != NOTE_FAILED && rt->differs)
		note_made(t, to);
	else if (kind != NOTE_FAILED)
		note_had(t, to);
	inner = rt->run.line && (kind == NOTE_FAILED || to->why == RULES_WHY_GUARD);
	if (!text)
		text_copy(to->text, sizeof(to->text), o->wanted + rt->run.why_want);
	to->line = inner ? rt->run.line : o->rows[rule].line;
	text_copy(to->name, sizeof(to->name), o->text + o->rows[rule].name);
	text_copy(to->file, sizeof(to->file),
		  o->text + (inner ? rt->run.file : o->rows[rule].file));
}

static enum rules_verdict ask_nearest(struct thread *t)
{
	int rule = rules_nearest(&t->rules->rules, &t->rules->run);

	t->rules->answer.rule = (uint16_t)rule;
	return rule < 0 ? RULES_DEFAULT : RULES_MATCH;
}

/* It holds, but is one for what a rule's call opened, and this is not: then that is why. */
static void foreign_note(struct rules_thread *rt)
{
	const struct rules_object *o = &rt->rules.object;
	unsigned pos = rt->run.why_step & 0x7f;

	if (rt->run.why == RULES_WHY_NONE && rt->run.why_step & 0x80 &&
	    o->outs[o->rows[rt->answer.rule].first_out + pos].flags & RULES_OUT_PRIVATE &&
	    !rules_opened(rt->call.args[0]))
		rules_no(&rt->run, RULES_WHY_FOREIGN, 0x80u | pos, 0, 0);
}

void rules_note_nearest(struct thread *t, struct walk *w, long nr)
{
	struct rules_host host = { sight_peek, sight_bytes };
	struct rules_thread *rt = t->rules;

	t->slot->rule.kind = NOTE_NONE;
	if (!rt || !rt->now)
		return;
	if (rt->state.active) {
		rules_near_note(t, NOTE_FOLLOWED, rt->state.active - 1u, NULL);
		return;
	}
	/* It may be one that no rule names, and so none that they were asked about. */
	if (!rules_place_ready(t, w, nr))
		return;
	rules_run_ready(t, &host, true);
	if (rules_ask(t, ask_nearest) != RULES_MATCH)
		return;
	foreign_note(rt);
	rules_near_note(t, NOTE_NEAREST, rt->answer.rule, NULL);
}
