/*
 * Rules against each other: one that can never match because an earlier one
 * takes all its input is an error; two that take some of the same input and do
 * different things are a warning, since the order decides.
 *
 * Only what patterns say is compared.  A guard may refuse anything, so a rule
 * with guards takes nothing for sure, and is never said to overlap.
 */
#include <string.h>

#include "engine/core/must.h"
#include "rulec/rulec.h"

/* --- one argument ---------------------------------------------------------- */

static bool bytes_begin(struct text text, struct text head)
{
	return text.len >= head.len && !memcmp(text.at, head.at, head.len);
}

/* All that `b` matches, `a` matches. */
static bool pattern_covers(const struct pattern *a, const struct pattern *b)
{
	if (a->next || b->next || a->kind != b->kind)
		return false;
	if (a->kind == PATTERN_NAME)
		return a->let == b->let;
	if (a->kind == PATTERN_REGEX)
		return a->fold == b->fold && a->raw.len == b->raw.len &&
			!memcmp(a->raw.at, b->raw.at, a->raw.len);
	if (a->prefix)
		return bytes_begin(b->bytes, a->bytes);
	return !b->prefix && a->bytes.len == b->bytes.len && bytes_begin(b->bytes, a->bytes);
}

/* What all that it matches begins with; *open: more may follow. */
static struct text pattern_head(const struct pattern *p, bool *open)
{
	*open = p->kind != PATTERN_STRING || p->prefix;
	if (p->kind == PATTERN_STRING)
		return p->bytes;
	return p->kind == PATTERN_REGEX ? regex_head(p) : (struct text){ "", 0 };
}

static bool single_meets(const struct pattern *a, const struct pattern *b)
{
	bool a_open, b_open;
	struct text x, y;

	if (b->kind == PATTERN_NAME && b->let) {
		for (const struct pattern *p = b->let->pattern; p; p = p->next)
			if (single_meets(a, p))
				return true;
		return false;
	}
	if (a->kind == PATTERN_NAME && a->let)
		return single_meets(b, a);
	x = pattern_head(a, &a_open);
	y = pattern_head(b, &b_open);
	return (bytes_begin(x, y) && (b_open || x.len == y.len)) ||
		(bytes_begin(y, x) && (a_open || x.len == y.len));
}

/* One text matches an alternative of each, as far as their beginnings tell. */
static bool pattern_meets(const struct pattern *a, const struct pattern *b)
{
	for (; a; a = a->next)
		for (const struct pattern *y = b; y; y = y->next)
			if (single_meets(a, y))
				return true;
	return false;
}

/* A name that stands earlier in the rule compares; else it takes anything. */
static bool takes_all(const struct rule *rule, const struct arg *a)
{
	const struct binding *b = a->form == ARG_NAME ? bind_find(rule, a->name) : NULL;

	return a->form == ARG_ANY || (b && b->loc.begin == a->loc.begin);
}

static bool arg_covers(const struct rule *ra, const struct arg *a, const struct arg *b)
{
	if (takes_all(ra, a))
		return true;
	if (a->form == ARG_NAME || a->form != b->form)
		return false;
	if (a->form == ARG_NUMBER)
		return a->number == b->number;
	return a->form == ARG_NULL || pattern_covers(a->pattern, b->pattern);
}

static bool arg_meets(const struct arg *a, const struct arg *b)
{
	if (a->form == ARG_NUMBER && b->form == ARG_NUMBER)
		return a->number == b->number;
	if (a->form == ARG_NULL || b->form == ARG_NULL)
		return a->form == b->form || a->form <= ARG_NAME;
	if (a->pattern && b->pattern)
		return pattern_meets(a->pattern, b->pattern);
	return true;
}

/* --- calls and sides ------------------------------------------------------- */

/* The row of a call is the other's, or the call of which that is a variant. */
static bool row_covers(const struct call_name *a, const struct call_name *b)
{
	return a == b || (a->nr == b->nr && !a->variant);
}

static bool call_covers(const struct rule *ra, const struct call *a, const struct call *b)
{
	const struct arg *x = a->args, *y = b->args;

	if (!row_covers(a->row, b->row))
		return false;
	for (; x && y; x = x->next, y = y->next)
		if (!arg_covers(ra, x, y))
			return false;
	return !x || takes_all(ra, x);
}

static bool call_meets(const struct call *a, const struct call *b)
{
	const struct arg *x = a->args, *y = b->args;

	if (!row_covers(a->row, b->row) && !row_covers(b->row, a->row))
		return false;
	for (; x && y; x = x->next, y = y->next)
		if (!arg_meets(x, y))
			return false;
	return true;
}

static bool calls_cover(const struct rule *ra, const struct call *a, const struct call *b)
{
	for (; b; b = b->next) {
		const struct call *x = a;

		while (x && !call_covers(ra, x, b))
			x = x->next;
		if (!x)
			return false;
	}
	return true;
}

static bool calls_meet(const struct call *a, const struct call *b)
{
	for (; a; a = a->next)
		for (const struct call *y = b; y; y = y->next)
			if (call_meets(a, y))
				return true;
	return false;
}

/* --- rules ----------------------------------------------------------------- */

static bool side_covers(const struct rule *a, const struct rule *b)
{
	const struct step *x = a->steps, *y = b->steps;

	if (a->guarded)
		return false;
	for (; x && y; x = x->next, y = y->next)
		if (!calls_cover(a, x->calls, y->calls))
			return false;
	return true;
}

static bool side_meets(const struct rule *a, const struct rule *b)
{
	const struct step *x = a->steps, *y = b->steps;

	for (; x && y; x = x->next, y = y->next)
		if (!calls_meet(x->calls, y->calls))
			return false;
	return true;
}

/* The right side of `a` begins with whatever that of `b` may begin with. */
static bool first_covers(const struct rule *a, const struct rule *b)
{
	const struct out *x = a->outs, *y = b->outs;

	if (!x)
		return true;
	return y && !x->guard && !x->star && !y->star && calls_cover(a, x->calls, y->calls);
}

static bool first_meets(const struct rule *a, const struct rule *b)
{
	const struct out *x = a->outs, *y = b->outs;

	if (!x || !y)
		return true;
	return !x->guard && !y->guard && calls_meet(x->calls, y->calls);
}

static bool same_text(const struct unit *u, struct loc a, struct loc b)
{
	return a.end - a.begin == b.end - b.begin &&
		!memcmp(u->sources[a.file].text + a.begin, u->sources[b.file].text + b.begin,
			a.end - a.begin);
}

static bool same_string(const char *a, const char *b)
{
	return a == b || (a && b && !strcmp(a, b));
}

/* Both are on at the same time for sure: neither says when it holds, or the same. */
static bool same_time(const struct rule *a, const struct rule *b)
{
	unsigned when = RULES_ROW_OLD | RULES_ROW_NEW | RULES_ROW_PROCESS | RULES_ROW_FIRST;

	return (a->flags & when) == (b->flags & when) && same_string(a->leader, b->leader) &&
		same_string(a->follower, b->follower);
}

/* Whenever `b` is on, `a` is. */
static bool covers_time(const struct rule *a, const struct rule *b)
{
	bool always = !(a->flags & (RULES_ROW_OLD | RULES_ROW_NEW)) && !a->leader && !a->follower;

	return same_time(a, b) ||
		(always && !((a->flags ^ b->flags) & RULES_ROW_PROCESS));
}

/* Whoever joins two rules by @then has thought of both. */
static bool joined(const struct rule *a, const struct rule *b)
{
	return a->then == b || b->then == a;
}

static void compare(struct unit *u, const struct rule *first, struct rule *rule)
{
	struct diag *d;

	MUST(first->index < rule->index && !first->broken);

	/* A file's own rules may well stand in for those of a file that it uses. */
	if (first->left != rule->left || first->nsteps != rule->nsteps ||
	    !covers_time(first, rule) || first->loc.file != rule->loc.file)
		return;
	if (side_covers(first, rule) && first_covers(first, rule)) {
		d = diag_error(u, rule->left_loc, "this rule can never match: an earlier one "
			"takes all its input");
		diag_second(u, d, first->left_loc);
		diag_hint(u, d, "put it before that one, or give that one a guard");
		rule->broken = true;
	} else if (!first->guarded && !rule->guarded && !joined(first, rule) &&
		   same_time(first, rule) && side_meets(first, rule) &&
		   first_meets(first, rule) && !same_text(u, first->right_loc, rule->right_loc)) {
		d = diag_warning(u, rule->left_loc, "this rule and an earlier one take some of "
			"the same input, with different results");
		diag_second(u, d, first->left_loc);
		diag_hint(u, d, "the earlier one wins; narrow one of them");
	}
}

void pass_overlap(struct unit *u)
{
	for (unsigned i = 0; i < u->nrules; i++)
		for (unsigned k = 0; k < i && !u->rules[i]->broken; k++)
			if (!u->rules[k]->broken)
				compare(u, u->rules[k], u->rules[i]);
}
