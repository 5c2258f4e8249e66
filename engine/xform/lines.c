/*
 * The lines of transforms: what a person says that no type does.
 *
 *	typ = string;			the value of a field that is new; C, or C in braces
 *	name from title;		it was called otherwise
 *	u.text if old->kind == TEXT;	when this member of a union is the one
 *	data : struct item if ...;	what a void pointer leads to
 *	next : struct item.link;	... or into
 *	data : opaque;			it is kept, and nobody looks behind it
 *
 * In an enum's transform the names on the left are the old ones.  Of a variable or thread the
 * body is C, or a `:` and what follows it.
 */
#include <ctype.h>
#include <string.h>

#include "engine/core/must.h"
#include "engine/xform/pairs.h"

struct reader {
	struct pairing *p;
	const char *at, *end;
	const struct code *body;
};

static struct loc loc_of(const struct reader *r, const char *from, const char *to)
{
	uint32_t begin = r->body->loc.begin + (uint32_t)(from - r->body->text.at);

	MUST(from <= to && to <= r->body->text.at + r->body->text.len);
	return (struct loc){ r->body->loc.file, begin, begin + (uint32_t)(to - from) };
}

/* Past a comment, a string or one character. */
static const char *skip_one(const char *at, const char *end)
{
	const char *stop;
	char quote = *at;

	if (end - at > 1 && at[0] == '/' && at[1] == '/') {
		stop = memchr(at, '\n', (size_t)(end - at));
		return stop ? stop : end;
	}
	if (end - at > 3 && at[0] == '/' && at[1] == '*') {
		stop = memmem(at + 2, (size_t)(end - at - 2), "*/", 2);
		return stop ? stop + 2 : end;
	}
	if (quote != '"' && quote != '\'')
		return at + 1;
	for (at++; at < end && *at != quote; at++)
		at += *at == '\\';
	return at < end ? at + 1 : end;
}

static bool comment(const char *at, const char *end)
{
	return end - at > 1 && at[0] == '/' && (at[1] == '/' || at[1] == '*');
}

static void space(struct reader *r)
{
	while (r->at < r->end && (isspace((unsigned char)*r->at) || comment(r->at, r->end)))
		r->at = skip_one(r->at, r->end);
}

/* Names with points between; "" if there is none. */
static const char *path(struct reader *r)
{
	const char *from;

	space(r);
	from = r->at;
	while (r->at < r->end && (isalnum((unsigned char)*r->at) || *r->at == '_' || *r->at == '.'))
		r->at++;
	return arena_copy(r->p->u->arena, from, (size_t)(r->at - from));
}

static bool sign(struct reader *r, char c)
{
	space(r);
	if (r->at >= r->end || *r->at != c)
		return false;
	r->at++;
	return true;
}

static bool word(struct reader *r, const char *text)
{
	const char *from, *found;

	space(r);
	from = r->at;
	found = path(r);
	if (!strcmp(found, text))
		return true;
	r->at = from;
	return false;
}

/* C up to a `;` outside of brackets, or a block. */
static const char *c_text(struct reader *r, struct loc *loc, bool *block)
{
	const char *from;
	int depth = 0;

	space(r);
	from = r->at;
	*block = from < r->end && *from == '{';
	while (r->at < r->end && (depth || *r->at != ';')) {
		depth += !!strchr("([{", *r->at) - !!strchr(")]}", *r->at);
		r->at = skip_one(r->at, r->end);
		if (*block && !depth)
			break;
	}
	*loc = loc_of(r, from, r->at);
	return arena_copy(r->p->u->arena, from, (size_t)(r->at - from));
}

static void type_read(struct reader *r, struct line *l)
{
	const char *from, *first, *point;
	struct diag *d;

	space(r);
	from = r->at;
	first = path(r);
	l->kind = !strcmp(first, "opaque") ? LINE_OPAQUE : LINE_TYPE;
	if (!strcmp(first, "struct") || !strcmp(first, "union")) {
		l->type_kind = first;
		first = path(r);
	}
	point = strchr(first, '.');
	l->type_name = point ? arena_copy(r->p->u->arena, first, (size_t)(point - first)) : first;
	l->member = point ? point + 1 : NULL;
	l->value_loc = loc_of(r, from, r->at);
	if (*l->type_name)
		return;
	d = diag_error(r->p->u, l->value_loc, "no type stands here");
	diag_hint(r->p->u, d, "`struct NAME`, `struct NAME.MEMBER` or `opaque`");
}

static bool rest_read(struct reader *r, struct line *l)
{
	bool block;

	if (sign(r, '=')) {
		l->kind = LINE_VALUE;
		l->value = c_text(r, &l->value_loc, &l->block);
		return *l->value;
	}
	if (sign(r, ':')) {
		type_read(r, l);
	} else if (word(r, "from")) {
		const char *from = r->at;

		l->kind = LINE_FROM;
		l->value = path(r);
		l->value_loc = loc_of(r, from + strspn(from, " \t"), r->at);
		return true;
	} else {
		l->kind = LINE_LIVE;
	}
	if (word(r, "if"))
		l->condition = c_text(r, &l->if_loc, &block);
	return l->condition ? *l->condition : l->kind != LINE_LIVE;
}

/* NULL at the end, and after an error. */
static struct line *line_read(struct reader *r)
{
	struct line *l = arena_alloc(r->p->u->arena, sizeof(*l));
	const char *from;
	struct diag *d;

	while (sign(r, ';'))
		;
	from = r->at;
	if (r->at >= r->end)
		return NULL;
	l->path = path(r);
	l->loc = loc_of(r, from, r->at > from ? r->at : r->at + 1);
	l->number = r->p->nlines++;
	if (rest_read(r, l) && (*l->path || l->kind > LINE_LIVE) && (l->block || sign(r, ';')))
		return l;
	d = diag_error(r->p->u, loc_of(r, r->at < r->end ? r->at : r->end - 1,
		r->at < r->end ? r->at + 1 : r->end), "this is no line of a transform");
	diag_hint(r->p->u, d, "`FIELD = C;`, `FIELD from FIELD;`, `FIELD : struct NAME;` or "
		"`MEMBER if C;`");
	return NULL;
}

/* The body of a variable's is one value, unless it begins with `:`. */
static bool whole_body(struct reader *r, struct change *c)
{
	const char *kind = c->transform->kind;
	struct line *l;

	if (!kind || strcmp(kind, "variable"))
		return false;
	space(r);
	if (r->at < r->end && *r->at == ':')
		return false;
	l = arena_alloc(r->p->u->arena, sizeof(*l));
	*l = (struct line){ .kind = LINE_VALUE, .path = "", .block = true,
		.loc = c->transform->name_loc, .value_loc = r->body->loc,
		.value = arena_copy(r->p->u->arena, r->body->text.at, r->body->text.len),
		.number = r->p->nlines++ };
	c->lines = l;
	return true;
}

static void body_read(struct pairing *p, struct change *c)
{
	const struct code *body = c->transform->body;
	struct reader r = { p, body->text.at + 1, body->text.at + body->text.len - 1, body };
	struct line **end = &c->lines;

	if (whole_body(&r, c))
		return;
	while ((*end = line_read(&r)))
		end = &(*end)->next;
}

static const char *const kinds[] = { "struct", "union", "enum", "variable", "thread" };

static bool kind_known(struct pairing *p, const struct transform *t)
{
	struct diag *d;

	for (unsigned i = 0; t->kind && i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (!strcmp(t->kind, kinds[i]))
			return true;
	if (!t->kind)
		return true;
	d = diag_error(p->u, t->name_loc, "`%s` can not be transformed", t->kind);
	diag_hint(p->u, d, "struct, union, enum, variable or thread");
	return false;
}

/* A type must be there in both builds: else nothing is to be migrated. */
static void types_find(struct pairing *p, struct change *c)
{
	const struct transform *t = c->transform;
	bool is_type = !t->kind || (strcmp(t->kind, "variable") && strcmp(t->kind, "thread"));

	if (!is_type)
		return;
	c->old = type_named(p->old, t->kind, t->name);
	c->new = type_named(p->new, t->kind, t->name);
	if (c->old && c->new)
		return;
	type_missing(p, t->name_loc, t->kind, t->name, c->old, c->new);
}

static bool is_of_same(const struct change *a, const struct change *b)
{
	const char *kind = a->transform->kind, *other = b->transform->kind;

	if (a->old || b->old)
		return a->old == b->old && a->new == b->new;
	return kind && other && !strcmp(kind, other) &&
		!strcmp(a->transform->name, b->transform->name);
}

/* Only the first would be asked. */
static void second_say(struct pairing *p, const struct change *c)
{
	for (const struct change *first = p->changes; first != c; first = first->next) {
		struct diag *d;

		if (!is_of_same(first, c))
			continue;
		d = diag_error(p->u, c->transform->name_loc, "`%s` has a transform already",
			c->transform->name);
		diag_second(p->u, d, first->transform->name_loc);
		diag_hint(p->u, d, "put its lines there");
		return;
	}
}

void lines_read(struct pairing *p)
{
	struct change **end = &p->changes;

	for (unsigned f = 0; f < p->u->nsources; f++)
		for (const struct item *i = p->u->sources[f].items; i; i = i->next) {
			if (i->kind != ITEM_TRANSFORM || !kind_known(p, i->transform))
				continue;
			*end = arena_alloc(p->u->arena, sizeof(**end));
			(*end)->transform = i->transform;
			body_read(p, *end);
			end = &(*end)->next;
		}
	for (struct change *c = p->changes; c; c = c->next)
		types_find(p, c);
	for (struct change *c = p->changes; c; c = c->next)
		second_say(p, c);
}

struct line *line_find(struct change *c, const char *path, enum line_kind kind)
{
	for (struct line *l = c ? c->lines : NULL; l; l = l->next)
		if (l->kind == kind && !strcmp(l->path, path))
			return l;
	return NULL;
}
