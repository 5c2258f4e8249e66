/*
 * The rule that would have made a divergence none: a narrow one, for exactly what
 * was seen.  Whoever means more than that widens it (docs/rules.md).
 *
 *	an argument differs	the call is matched, and its content or number becomes
 *				the follower's
 *	the leader did more	what it made before the follower's call is dropped
 *	another call on the	the follower's is answered in the place of the leader's
 *	same descriptor
 *	the follower did more	its call is run, or answered as a success (@discard)
 *
 * Which of the last three it is cannot be known for sure: the leader's next calls
 * are looked at.  A rule is in rulec's language whatever the call's arguments are
 * (tests/unit/suggest.c tries all calls of the table); where none can help there
 * is a reason in its place.
 */
#include <stdlib.h>
#include <string.h>

#include "engine/core/must.h"
#include "engine/core/walk.h"
#include "engine/outside/report/report_parts.h"

#define CONTENT_MAX	200	/* bytes of content that a rule spells out */
#define PREFIX_MAX	48	/* of a longer one, so many columns are named */
#define TELLING		4	/* bytes of content say more than a descriptor's number */
#define TOLD_MAX	(NEXT_MAX + 2)	/* of the leader: one that was met, and those ahead */

/* Two calls that are told apart: the leader's, or the follower's that it is about to make. */
struct told {
	struct view view;
	const struct call_desc *desc;	/* of the number, not of a variant */
	const struct print_mem *mem;
};

struct content {
	uint8_t bytes[CONTENT_MAX + 1];
	size_t have;
	uint64_t len;
	bool known;
};

/* --- words of the language ------------------------------------------------------ */

static const char *byte_text(uint8_t c)
{
	static char text[8];

	if (c == '\n' || c == '\r' || c == '\t')
		return c == '\n' ? "\\n" : c == '\r' ? "\\r" : "\\t";
	snprintf(text, sizeof(text),
		 c < ' ' || c > '~' || strchr("\"\\$?", c) ? "\\%03o" : "%c", c);
	return text;
}

static void text_print(FILE *to, const uint8_t *bytes, size_t len, const char *end)
{
	fputc('"', to);
	for (size_t i = 0; i < len; i++)
		fputs(byte_text(bytes[i]), to);
	fprintf(to, "%s\"", end);
}

/* The argument's name, where the language and C have no other use for it. */
static const char *name_of(const struct call_desc *d, unsigned i)
{
	static const char *const own[] = { "a", "b", "c", "d", "e", "f" };
	static const char *const taken[] = { "as", "use", "let", "rule", "group", "begin",
					     "nothing", "ret", "new", "old" };
	const char *name = d->args[i].name;

	for (unsigned k = 0; k < sizeof(taken) / sizeof(taken[0]); k++)
		if (!strcmp(name, taken[k]))
			return own[i];
	for (unsigned k = 0; k < i; k++)
		if (!strcmp(name, d->args[k].name))
			return own[i];
	return name;
}

static bool is_memory(const struct arg_desc *a)
{
	return a->kind >= KIND_VALUES;
}

static bool is_address(const struct arg_desc *a)
{
	return a->kind == KIND_PTR || a->kind == KIND_SKIP;
}

/* --- content ------------------------------------------------------------------------ */

static bool has_content(const struct arg_desc *a)
{
	return is_memory(a) && a->dir & DIR_IN &&
	       (a->what == LAYOUT_text || a->what == LAYOUT_bytes || a->what == LAYOUT_iovec ||
		a->what == LAYOUT_msghdr);
}

static const struct part *content_part(const struct view *v, unsigned arg)
{
	for (unsigned i = 0; i < v->parts; i++)
		if (v->part[i].arg == arg &&
		    (v->part[i].kind == PART_WHOLE || v->part[i].kind == PART_BYTES))
			return &v->part[i];
	return NULL;
}

static void content_read(const struct told *t, unsigned arg, struct content *c)
{
	const struct part *p = content_part(&t->view, arg);

	*c = (struct content){ 0 };
	if (!p || !has_content(&t->desc->args[arg]) || (!p->bytes && !t->mem))
		return;
	c->have = part_read(p, t->mem, 0, c->bytes, sizeof(c->bytes));
	MUST(c->have <= sizeof(c->bytes));
	c->len = p->len;
	c->known = true;
}

/* Spelled out whole; else it is told by how it begins. */
static bool is_whole(const struct content *c)
{
	return c->known && c->len <= CONTENT_MAX && c->have == c->len;
}

static void content_print(FILE *to, const struct content *c)
{
	size_t n = 0, columns = 0;

	while (n < c->have && (columns += strlen(byte_text(c->bytes[n]))) <= PREFIX_MAX)
		n++;
	text_print(to, c->bytes, n, n < c->len ? "…" : "");
}

/* --- a call in a rule ----------------------------------------------------------------- */

static bool is_known(const struct told *t, unsigned i)
{
	return t->view.row && i < t->view.row->nargs && !(t->view.unknown >> i & 1) &&
	       !is_memory(&t->view.row->args[i]) && !is_address(&t->view.row->args[i]) &&
	       !is_memory(&t->desc->args[i]) && !is_address(&t->desc->args[i]);
}

static bool telling(const struct told *t)
{
	struct content c;

	for (unsigned i = 0; i < t->desc->nargs; i++) {
		content_read(t, i, &c);
		if (c.len >= TELLING && c.have >= TELLING)
			return true;
	}
	return false;
}

/* The call as it was made; what content tells needs no descriptor and no count. */
static void call_print(FILE *to, const struct told *t)
{
	const struct call_desc *d = t->desc;
	bool told = telling(t);
	struct content c;

	fprintf(to, "%s(", d->name);
	for (unsigned i = 0; i < d->nargs; i++) {
		content_read(t, i, &c);
		fputs(i ? ", " : "", to);
		if (c.len && c.have)
			content_print(to, &c);
		else if (is_known(t, i) && !told)
			fprintf(to, "%lld", (long long)arg_number(&d->args[i], t->view.args[i]));
		else
			fputc('_', to);
	}
	fputc(')', to);
}

/* Addresses, and structures: what a name of theirs would compare is not text. */
static bool is_unnamed(const struct call_desc *d, unsigned i)
{
	return is_address(&d->args[i]) || (is_memory(&d->args[i]) && !has_content(&d->args[i]));
}

/* The call with its arguments named, so that each is compared; but for one. */
static void named_print(FILE *to, const struct told *t, unsigned but, const char *as)
{
	const struct call_desc *d = t->desc;

	fprintf(to, "%s(", d->name);
	for (unsigned i = 0; i < d->nargs; i++) {
		const char *name = i == but ? as : is_unnamed(d, i) ? "_" : name_of(d, i);

		fprintf(to, "%s%s", i ? ", " : "", name);
	}
	fputc(')', to);
}

/* --- one argument differs ------------------------------------------------------------- */

/* So that it is for this call and not for all on the descriptor. */
static void content_guard(FILE *to, const struct told *leader)
{
	struct content c;

	for (unsigned i = 0; i < leader->desc->nargs; i++) {
		content_read(leader, i, &c);
		if (c.have < TELLING)
			continue;
		fprintf(to, " { $(%s) == ", name_of(leader->desc, i));
		content_print(to, &c);
		fputs(" }", to);
		return;
	}
}

static void number_rule(FILE *to, const struct told *leader, const struct told *own, unsigned arg)
{
	const struct arg_desc *a = &leader->desc->args[arg];
	char number[32];

	snprintf(number, sizeof(number), "%lld", (long long)arg_number(a, leader->view.args[arg]));
	named_print(to, leader, arg, number);
	content_guard(to, leader);
	fputs("\n\t=> ", to);
	snprintf(number, sizeof(number), "%lld", (long long)arg_number(a, own->view.args[arg]));
	named_print(to, leader, arg, number);
	fputc('\n', to);
}

/* What counts the content's bytes, or its pieces; nargs: nothing. */
static unsigned count_of(const struct call_desc *d, unsigned arg)
{
	return d->args[arg].len_rule == LEN_RULE_COUNT ? d->args[arg].len_arg : d->nargs;
}

/* Both are spelled out: the one becomes the other. */
static void content_rule(FILE *to, const struct told *leader, unsigned arg,
			 const struct content *theirs, const struct content *ours)
{
	const struct call_desc *d = leader->desc;
	const char *name = name_of(d, arg);
	unsigned count = count_of(d, arg);

	named_print(to, leader, d->nargs, "");
	fprintf(to, " { $(%s) == ", name);
	text_print(to, theirs->bytes, theirs->have, "");
	fputs(" }\n\t=> ", to);
	/* Pieces are the follower's own affair. */
	named_print(to, leader, d->args[arg].what == LAYOUT_iovec ? count : d->nargs, "_");
	fprintf(to, " -> { $(%s) = ", name);
	text_print(to, ours->bytes, ours->have, "");
	fputs("; }\n", to);
}

/* Too long for that: whatever the follower has there. */
static void free_rule(FILE *to, const struct told *leader, unsigned arg,
		      const struct content *theirs)
{
	const struct call_desc *d = leader->desc;
	unsigned count = count_of(d, arg);

	fprintf(to, "%s(", d->name);
	for (unsigned i = 0; i < d->nargs; i++) {
		fputs(i ? ", " : "", to);
		if (i == arg)
			content_print(to, theirs);
		else
			fputs(i == count || is_address(&d->args[i]) ? "_" : name_of(d, i), to);
	}
	fprintf(to, ")\n\t=> %s(", d->name);
	for (unsigned i = 0; i < d->nargs; i++) {
		fputs(i ? ", " : "", to);
		if (i == arg && d->result == KIND_SIZE)
			fputs("own", to);
		else
			fputs(i == arg || i == count || is_address(&d->args[i]) ? "_"
									      : name_of(d, i), to);
	}
	fputc(')', to);
	if (d->result == KIND_SIZE)
		fputs(" -> (ret) { if ($(ret) >= 0) $(ret) = view_len($(own)); }", to);
	fputc('\n', to);
}

/* The content whose length, if anything's, the argument is. */
static unsigned counted_by(const struct call_desc *d, unsigned arg)
{
	for (unsigned i = 0; i < d->nargs; i++)
		if (has_content(&d->args[i]) && count_of(d, i) == arg)
			return i;
	return arg;
}

static bool may_run(const struct call_desc *d);
static const char *extra_rule(FILE *to, const struct told *own);

static const char *argument_rule(FILE *to, const struct told *leader, const struct told *own,
				 unsigned arg)
{
	struct content theirs, ours;

	if (leader->desc->class == CLASS_LOCAL)
		return "each version makes this call for itself";
	/* A file that the leader does not look at, before one that it does. */
	if (leader->desc->args[arg].kind == KIND_PATH && may_run(own->desc))
		return extra_rule(to, own);
	arg = counted_by(leader->desc, arg);
	if (!has_content(&leader->desc->args[arg])) {
		if (!is_known(leader, arg) || !is_known(own, arg))
			return "the argument is neither a number nor text";
		number_rule(to, leader, own, arg);
		return NULL;
	}
	content_read(leader, arg, &theirs);
	content_read(own, arg, &ours);
	if (!theirs.known || !ours.known)
		return "the content is not there any more";
	if (leader->desc->args[arg].what == LAYOUT_iovec && theirs.len == ours.len &&
	    theirs.have == ours.have && !memcmp(theirs.bytes, ours.bytes, ours.have))
		free_rule(to, leader, arg, &theirs);	/* the same, in other pieces */
	else if (is_whole(&theirs) && is_whole(&ours))
		content_rule(to, leader, arg, &theirs, &ours);
	else
		free_rule(to, leader, arg, &theirs);
	return NULL;
}

/* --- another call --------------------------------------------------------------------- */

static bool content_same(const struct told *a, const struct told *b, unsigned arg)
{
	struct content x, y;

	content_read(a, arg, &x);
	content_read(b, arg, &y);
	return x.len == y.len && x.have == y.have && !memcmp(x.bytes, y.bytes, x.have);
}

static bool same_call(const struct told *a, const struct told *b)
{
	if (a->view.nr != b->view.nr)
		return false;
	for (unsigned i = 0; i < a->desc->nargs; i++)
		if ((is_known(a, i) && is_known(b, i) &&
		     !step_same_value(&a->desc->args[i], a->view.args[i], b->view.args[i])) ||
		    (has_content(&a->desc->args[i]) && !content_same(a, b, i)))
			return false;
	return true;
}

static bool has_fd(const struct told *t)
{
	return t->desc->nargs && t->desc->args[0].kind == KIND_FD && is_known(t, 0);
}

static bool moves_bytes(const struct told *t)
{
	return t->desc->class == CLASS_EFFECT && t->desc->result == KIND_SIZE;
}

/* Both send by the same descriptor. */
static bool same_work(const struct told *a, const struct told *b)
{
	return has_fd(a) && has_fd(b) && moves_bytes(a) && moves_bytes(b) &&
	       (int32_t)a->view.args[0] == (int32_t)b->view.args[0] && a->view.nr != b->view.nr;
}

static void swap_rule(FILE *to, const struct told *leader, const struct told *own)
{
	fputs("@discard ", to);
	call_print(to, leader);
	fputs("\n\t=> ", to);
	call_print(to, own);
	fputc('\n', to);
}

/* It has no effect outside: a rule may let the follower make it. */
static bool may_run(const struct call_desc *d)
{
	if (call_has(d, TRAIT_RULE_PRIVATE | TRAIT_RULE_GUARDED))
		return false;
	return call_has(d, TRAIT_RULE_FREE) || class_is_harmless(d->class);
}

/*
 * Success without the call would be a lie that the follower goes on with: what it waited
 * for has come, and it asks again for ever.
 */
static bool gives_something(const struct call_desc *d)
{
	return d->result == KIND_FD || d->class == CLASS_INPUT;
}

/* Why a call cannot be added to the leader's; NULL: it can. */
static const char *never_extra(const struct call_desc *d)
{
	if (d->class == CLASS_LIFE)
		return "a process or thread cannot begin or end by a rule";
	if (!may_run(d) && gives_something(d))
		return "the leader has nothing that the follower's call could be answered with";
	return NULL;
}

#define ERRORS	2	/* the descriptor that programs complain on */

/* What a follower has to say is the reason why it differs, most likely. */
static bool complains(const struct told *own)
{
	return has_fd(own) && moves_bytes(own) && (int32_t)own->view.args[0] == ERRORS;
}

static const char *extra_rule(FILE *to, const struct told *own)
{
	const char *why = never_extra(own->desc);

	if (!why && complains(own))
		why = "the follower complains on its standard error: that is not to be hidden";
	if (why)
		return why;
	fprintf(to, "%snothing => ", may_run(own->desc) ? "" : "@discard ");
	call_print(to, own);
	fputc('\n', to);
	return NULL;
}

static void missing_rule(FILE *to, const struct told *theirs, unsigned n)
{
	MUST(n);
	for (unsigned i = 0; i < n; i++) {
		/* Rules do not see clocks unless they name one. */
		if (i && theirs[i].desc->class == CLASS_SOFT)
			continue;
		fputs(i ? ",\n\t" : "", to);
		call_print(to, &theirs[i]);
	}
	fputs("\n\t=> nothing\n", to);
}

static bool event_told(struct told *t, const struct event *e, const void *payload, size_t have,
		       const uint64_t *own)
{
	t->desc = e->kind == EVENT_CALL ? call_find(e->call) : NULL;
	t->mem = NULL;
	if (t->desc)
		view_event(&t->view, e, payload, have, own);
	return t->desc && t->desc->class != CLASS_LIFE;
}

/* The leader's calls from the one that was met on; how many. */
static unsigned leader_told(const struct making *k, struct told *theirs)
{
	const struct window_row *row = &k->last;
	const uint64_t *own = row_met_own(row) ? row->args : NULL;
	unsigned n = 0;

	if (!k->whole && !event_told(&theirs[n++], &row->event, row->payload, row_have(row), own))
		return 0;
	MUST(n + k->mets <= TOLD_MAX);
	for (unsigned i = 0; i < k->mets; i++, n++)
		if (!event_told(&theirs[n], &k->met[i].event, k->met[i].payload, k->met[i].len,
				i ? NULL : own))
			break;
	return n;
}

/* A follower that leaves out what came in will hardly do as well without it. */
static bool more_likely_extra(const struct told *leader, const struct told *own)
{
	return leader->desc->class == CLASS_INPUT && !never_extra(own->desc);
}

static const char *call_rule(FILE *to, const struct told *theirs, unsigned n,
			     const struct told *own)
{
	if (n && more_likely_extra(&theirs[0], own))
		return extra_rule(to, own);
	for (unsigned i = 1; i < n; i++)
		if (same_call(&theirs[i], own)) {
			missing_rule(to, theirs, i);
			return NULL;
		}
	if (n && same_work(&theirs[0], own)) {
		swap_rule(to, &theirs[0], own);
		return NULL;
	}
	return extra_rule(to, own);
}

/* --- all of it ------------------------------------------------------------------------ */

/* It found something wrong itself: not a difference that anybody means. */
static bool is_aborting(const struct making *k)
{
	static const char *const names[] = { "abort", "__assert_fail", "__stack_chk_fail",
					     "__fortify_fail", "std::terminate" };
	const json_t *f, *stack = json_object_get(json_object_get(k->report, "follower"), "stack");
	size_t i;

	json_array_foreach(stack, i, f)
		for (unsigned n = 0; n < sizeof(names) / sizeof(names[0]); n++)
			if (!strcmp(text_of(f, "function"), names[n]))
				return true;
	return false;
}

static const char *not_for_rules(const struct making *k)
{
	const struct report_want *w = k->w;

	if (w->verdict != VERDICT_DIVERGED)
		return "rules are about divergences";
	if (w->what == DIFFERS_END || w->what == DIFFERS_EXTRA)
		return "no rule reaches over the end of a thread";
	if (w->slot->rule.kind == NOTE_FOLLOWED)
		return "a rule was being followed: that one is to be mended";
	if (is_aborting(k))
		return "the follower is about to abort";
	if (!w->mem || !w->slot->calls || k->last.end != ROW_OPEN)
		return "the follower's call is not there any more";
	return NULL;
}

static const char *rule_print(struct making *k, FILE *to)
{
	const struct report_want *w = k->w;
	struct told *theirs = calloc(TOLD_MAX, sizeof(*theirs)), own = { .mem = w->mem };
	unsigned n = theirs ? leader_told(k, theirs) : 0;
	const char *why;

	own.desc = call_find((long)k->last.call);
	if (own.desc)
		view_memory(&own.view, w->mem, (long)k->last.call, k->last.args, INT64_MAX);
	if (!own.desc || !own.view.row)
		why = "the follower's call is not known";
	else if (w->what == DIFFERS_CALL)
		why = call_rule(to, theirs, n, &own);
	else if (!n || theirs[0].view.nr != own.view.nr || w->where >> 56 >= own.desc->nargs)
		why = "the leader's call is not there any more";
	else
		why = argument_rule(to, &theirs[0], &own, (unsigned)(w->where >> 56));
	free(theirs);
	return why;
}

json_t *report_suggest(struct making *k, const char **why)
{
	char *text = NULL;
	size_t size;
	FILE *to;
	json_t *rule;

	*why = not_for_rules(k);
	if (*why)
		return json_null();
	to = open_memstream(&text, &size);
	if (!to)
		return json_null();
	*why = rule_print(k, to);
	fclose(to);
	rule = *why ? json_null() : json_string(text);
	free(text);
	return rule;
}
