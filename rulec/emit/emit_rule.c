/*
 * One rule's functions: left_N() for its left side, fits_N() for each call of
 * its right side, act_N() for what happens when such a call is served, and one
 * function around each block of C.
 *
 * A function of C binds the names that the block uses to locals called $name,
 * runs it, and in an action writes back what it changed.
 */
#include <stdlib.h>
#include <string.h>

#include "engine/core/must.h"
#include "rulec/emit/emit.h"

/* --- names of a block ------------------------------------------------------ */

static void mangled(struct buffer *to, const char *name)
{
	buffer_print(to, "$");
	for (; *name; name++)
		buffer_add(to, *name == '.' ? "$" : name, 1);
}

static bool used_before(const struct c_use *first, const struct c_use *use)
{
	while (first != use && strcmp(first->name, use->name))
		first = first->next;
	return first != use;
}

static bool is_assigned(const struct c_use *use, const char *name)
{
	for (; use; use = use->next)
		if (use->assigned && !strcmp(use->name, name))
			return true;
	return false;
}

/* Views that C fills live in the state: their names are macros for the place. */
static void views_define(struct unit *u, const struct place *at, const struct c_use *uses,
	struct buffer *to, bool define)
{
	for (const struct c_use *use = uses; use; use = use->next) {
		const struct binding *b = bind_use(u, at, use->name);

		MUST(b && (b->kind != BIND_VIEW || b->slot < RULES_VIEWS));
		if (b->kind != BIND_VIEW || used_before(uses, use))
			continue;
		buffer_print(to, define ? "#define " : "#undef ");
		mangled(to, use->name);
		if (define)
			buffer_print(to, " (run->state->view[%u])", b->slot);
		buffer_print(to, "\n");
	}
}

static void locals(struct unit *u, const struct place *at, const struct c_use *uses,
	struct buffer *to)
{
	for (const struct c_use *use = uses; use; use = use->next) {
		const struct binding *b = bind_use(u, at, use->name);

		MUST(b);	/* or pass bind has said that it is not bound */
		if (used_before(uses, use))
			continue;
		if (b->kind == BIND_VIEW) {
			if (use->fills)
				buffer_print(to, "\trun->state->view[%u] = view_none();\n",
					b->slot);
			continue;
		}
		buffer_print(to, "\t%s%s ", is_assigned(uses, use->name) ? "" : "const ",
			b->view ? "struct view" : "int64_t");
		mangled(to, use->name);
		buffer_print(to, " = ");
		emit_value(to, at, b);
		buffer_print(to, ";\n");
	}
}

/*
 * Where what comes next stands, if it fails.  Said by whoever calls the function with
 * the C, which may want so much stack that it does not begin.
 */
void emit_place(struct unit *u, const struct rule *rule, const struct code *code,
	struct buffer *to)
{
	buffer_print(to, "\trun->rule = %u;\n\trules_at(run, %u, %u);\n", rule->index,
		text_file(u, code->loc.file), diag_line(u, code->loc));
}

/* --- guards ---------------------------------------------------------------- */

static void guard_emit(struct unit *u, const struct place *at, const struct code *code,
	const char *name, struct buffer *to)
{
	struct c_use *uses = cblock_uses(u, code);

	views_define(u, at, uses, to, true);
	buffer_print(to, "BLOCK static bool %s(struct rules_run *run)\n{\n", name);
	locals(u, at, uses, to);
	buffer_print(to, "\t(void)run;\n");
	cblock_emit(u, at, code, to);
	/* On the block's last line: a missing return is its fault. */
	buffer_print(to, " }\n");
	emit_line(to, 1, "rules");
	views_define(u, at, uses, to, false);
	buffer_print(to, "\n");
}

/* --- guards that are equal ------------------------------------------------- */

#define GUARDS_MAX	65534	/* rules_say_no() keeps a number in 16 bits, + 1 */
_Static_assert(GUARDS_MAX + 1 <= UINT16_MAX, "rules_said_no keeps a guard's number, + 1");

/* What a guard says depends on the calls alone, not on what C has bound before. */
static bool stands_alone(struct unit *u, const struct place *at, const struct c_use *uses)
{
	for (const struct c_use *use = uses; use; use = use->next) {
		const struct c_use *fills = uses;

		if (bind_use(u, at, use->name)->kind != BIND_VIEW)
			continue;
		while (fills && !(fills->fills && !strcmp(fills->name, use->name)))
			fills = fills->next;
		if (!fills)
			return false;
	}
	return true;
}

/* Guards with the same text that means the same get the same number; 0: none. */
static unsigned guard_number(struct unit *u, struct rule *rule, struct step *s)
{
	struct place at = { rule, s, NULL, false };
	struct c_use *uses = cblock_uses(u, s->guard);
	struct buffer key = { 0 };
	unsigned number;

	if (!stands_alone(u, &at, uses) || u->guards == GUARDS_MAX)
		return 0;
	buffer_print(&key, "guard\n");
	views_define(u, &at, uses, &key, true);
	locals(u, &at, uses, &key);
	buffer_add(&key, s->guard->text.at, s->guard->text.len);
	number = text_first(u, key.at, u->guards + 1);
	MUST(number && number <= u->guards + 1);
	u->guards += number > u->guards;
	free(key.at);
	return number;
}

void emit_guards(struct unit *u)
{
	unsigned *uses = arena_alloc(u->arena, (GUARDS_MAX + 1) * sizeof(*uses));

	u->guard_emitted = arena_alloc(u->arena, GUARDS_MAX + 1);
	for (unsigned i = 0; i < u->nrules; i++)
		for (struct step *s = u->rules[i]->steps; s; s = s->next)
			if (s->guard)
				uses[s->guard_same = guard_number(u, u->rules[i], s)]++;
	for (unsigned i = 0; i < u->nrules; i++)
		for (struct step *s = u->rules[i]->steps; s; s = s->next)
			s->guard_shared = s->guard && s->guard_same && uses[s->guard_same] > 1;
}

/* --- the left side --------------------------------------------------------- */

/* Calls, or one argument, as the rule has them: for reports. */
static unsigned calls_want(struct unit *u, const struct call *c, bool has_args)
{
	struct buffer text = { 0 };

	for (; c; c = c->next) {
		fmt_call(&text, c, has_args);
		buffer_print(&text, c->next ? " | " : "");
	}
	return want_add(u, &text);
}

static unsigned arg_want(struct unit *u, const struct arg *a)
{
	struct buffer text = { 0 };

	fmt_arg(&text, a);
	return want_add(u, &text);
}

/* One alternative: each argument on its own, so that a report can name it. */
static void single_test(struct unit *u, const struct place *at, const struct call *c,
	struct origin from, unsigned want, struct buffer *to)
{
	unsigned i = 0;

	buffer_print(to, "\tif (!(");
	emit_row_test(to, c, from);
	buffer_print(to, "))\n\t\treturn no(run, RULES_WHY_CALL, %u, 0, %u);\n", from.step,
		want);
	for (const struct arg *a = c->args; a; a = a->next, i++) {
		struct buffer test = { 0 };

		if (emit_arg_test(&test, u, at, c, a, i))
			buffer_print(to, "\tif (!(%s))\n\t\treturn no(run, RULES_WHY_ARG, "
				"%u, %u, %u);\n", test.at, from.step, i, arg_want(u, a));
		free(test.at);
	}
}

static void call_test(struct unit *u, const struct place *at, const struct call *c,
	struct origin from, struct buffer *to)
{
	unsigned i = 0;

	buffer_print(to, "(");
	emit_row_test(to, c, from);
	for (const struct arg *a = c->args; a; a = a->next, i++) {
		struct buffer test = { 0 };

		if (emit_arg_test(&test, u, at, c, a, i))
			buffer_print(to, " && %s", test.at);
		free(test.at);
	}
	buffer_print(to, ")");
}

static void any_test(struct unit *u, const struct place *at, const struct call *calls,
	struct origin from, struct buffer *to)
{
	for (const struct call *c = calls; c; c = c->next) {
		call_test(u, at, c, from, to);
		if (c->next)
			buffer_print(to, " ||\n\t      ");
	}
}

/* One of the alternatives. */
static void calls_test(struct unit *u, const struct place *at, const struct call *calls,
	struct origin from, unsigned want, struct buffer *to)
{
	if (!calls->next) {
		single_test(u, at, calls, from, want, to);
		return;
	}
	buffer_print(to, "\tif (!(");
	any_test(u, at, calls, from, to);
	buffer_print(to, "))\n\t\treturn no(run, RULES_WHY_CALL, %u, 0, %u);\n", from.step,
		want);
}

static void step_emit(struct unit *u, struct rule *rule, struct step *s, struct buffer *to)
{
	struct place at = { rule, s, NULL, false };
	unsigned want = calls_want(u, s->alts, true);

	calls_test(u, &at, s->calls, (struct origin){ false, s->index }, want, to);
	MUST(!s->guard_shared || (s->guard && s->guard_same));
	if (s->guard_shared) {
		buffer_print(to, "\tif (!guard_said_%u(run, %u, %u, %u, %u, %u))\n"
			"\t\treturn false;\n", s->guard_same, rule->index,
			text_file(u, s->guard->loc.file), diag_line(u, s->guard->loc), s->index,
			want);
	} else if (s->guard) {
		emit_place(u, rule, s->guard, to);
		buffer_print(to, "\tif (!guard_%u_%u(run))\n\t\treturn no(run, "
			"RULES_WHY_GUARD, %u, 0, %u);\n", rule->index, s->index, s->index, want);
	}
	buffer_print(to, "\tif (n == %u)\n\t\treturn true;\n", s->index + 1);
}

/* One function does for all guards that are equal. */
static bool is_emitted(struct unit *u, const struct step *s)
{
	bool was = u->guard_emitted[s->guard_same];

	MUST(s->guard_same && s->guard_same <= u->guards);

	u->guard_emitted[s->guard_same] = true;
	return was;
}

/* What all rules with this guard do with it. */
static void guard_said_emit(unsigned n, struct buffer *to)
{
	buffer_print(to, "SMALL static bool guard_said_%u(struct rules_run *run, unsigned rule, "
		"unsigned file,\n\tunsigned line, unsigned step, unsigned want)\n{\n"
		"\trun->rule = (uint16_t)rule;\n\trules_at(run, file, line);\n"
		"\tif (rules_said_no(run, %u) || (!guard_same_%u(run) && rules_say_no(run, %u)))\n"
		"\t\treturn no(run, RULES_WHY_GUARD, step, 0, want);\n"
		"\treturn true;\n}\n\n", n, n, n, n);
}

static void left_emit(struct unit *u, struct rule *rule, struct buffer *to)
{
	for (struct step *s = rule->steps; s; s = s->next) {
		char name[40];

		snprintf(name, sizeof(name), "guard_%u_%u", rule->index, s->index);
		if (s->guard_shared)
			snprintf(name, sizeof(name), "guard_same_%u", s->guard_same);
		if (s->guard && !(s->guard_shared && is_emitted(u, s)))
			guard_emit(u, &(struct place){ rule, s, NULL, false }, s->guard, name, to);
		else
			continue;
		if (s->guard_shared)
			guard_said_emit(s->guard_same, to);
	}
	if (!rule->steps)
		return;
	buffer_print(to, "BLOCK static bool left_%u(struct rules_run *run, unsigned n)\n{\n",
		rule->index);
	for (struct step *s = rule->steps; s; s = s->next)
		step_emit(u, rule, s, to);
	buffer_print(to, "\treturn false;\n}\n\n");
}

/* --- the right side: is it this call --------------------------------------- */

/* How many of the leader's calls must be there for what a name stands for. */
static unsigned name_needs(const struct rule *rule, const struct binding *b)
{
	switch (b ? b->kind : BIND_OWN) {
	case BIND_EVENT: case BIND_EVENT_RET:
		return b->at + 1;
	case BIND_VIEW:		/* whichever of them filled it */
		return rule->nsteps;
	default:
		return 0;
	}
}

static unsigned most(unsigned a, unsigned b)
{
	return a > b ? a : b;
}

static unsigned fits_needs(struct unit *u, const struct place *at)
{
	const struct out *o = at->out;
	unsigned n = o->match ? o->match->index + 1 : 0;

	for (const struct call *c = o->calls; c; c = c->next)
		for (const struct arg *a = c->args; a; a = a->next)
			if (a->form == ARG_NAME)
				n = most(n, name_needs(at->rule, bind_find(at->rule, a->name)));
	if (o->guard)
		for (const struct c_use *use = cblock_uses(u, o->guard); use; use = use->next)
			n = most(n, name_needs(at->rule, bind_use(u, at, use->name)));
	return n;
}

/* While the left side is undecided, some of its calls are not there: it may fit. */
static void undecided_body(struct unit *u, const struct place *at, struct buffer *to)
{
	unsigned needs = fits_needs(u, at);

	if (needs < 2)
		return;
	buffer_print(to, "\tif (run->events < %u)\n\t\treturn ", needs);
	for (const struct call *c = at->out->calls; c; c = c->next) {
		emit_row_test(to, c, (struct origin){ true, 0 });
		buffer_print(to, c->next ? " || " : ";\n");
	}
}

static void fits_body(struct unit *u, const struct place *at, struct buffer *to)
{
	const struct out *o = at->out;
	unsigned want = o->label ? calls_want(u, o->label->alts, true) :
		calls_want(u, o->call, o->has_args);

	undecided_body(u, at, to);
	if (o->match)
		buffer_print(to, "\tif (run->call->nr != run->ev[%u]->nr)\n\t\treturn no(run, "
			"RULES_WHY_CALL, 0, 0, %u);\n", o->match->index, want);
	calls_test(u, at, o->calls, (struct origin){ true, 0 }, want, to);
	if (o->guard) {
		emit_place(u, at->rule, o->guard, to);
		buffer_print(to, "\tif (!guard_out_%u(run))\n\t\treturn no(run, "
			"RULES_WHY_GUARD, 0, 0, %u);\n", o->number, want);
	}
	buffer_print(to, "\treturn true;\n");
}

/* Most calls of most right sides ask the same: one function does for all. */
static void fits_emit(struct unit *u, struct rule *rule, struct out *o, struct buffer *to)
{
	struct place at = { rule, NULL, o, false };
	struct buffer body = { 0 };
	char name[40];

	snprintf(name, sizeof(name), "guard_out_%u", o->number);
	if (o->guard)
		guard_emit(u, &at, o->guard, name, to);
	fits_body(u, &at, &body);
	o->fits = text_first(u, body.at, o->number);
	MUST(o->fits <= o->number);	/* the first of its kind, which is printed */
	if (o->fits == o->number)
		buffer_print(to, "BLOCK static bool fits_%u(struct rules_run *run)\n{\n%s}\n\n",
			o->number, body.at);
	free(body.at);
}

/* --- the right side: what happens then ------------------------------------- */

static void size_text(struct buffer *to, const struct arg_desc *arg, const char *len)
{
	unsigned size = layout_size(arg->what);

	buffer_print(to, size > 1 ? "%s / %u" : "%s", len, size);
}

static void ret_set(struct buffer *to, const char *value)
{
	buffer_print(to, "\trun->edit.ret = %s;\n\trun->edit.ret_set = 1;\n", value);
}

/* A string on the right for memory that the call fills. */
static void given_emit(const struct out *o, struct buffer *to)
{
	const struct call *c = o->calls;
	unsigned i = 0;

	for (const struct arg *a = c->args; a; a = a->next, i++) {
		if (!out_gives(o, c, a, i))
			continue;
		MUST(i < RULES_ARGS && a->pattern && a->pattern->kind == PATTERN_STRING);
		buffer_print(to, "\trun->edit.buf[%u] = view_of(", i);
		emit_bytes(to, a->pattern->bytes);
		buffer_print(to, ", %zu);\n\trun->edit.edited |= %u;\n", a->pattern->bytes.len,
			1u << i);
		if (c->row->desc.args[i].len_rule == LEN_RULE_RESULT)
			buffer_print(to, "\trun->edit.ret = %zu;\n\trun->edit.ret_set = 1;\n",
				a->pattern->bytes.len);
	}
}

/* Success: as many bytes as were to be written, else 0. */
static void success_emit(const struct call *c, struct buffer *to)
{
	for (unsigned i = 0; i < c->row->desc.nargs; i++) {
		const struct arg_desc *arg = &c->row->desc.args[i];

		if (c->row->desc.result == KIND_SIZE && arg->dir == DIR_IN &&
		    (arg->what == LAYOUT_iovec || arg->what == LAYOUT_msghdr)) {
			buffer_print(to, "\trun->edit.ret = (int64_t)view_len(own_bytes(run, "
				"%u));\n", i);
			return;
		}
		if (c->row->desc.result == KIND_SIZE && arg->dir == DIR_IN &&
		    arg->len_rule == LEN_RULE_COUNT && arg->what == LAYOUT_bytes) {
			buffer_print(to, "\trun->edit.ret = (int64_t)run->call->args[%u];\n",
				arg->len_arg);
			return;
		}
	}
	buffer_print(to, "\trun->edit.ret = 0;\n");
}

struct edit {
	struct unit *u;
	const struct place *at;
	const struct c_use *uses;
	struct buffer *to;
	bool ret_assigned;
};

static bool count_assigned(const struct edit *e, unsigned arg)
{
	for (const struct binding *b = e->at->rule->bindings; b; b = b->next)
		if (bind_is_matched(b, e->at->out, arg) && is_assigned(e->uses, b->name))
			return true;
	return false;
}

/* A new length where the leader's call had done all it was asked to. */
static void ret_follows(const struct edit *e, unsigned count, const char *value)
{
	unsigned step = e->at->out->match->index;

	MUST(count < CALL_ARGS);

	if (e->ret_assigned || e->at->out->calls->row->desc.result != KIND_SIZE)
		return;
	buffer_print(e->to, "\tif (run->ev[%u]->ret == (int64_t)run->ev[%u]->args[%u]) {\n"
		"\t\trun->edit.ret = (int64_t)%s;\n\t\trun->edit.ret_set = 1;\n\t}\n",
		step, step, count, value);
}

/* Content in pieces: how many there are is not how long it is. */
static void pieces_follow(const struct edit *e, const struct binding *b, const char *len)
{
	const struct step *s = e->at->out->match;

	if (!s || e->ret_assigned || e->at->out->calls->row->desc.result != KIND_SIZE)
		return;
	buffer_print(e->to, "\tif (run->ev[%u]->ret == (int64_t)view_len(event_bytes(run, %u, ",
		s->index, s->index);
	emit_arg_index(e->to, e->at, b);
	buffer_print(e->to, "))) {\n\t\trun->edit.ret = (int64_t)%s;\n"
		"\t\trun->edit.ret_set = 1;\n\t}\n", len);
}

static void view_back(const struct edit *e, const struct binding *b, const char *name)
{
	const struct arg_desc *arg = &e->at->out->calls->row->desc.args[b->arg[0]];
	struct buffer len = { 0 }, count = { 0 };

	buffer_print(e->to, "\trun->edit.buf[");
	emit_arg_index(e->to, e->at, b);
	buffer_print(e->to, "] = %s;\n\trun->edit.edited |= (uint8_t)(1u << ", name);
	emit_arg_index(e->to, e->at, b);
	buffer_print(e->to, ");\n");
	buffer_print(&len, "view_len(%s)", name);
	size_text(&count, arg, len.at);
	if (arg->len_rule == LEN_RULE_RESULT && !e->ret_assigned) {
		buffer_print(e->to, "\trun->edit.ret = (int64_t)(%s);\n"
			"\trun->edit.ret_set = 1;\n", count.at);
	} else if (arg->what == LAYOUT_iovec || arg->what == LAYOUT_msghdr) {
		pieces_follow(e, b, len.at);
	} else if (arg->len_rule == LEN_RULE_COUNT && e->at->out->match &&
		   !count_assigned(e, arg->len_arg)) {
		buffer_print(e->to, "\trun->edit.args[%u] = %s;\n\trun->edit.edited |= %u;\n",
			arg->len_arg, count.at, 1u << arg->len_arg);
		ret_follows(e, arg->len_arg, count.at);
	}
	free(len.at);
	free(count.at);
}

static void number_back(const struct edit *e, const struct binding *b, const char *name)
{
	const struct call_name *row = e->at->out->calls->row;

	if (arg_counts_result_of(row, b->arg[0]) >= 0) {
		/* How much the follower asks for is its own: the result says the rest. */
		buffer_print(e->to, "\t(void)%s;\n", name);
		return;
	}
	buffer_print(e->to, "\trun->edit.args[");
	emit_arg_index(e->to, e->at, b);
	buffer_print(e->to, "] = (uint64_t)%s;\n\trun->edit.edited |= (uint8_t)(1u << ", name);
	emit_arg_index(e->to, e->at, b);
	buffer_print(e->to, ");\n");
	for (unsigned i = 0; i < row->desc.nargs; i++)
		if (row->desc.args[i].len_rule == LEN_RULE_COUNT &&
		    row->desc.args[i].len_arg == b->arg[0] && row->desc.args[i].dir == DIR_IN) {
			ret_follows(e, b->arg[0], name);
			return;
		}
}

static void write_back(const struct edit *e)
{
	for (const struct c_use *use = e->uses; use; use = use->next) {
		const struct binding *b = bind_use(e->u, e->at, use->name);
		struct buffer name = { 0 };

		if (!use->assigned || b->kind == BIND_VIEW)
			continue;
		MUST(e->at->out->calls || b->kind == BIND_OWN_RET);
		mangled(&name, use->name);
		if (b->kind == BIND_OWN_RET)
			ret_set(e->to, name.at);
		else if (b->view)
			view_back(e, b, name.at);
		else
			number_back(e, b, name.at);
		free(name.at);
	}
}

static bool assigns_ret(struct unit *u, const struct place *at, const struct c_use *uses)
{
	for (; uses; uses = uses->next)
		if (uses->assigned && bind_use(u, at, uses->name)->kind == BIND_OWN_RET)
			return true;
	return false;
}

static void kept_emit(const struct place *at, struct buffer *to)
{
	for (const struct binding *b = at->out->kept; b; b = b->next_kept) {
		MUST(b->kept && b->slot < RULES_NUMS && b->at == at->out->index);
		buffer_print(to, "\trun->state->num[%u] = ", b->slot);
		if (b->kind == BIND_OWN_RET && at->out->match)
			buffer_print(to, "run->edit.ret_set ? run->edit.ret : rules_ret(run, %u)",
				at->out->match->index);
		else
			emit_value(to, at, b);
		buffer_print(to, ";\n");
	}
}

static void act_emit(struct unit *u, struct rule *rule, struct out *o, struct buffer *to)
{
	struct place at = { rule, NULL, o, true };
	struct c_use *uses = o->action ? cblock_uses(u, o->action) : NULL;
	struct edit edit = { u, &at, uses, to, assigns_ret(u, &at, uses) };

	if (!(o->flags & RULES_OUT_ACTION))
		return;
	views_define(u, &at, uses, to, true);
	buffer_print(to, "BLOCK static void act_%u(struct rules_run *run)\n{\n", o->number);
	if (o->kind == RULES_OUT_ANSWER)
		success_emit(o->calls, to);
	if (o->calls)
		given_emit(o, to);
	if (o->action) {
		buffer_print(to, "\t{\n");
		locals(u, &at, uses, to);
		cblock_emit(u, &at, o->action, to);
		buffer_print(to, "\n");
		emit_line(to, 1, "rules");
		if (cblock_returns(u, o->action))
			buffer_print(to, "_:\t;\n");
		write_back(&edit);
		buffer_print(to, "\t}\n");
	}
	kept_emit(&at, to);
	buffer_print(to, "\t(void)run;\n}\n");
	views_define(u, &at, uses, to, false);
	buffer_print(to, "\n");
}

void emit_rule(struct unit *u, struct rule *rule, struct buffer *to)
{
	buffer_print(to, "/* line %u%s%s */\n", diag_line(u, rule->left_loc),
		rule->name ? ": " : "", rule->name ? rule->name : "");
	left_emit(u, rule, to);
	for (struct out *o = rule->outs; o; o = o->next) {
		fits_emit(u, rule, o, to);
		act_emit(u, rule, o, to);
	}
	if (rule->drop)
		act_emit(u, rule, rule->drop, to);
}
