/*
 * C expressions for what a rule looks at: arguments of an event or of the
 * follower's call, values of names, tests of patterns.
 *
 * Numbers are int64_t in C, sign or zero extended as the argument's kind says:
 * the upper half of a register is not part of an int.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "engine/core/must.h"
#include "rulec/emit/emit.h"
#include "rulec/emit/find.h"

void emit_bytes(struct buffer *to, struct text bytes)
{
	buffer_add(to, "\"", 1);
	for (size_t i = 0; i < bytes.len; i++) {
		unsigned char c = (unsigned char)bytes.at[i];

		if (c < ' ' || c > '~' || c == '"' || c == '\\' || c == '?')
			buffer_print(to, "\\%03o", c);
		else
			buffer_add(to, bytes.at + i, 1);
	}
	buffer_add(to, "\"", 1);
}

void emit_number(struct buffer *to, int64_t n)
{
	if (n == INT64_MIN)
		buffer_print(to, "INT64_MIN");
	else
		buffer_print(to, "INT64_C(%lld)", (long long)n);
}

/* --- arguments ------------------------------------------------------------- */

static enum find_width width_of(enum arg_kind kind)
{
	switch (kind) {
	case KIND_INT: case KIND_FD: case KIND_DIRFD: case KIND_PID: case KIND_SIG:
	case KIND_UID: case KIND_GID: case KIND_WAIT:
		return FIND_SIGNED_32;
	case KIND_UINT: case KIND_XINT: case KIND_OCT: case KIND_MODE: case KIND_ENUM:
	case KIND_FLAGS: case KIND_DEV:
		return FIND_UNSIGNED_32;
	default:
		return FIND_WHOLE;
	}
}

unsigned emit_width(const struct call_name *row, unsigned i)
{
	return width_of(row->desc.args[i].kind);
}

static void raw(struct buffer *to, unsigned i, struct origin from)
{
	if (from.own)
		buffer_print(to, "run->call->args[%u]", i);
	else
		buffer_print(to, "event_arg(run, %u, %u)", from.step, i);
}

void emit_arg_value(struct buffer *to, const struct call_name *row, unsigned i,
	struct origin from)
{
	static const char *const casts[] = { "(int64_t)(int32_t)", "(int64_t)(uint32_t)",
		"(int64_t)" };

	buffer_print(to, "%s", casts[width_of(row->desc.args[i].kind)]);
	raw(to, i, from);
}

void emit_arg_bytes(struct buffer *to, unsigned i, struct origin from)
{
	if (from.own)
		buffer_print(to, "own_bytes(run, %u)", i);
	else
		buffer_print(to, "event_bytes(run, %u, %u)", from.step, i);
}

/* A literal as the argument's width has it, so that -1 and 0xffffffff are one. */
int64_t emit_narrow(const struct call_name *row, unsigned i, int64_t n)
{
	switch (width_of(row->desc.args[i].kind)) {
	case FIND_SIGNED_32: return (int32_t)n;
	case FIND_UNSIGNED_32: return (uint32_t)n;
	default: return n;
	}
}

/* --- names ----------------------------------------------------------------- */

static const struct call *binding_calls(const struct place *at, const struct binding *b)
{
	const struct step *s = at->rule->steps;
	const struct out *o = at->rule->outs;

	MUST(b->kind == BIND_EVENT || b->kind == BIND_OWN);
	MUST(b->at < (b->kind == BIND_EVENT ? at->rule->nsteps : at->rule->nouts));

	if (b->kind == BIND_EVENT) {
		while (s->index != b->at)
			s = s->next;
		return s->calls;
	}
	while (o->index != b->at)
		o = o->next;
	return o->calls;
}

static struct origin binding_origin(const struct binding *b)
{
	return (struct origin){ b->kind == BIND_OWN, b->at };
}

static void one_value(struct buffer *to, const struct call *c, const struct binding *b,
	unsigned alt)
{
	MUST(alt < b->alts && b->arg[alt] < c->row->desc.nargs);
	if (b->view)
		emit_arg_bytes(to, b->arg[alt], binding_origin(b));
	else
		emit_arg_value(to, c->row, b->arg[alt], binding_origin(b));
}

/* All alternatives have the name in the same place. */
static bool is_uniform(const struct call *calls, const struct binding *b)
{
	unsigned alt = 0;

	for (const struct call *c = calls; c; c = c->next, alt++)
		if (b->arg[alt] != b->arg[0] || width_of(c->row->desc.args[b->arg[alt]].kind) !=
		    width_of(calls->row->desc.args[b->arg[0]].kind))
			return false;
	return true;
}

static void nr_of(struct buffer *to, struct origin from)
{
	if (from.own)
		buffer_print(to, "run->call->nr");
	else
		buffer_print(to, "run->ev[%u]->nr", from.step);
}

static void argument_value(struct buffer *to, const struct place *at, const struct binding *b)
{
	const struct call *calls = binding_calls(at, b);
	unsigned alt = 0;

	if (is_uniform(calls, b)) {
		one_value(to, calls, b, 0);
		return;
	}
	buffer_print(to, "(");
	for (const struct call *c = calls; c; c = c->next, alt++) {
		if (c->next) {
			nr_of(to, binding_origin(b));
			buffer_print(to, " == %u ? ", c->row->nr);
		}
		one_value(to, c, b, alt);
		buffer_print(to, c->next ? " : " : ")");
	}
}

void emit_arg_index(struct buffer *to, const struct place *at, const struct binding *b)
{
	const struct call *calls = binding_calls(at, b);
	unsigned alt = 0;

	if (is_uniform(calls, b)) {
		buffer_print(to, "%u", b->arg[0]);
		return;
	}
	buffer_print(to, "(");
	for (const struct call *c = calls; c; c = c->next, alt++) {
		if (c->next) {
			nr_of(to, binding_origin(b));
			buffer_print(to, " == %u ? ", c->row->nr);
		}
		buffer_print(to, c->next ? "%u : " : "%u)", b->arg[alt]);
	}
}

void emit_value(struct buffer *to, const struct place *at, const struct binding *b)
{
	bool earlier = at->out && b->at != at->out->index;

	if (b->kind == BIND_VIEW)
		buffer_print(to, "run->state->view[%u]", b->slot);
	else if (b->kind == BIND_EVENT_RET)
		buffer_print(to, "rules_ret(run, %u)", b->at);
	else if (b->kind != BIND_EVENT && earlier)
		buffer_print(to, "run->state->num[%u]", b->slot);
	else if (b->kind == BIND_OWN_RET && at->out->match)
		buffer_print(to, "rules_ret(run, %u)", at->out->match->index);
	else if (b->kind == BIND_OWN_RET)
		buffer_print(to, "run->edit.ret");
	else
		argument_value(to, at, b);
}

/* --- tests ----------------------------------------------------------------- */

static void groups_emit(struct buffer *to, const struct place *at, const struct regex *x)
{
	bool any = false;

	for (unsigned i = 0; i < x->ngroups; i++)
		any |= x->group[i] != NULL;
	if (!any) {
		buffer_print(to, "0");
		return;
	}
	buffer_print(to, "(struct view *const[]){ ");
	for (unsigned i = 0; i < x->ngroups; i++) {
		const struct binding *b = x->group[i] ? bind_find(at->rule, x->group[i]) : NULL;

		if (b && b->kind == BIND_VIEW)
			buffer_print(to, "&run->state->view[%u], ", b->slot);
		else
			buffer_print(to, "0, ");
	}
	buffer_print(to, "}");
}

static void pattern_emit(struct buffer *to, const struct place *at, const struct pattern *pattern,
	const char *bytes)
{
	for (const struct pattern *p = pattern; p; p = p->next) {
		buffer_print(to, p == pattern ? "(" : " || ");
		MUST(p->kind != PATTERN_NAME || (p->let && p->let->pattern));
		MUST(p->kind != PATTERN_REGEX || p->regex);
		if (p->kind == PATTERN_NAME) {
			pattern_emit(to, at, p->let->pattern, bytes);
		} else if (p->kind == PATTERN_REGEX) {
			buffer_print(to, "re_%u(%s, ", p->regex->number, bytes);
			groups_emit(to, at, p->regex);
			buffer_print(to, ")");
		} else {
			buffer_print(to, "%s(%s, ", p->prefix ? "has_text" : "is_text", bytes);
			emit_bytes(to, p->bytes);
			buffer_print(to, ", %zu)", p->bytes.len);
		}
	}
	buffer_print(to, ")");
}

static void content_test(struct buffer *to, const struct place *at, const struct arg *a,
	unsigned i, struct origin from)
{
	struct buffer bytes = { 0 };

	emit_arg_bytes(&bytes, i, from);
	pattern_emit(to, at, a->pattern, bytes.at);
	free(bytes.at);
}

static void name_test(struct buffer *to, struct unit *u, const struct place *at,
	const struct call *c, const struct arg *a, unsigned i, struct origin from)
{
	struct binding *b = bind_use(u, at, a->name);

	MUST(b);

	if (b->view) {
		buffer_print(to, "view_same(");
		emit_arg_bytes(to, i, from);
		buffer_print(to, ", ");
		emit_value(to, at, b);
		buffer_print(to, ")");
	} else {
		emit_arg_value(to, c->row, i, from);
		buffer_print(to, " == ");
		emit_value(to, at, b);
	}
}

/* Is this argument the place where the name gets its value? */
static bool binds_here(const struct place *at, const struct binding *b, const struct arg *a,
	unsigned i)
{
	unsigned here = at->step ? at->step->index : at->out->index;

	if (b->kind != (at->step ? BIND_EVENT : BIND_OWN) || b->at != here)
		return false;
	/* The first of two places in one call binds, the other compares. */
	if (b->loc.begin == a->loc.begin && b->loc.file == a->loc.file)
		return true;
	for (unsigned alt = 1; alt < b->alts; alt++)
		if (b->arg[alt] == i)
			return true;
	return false;
}

bool emit_arg_test(struct buffer *to, struct unit *u, const struct place *at,
	const struct call *c, const struct arg *a, unsigned i)
{
	struct origin from = { at->out != NULL, at->step ? at->step->index : 0 };
	const struct binding *b = a->form == ARG_NAME ? bind_find(at->rule, a->name) : NULL;

	if (a->form == ARG_ANY)
		return false;
	if (b && (binds_here(at, b, a, i) || (at->out && bind_is_matched(b, at->out, i))))
		return false;
	if (at->out && (out_gives(at->out, c, a, i) || out_counts_given(at->out, c, i)))
		return false;
	if (a->form == ARG_NAME) {
		name_test(to, u, at, c, a, i, from);
	} else if (a->form == ARG_NULL) {
		raw(to, i, from);
		buffer_print(to, " == 0");
	} else if (a->form == ARG_NUMBER) {
		emit_arg_value(to, c->row, i, from);
		buffer_print(to, " == ");
		emit_number(to, emit_narrow(c->row, i, a->number));
	} else {
		content_test(to, at, a, i, from);
	}
	return true;
}

void emit_row_test(struct buffer *to, const struct call *c, struct origin from)
{
	nr_of(to, from);
	buffer_print(to, " == %u", c->row->nr);
	if (c->row->variant) {
		buffer_print(to, " && (");
		raw(to, c->row->arg, from);
		buffer_print(to, " & 0x%" PRIx64 "u) == 0x%" PRIx64 "u", c->row->mask,
			c->row->value);
	}
}
