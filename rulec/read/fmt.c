/*
 * rulec fmt: the one way to write a rules file.
 *
 * A rule stands on one line if it fits and its C does; else each call has a line
 * of its own.  C is kept as it is, comments are kept where they stand: before an
 * item, or behind it on its line; one within a rule moves in front of it.  What
 * is printed parses to the same, and is printed as it is the second time.
 */
#include <stdlib.h>
#include <string.h>

#include "rulec/rulec.h"

#define LINE_MAX_	80

struct printer {
	const struct source *source;
	const struct comment *comment;	/* the next that is to be printed */
	struct buffer *to;
};

/* --- pieces ---------------------------------------------------------------- */

static void quoted(struct buffer *b, struct text text)
{
	buffer_print(b, "\"%.*s\"", (int)text.len, text.at);
}

static void pattern_print(struct buffer *b, const struct pattern *p)
{
	for (const struct pattern *first = p; p; p = p->next) {
		buffer_print(b, p == first ? "" : " | ");
		if (p->kind == PATTERN_STRING)
			quoted(b, p->raw);
		else if (p->kind == PATTERN_NAME)
			buffer_print(b, "%.*s", (int)p->raw.len, p->raw.at);
		else
			buffer_print(b, "/%.*s/%s", (int)p->raw.len, p->raw.at,
				p->fold ? "i" : "");
	}
}

void fmt_arg(struct buffer *b, const struct arg *a)
{
	switch (a->form) {
	case ARG_ANY: buffer_print(b, "_"); break;
	case ARG_NULL: buffer_print(b, "-"); break;
	case ARG_NAME: buffer_print(b, "%s", a->name); break;
	case ARG_NUMBER: buffer_print(b, "%.*s", (int)a->raw.len, a->raw.at); break;
	case ARG_STRING: quoted(b, a->pattern->raw); break;
	case ARG_PATTERN:
		buffer_print(b, "~ ");
		pattern_print(b, a->pattern);
		break;
	}
}

void fmt_call(struct buffer *b, const struct call *c, bool has_args)
{
	buffer_print(b, "%s", c->name);
	if (!has_args)
		return;
	buffer_print(b, "(");
	for (const struct arg *a = c->args; a; a = a->next) {
		fmt_arg(b, a);
		buffer_print(b, a->next ? ", " : "");
	}
	buffer_print(b, ")");
}

/* One space within the braces when it is one line; else as it stands. */
static void code_print(struct buffer *b, const struct code *code)
{
	const char *from = code->text.at + 1, *to = code->text.at + code->text.len - 1;

	if (memchr(from, '\n', (size_t)(to - from))) {
		buffer_print(b, " %.*s", (int)code->text.len, code->text.at);
		return;
	}
	while (from < to && (*from == ' ' || *from == '\t'))
		from++;
	while (to > from && (to[-1] == ' ' || to[-1] == '\t'))
		to--;
	buffer_print(b, from == to ? " {%.*s}" : " { %.*s }", (int)(to - from), from);
}

static void step_print(struct buffer *b, const struct step *s)
{
	for (const struct call *c = s->alts; c; c = c->next) {
		fmt_call(b, c, true);
		buffer_print(b, c->next ? " | " : "");
	}
	if (s->guard)
		code_print(b, s->guard);
	if (s->label)
		buffer_print(b, " as %s", s->label);
}

static void out_print(struct buffer *b, const struct out *o)
{
	fmt_call(b, o->call, o->has_args);
	if (o->guard)
		code_print(b, o->guard);
	if (o->star)
		buffer_print(b, "*");
	if (!o->action)
		return;
	buffer_print(b, " ->");
	if (o->result)
		buffer_print(b, " (%s)", o->result);
	code_print(b, o->action);
}

/* --- rules ----------------------------------------------------------------- */

static bool is_plain(const char *text)
{
	if ((*text >= '0' && *text <= '9') || *text == '_' || (*text | 0x20) >= 'a') {
		size_t n = strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
			"0123456789_");

		/* A word of the language would not be a value. */
		return !text[n] && strcmp(text, "_") && strcmp(text, "as") &&
			strcmp(text, "use") && strcmp(text, "let") && strcmp(text, "rule") &&
			strcmp(text, "group") && strcmp(text, "begin") && strcmp(text, "nothing");
	}
	return false;
}

static void head_print(struct buffer *b, const struct rule *r)
{
	if (r->name)
		buffer_print(b, "rule %s", r->name);
	for (const struct attr *a = r->attrs; a; a = a->next) {
		buffer_print(b, "%s@%s", a != r->attrs || r->name ? " " : "", a->name);
		if (a->value)
			buffer_print(b, is_plain(a->value) ? " %s" : " \"%s\"", a->value);
	}
}

static void left_print(struct buffer *b, const struct rule *r, const char *between)
{
	if (r->left != LEFT_STEPS)
		buffer_print(b, r->left == LEFT_BEGIN ? "begin" : "nothing");
	for (const struct step *s = r->steps; s; s = s->next) {
		step_print(b, s);
		buffer_print(b, s->next ? "%s" : "", between);
	}
}

static void right_print(struct buffer *b, const struct rule *r, const char *between)
{
	if (!r->outs)
		buffer_print(b, r->drop ? "nothing ->" : "nothing");
	if (r->drop)
		code_print(b, r->drop->action);
	for (const struct out *o = r->outs; o; o = o->next) {
		out_print(b, o);
		buffer_print(b, o->next ? "%s" : "", between);
	}
}

static bool fits_line(const struct buffer *b)
{
	return !memchr(b->at, '\n', b->len) && b->len <= LINE_MAX_;
}

static void rule_print(struct buffer *to, const struct rule *r)
{
	struct buffer b = { 0 };

	head_print(&b, r);
	buffer_print(&b, b.len ? " " : "");
	left_print(&b, r, ", ");
	buffer_print(&b, " => ");
	right_print(&b, r, ", ");
	if (!fits_line(&b)) {
		b.len = 0;
		head_print(&b, r);
		buffer_print(&b, b.len ? "\n\t" : "");
		left_print(&b, r, ",\n\t");
		buffer_print(&b, "\n\t=> ");
		right_print(&b, r, ",\n\t   ");
	}
	buffer_add(to, b.at, b.len);
	free(b.at);
}

static void group_print(struct buffer *to, const struct group *g, const char *between,
	const char *end)
{
	buffer_print(to, "group %s = {%s", g->name, between[0] == ',' ? between + 1 : between);
	for (const struct call *c = g->calls; c; c = c->next) {
		fmt_call(to, c, true);
		buffer_print(to, c->next ? "%s" : "%s", c->next ? between : end);
	}
}

static void group_lines(struct buffer *to, const struct group *g)
{
	struct buffer b = { 0 };

	group_print(&b, g, ", ", " }");
	if (!fits_line(&b)) {
		b.len = 0;
		group_print(&b, g, ",\n\t", "\n}");
	}
	buffer_add(to, b.at, b.len);
	free(b.at);
}

static void item_print(struct buffer *to, const struct item *i)
{
	switch (i->kind) {
	case ITEM_INCLUDE:
		buffer_print(to, "#include ");
		quoted(to, i->path);
		break;
	case ITEM_USE:
		buffer_print(to, "use ");
		quoted(to, i->path);
		break;
	case ITEM_GROUP:
		group_lines(to, i->group);
		break;
	case ITEM_LET:
		buffer_print(to, "let %s = ", i->let->name);
		pattern_print(to, i->let->pattern);
		break;
	case ITEM_RULE:
		rule_print(to, i->rule);
		break;
	case ITEM_TRANSFORM:
		buffer_print(to, "transform %s%s%s", i->transform->kind ? i->transform->kind : "",
			i->transform->kind ? " " : "", i->transform->name);
		code_print(to, i->transform->body);
		break;
	}
}

/* --- comments and the spaces between --------------------------------------- */

static unsigned newlines(const struct source *s, uint32_t from, uint32_t to)
{
	unsigned n = 0;

	for (; from < to; from++)
		n += s->text[from] == '\n';
	return n;
}

static void comment_print(struct printer *p)
{
	const struct comment *c = p->comment;

	buffer_add(p->to, p->source->text + c->loc.begin, c->loc.end - c->loc.begin);
	p->comment = c->next;
}

/* Those that begin before `end`; each on its own line, blank lines kept as one. */
static void comments_before(struct printer *p, uint32_t end, uint32_t *last)
{
	while (p->comment && p->comment->loc.begin < end) {
		uint32_t begin = p->comment->loc.begin, stop = p->comment->loc.end;

		if (p->to->len && newlines(p->source, *last, begin) > 1)
			buffer_print(p->to, "\n");
		comment_print(p);
		buffer_print(p->to, "\n");
		*last = stop;
	}
}

/* They go before the item, without the blank lines that stood between its parts. */
static void comments_inside(struct printer *p, uint32_t end)
{
	while (p->comment && p->comment->loc.begin < end) {
		comment_print(p);
		buffer_print(p->to, "\n");
	}
}

/* One that stands behind the item, on its last line. */
static void comment_behind(struct printer *p, uint32_t *last)
{
	const struct comment *c = p->comment;

	if (!c || newlines(p->source, *last, c->loc.begin))
		return;
	buffer_print(p->to, "\t");
	*last = c->loc.end;
	comment_print(p);
}

void fmt_print(struct unit *u, const struct source *source, struct buffer *to)
{
	struct printer p = { source, source->comments, to };
	uint32_t last = 0;

	(void)u;
	for (const struct item *i = source->items; i; i = i->next) {
		uint32_t begin = i->loc.begin;
		bool apart;

		comments_before(&p, begin, &last);
		apart = newlines(source, last, begin) > 1;
		if (apart && to->len)
			buffer_print(to, "\n");
		comments_inside(&p, i->loc.end);
		item_print(to, i);
		last = i->loc.end;
		comment_behind(&p, &last);
		buffer_print(to, "\n");
	}
	comments_before(&p, UINT32_MAX, &last);
}
