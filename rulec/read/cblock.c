/*
 * C in guards and actions: finds the names it uses, and turns the language's
 * additions into C:
 *
 *	$(x)				($x), a local of the function around it
 *	(a, b) = f(args);		f(args, &$a, &$b);
 *	$(v) = "text $a";		a buffer built from pieces
 *	$(v) == "text", $(v) == $(w)	comparison of content
 *	no `;` behind the last statement
 *
 * Everything else is copied as it stands and in its columns, so that the C
 * compiler's messages point into the rules file.  One scan does both jobs: it
 * reports uses when there is nowhere to write to.
 */
#include <ctype.h>
#include <string.h>

#include "rulec/rulec.h"

#define FILL_MAX	16	/* names in front of a `= f(...)` */
#define ELLIPSIS	"\xe2\x80\xa6"

struct scan {
	struct unit *u;
	const struct place *place;	/* with `to` only */
	const struct code *code;
	const char *at, *end;
	struct buffer *to;		/* NULL: only look */
	struct c_use **uses;
	bool statement;			/* a statement may begin here */
	bool returns;
};

static void copy(struct scan *s, const char *from, const char *to)
{
	if (s->to)
		buffer_add(s->to, from, (size_t)(to - from));
}

static const char *spaces(const char *at, const char *end)
{
	while (at < end && isspace((unsigned char)*at))
		at++;
	return at;
}

static bool is_name(int c)
{
	return c == '_' || isalnum(c);
}

static const char *name_end(const char *at, const char *end)
{
	if (at < end && (*at == '_' || isalpha((unsigned char)*at)))
		while (at < end && is_name((unsigned char)*at))
			at++;
	return at;
}

/* Behind a string or character that begins at `at`. */
static const char *quoted_end(const char *at, const char *end)
{
	char quote = *at++;

	while (at < end && *at != quote && *at != '\n')
		at += *at == '\\' && at + 1 < end ? 2 : 1;
	return at < end ? at + 1 : end;
}

/* Behind a comment that begins at `at`; `at` if none does. */
static const char *comment_end(const char *at, const char *end)
{
	if (end - at < 2 || *at != '/' || (at[1] != '/' && at[1] != '*'))
		return at;
	if (at[1] == '/') {
		while (at < end && *at != '\n')
			at++;
		return at;
	}
	for (at += 2; at + 1 < end; at++)
		if (*at == '*' && at[1] == '/')
			return at + 2;
	return end;
}

/* After text of another length: on a line of its own, in the column it had. */
static void realign(struct scan *s)
{
	uint32_t begin = s->code->loc.begin + (uint32_t)(s->at - s->code->text.at);
	struct loc loc = { s->code->loc.file, begin, begin };

	if (!s->to)
		return;
	buffer_print(s->to, "\n");
	emit_line(s->to, diag_line(s->u, loc), s->u->sources[loc.file].path);
	buffer_print(s->to, "%*s", (int)diag_column(s->u, loc) - 1, "");
}

/* --- uses ------------------------------------------------------------------ */

static struct c_use *use_new(struct scan *s, const char *name, const char *end)
{
	struct c_use *use = arena_alloc(s->u->arena, sizeof(*use));
	uint32_t begin = s->code->loc.begin + (uint32_t)(name - s->code->text.at);

	use->loc = (struct loc){ s->code->loc.file, begin, begin + (uint32_t)(end - name) };
	use->name = arena_copy(s->u->arena, name, (size_t)(end - name));
	if (s->uses) {
		*s->uses = use;
		s->uses = &use->next;
	}
	return use;
}

static bool is_view(struct scan *s, const char *name)
{
	struct binding *b = s->place ? bind_use(s->u, s->place, name) : NULL;

	return b && b->view;
}

/* As long as `$(x)`. */
static void name_emit(struct scan *s, const char *name)
{
	if (!s->to)
		return;
	buffer_print(s->to, "($");
	for (; *name; name++)
		buffer_add(s->to, *name == '.' ? "$" : name, 1);
	buffer_print(s->to, ")");
}

/* The name in `$(name)` or `$(label.name)`; its end is at `)`. NULL: it is none. */
static const char *dollar_end(const char *at, const char *end)
{
	const char *e;

	if (end - at < 4 || at[0] != '$' || at[1] != '(')
		return NULL;
	e = name_end(at + 2, end);
	if (e > at + 2 && e + 1 < end && *e == '.') {
		const char *dot = e;

		e = name_end(dot + 1, end);
		if (e == dot + 1)
			return NULL;
	}
	return e > at + 2 && e < end && *e == ')' ? e : NULL;
}

/* --- buffers from pieces --------------------------------------------------- */

static void piece_text(struct scan *s, const char *from, const char *to)
{
	if (s->to && to > from)
		buffer_print(s->to, "rules_add(run, view_of(\"%.*s\", sizeof(\"%.*s\") - 1)), ",
			(int)(to - from), from, (int)(to - from), from);
}

static void piece_name(struct scan *s, const char *from, const char *to)
{
	struct c_use *use = use_new(s, from, to);

	if (!s->to)
		return;
	buffer_print(s->to, "%s(run, ", is_view(s, use->name) ? "rules_add" :
		"rules_add_number");
	name_emit(s, use->name);
	buffer_print(s->to, "), ");
}

/* One `$name`, `${name}`, `${label.name}` or `$$` of a string; behind it. */
static const char *interpolate(struct scan *s, const char *at, const char *end)
{
	bool brace = at + 1 < end && at[1] == '{';
	const char *name = at + 1 + brace, *e = name_end(name, end);

	if (brace && e > name && e < end && *e == '.')
		e = name_end(e + 1, end);
	if (at + 1 < end && at[1] == '$') {
		piece_text(s, at, at + 1);
		return at + 2;
	}
	if (e == name || (brace && (e == end || *e != '}'))) {
		piece_text(s, at, at + 1);
		return at + 1;
	}
	piece_name(s, name, e);
	return e + brace;
}

/* The strings of `$(v) = "a" "b"`; behind them. */
static const char *build(struct scan *s, const char *at)
{
	if (s->to)
		buffer_print(s->to, "(rules_build(run), ");
	while (at < s->end && *at == '"') {
		const char *end = quoted_end(at, s->end) - 1, *from = ++at;

		while (at < end) {
			if (*at == '\\' && at + 1 < end) {
				at += 2;
			} else if (*at == '$') {
				piece_text(s, from, at);
				from = at = interpolate(s, at, end);
			} else {
				at++;
			}
		}
		piece_text(s, from, at);
		at = end + 1;
		if (*spaces(at, s->end) == '"')
			at = spaces(at, s->end);
	}
	if (s->to)
		buffer_print(s->to, "rules_built(run))");
	return at;
}

/* --- $(x) and what follows ------------------------------------------------- */

static bool assigns(const char *at, const char *end)
{
	if (at < end && strchr("+-*/%&|^", *at) && at + 1 < end && at[1] == '=')
		return true;
	if (end - at >= 3 && (!memcmp(at, "<<=", 3) || !memcmp(at, ">>=", 3)))
		return true;
	if (end - at >= 2 && (!memcmp(at, "++", 2) || !memcmp(at, "--", 2)))
		return true;
	return at < end && *at == '=' && (at + 1 == end || at[1] != '=');
}

/* `++$(x)`, and `&$(x)` where an operand begins. */
static bool assigned_before(const struct scan *s, const char *at)
{
	const char *begin = s->code->text.at;

	if (at - begin >= 2 && (!memcmp(at - 2, "++", 2) || !memcmp(at - 2, "--", 2)))
		return true;
	if (at == begin || at[-1] != '&')
		return false;
	at--;
	while (at > begin && isspace((unsigned char)at[-1]))
		at--;
	return at > begin && strchr("(,=;{", at[-1]);
}

/* `== "text"` or `== $(w)` behind a view; NULL: there is none. */
static const char *content_compare(struct scan *s, const char *name, const char *op)
{
	const char *right = spaces(op + 2, s->end), *end, *stop;
	bool prefix;

	if (right >= s->end || (*right != '"' && !dollar_end(right, s->end)))
		return NULL;
	if (*right != '"') {
		end = dollar_end(right, s->end);
		buffer_print(s->to, "(%sview_same(", *op == '!' ? "!" : "");
		name_emit(s, name);
		buffer_print(s->to, ", ");
		name_emit(s, use_new(s, right + 2, end)->name);
		buffer_print(s->to, "))");
		return end + 1;
	}
	end = quoted_end(right, s->end);
	stop = end - 1;
	prefix = stop - right > 3 && !memcmp(stop - 3, ELLIPSIS, 3);
	stop -= prefix ? 3 : 0;
	buffer_print(s->to, "(%s%s(", *op == '!' ? "!" : "",
		prefix ? "view_begins_with" : "view_same");
	name_emit(s, name);
	buffer_print(s->to, ", view_of(%.*s\", sizeof(%.*s\") - 1)))", (int)(stop - right), right,
		(int)(stop - right), right);
	return end;
}

static void dollar(struct scan *s, const char *name_stop)
{
	struct c_use *use = use_new(s, s->at + 2, name_stop);
	const char *begin = s->at, *op = spaces(name_stop + 1, s->end), *after;
	bool compares = s->end - op >= 2 && (op[0] == '=' || op[0] == '!') && op[1] == '=';

	use->assigned = assigns(op, s->end) || assigned_before(s, begin);
	s->at = name_stop + 1;
	if (s->to && compares && is_view(s, use->name)) {
		after = content_compare(s, use->name, op);
		if (after) {
			s->at = after;
			realign(s);
			return;
		}
	}
	name_emit(s, use->name);
	if (use->assigned && *op == '=') {
		after = spaces(op + 1, s->end);
		if (after < s->end && *after == '"') {
			copy(s, s->at, after);
			s->at = build(s, after);
			realign(s);
		}
	}
}

/* --- (a, b) = f(...) ------------------------------------------------------- */

static void scan_to(struct scan *s, const char *end);

struct fill {
	const char *from[FILL_MAX], *to[FILL_MAX];
	unsigned n;
	const char *call;	/* the helper's name */
	const char *open, *close;
};

static const char *paren_close(const char *at, const char *end)
{
	int depth = 0;

	while (at < end) {
		if (*at == '"' || *at == '\'') {
			at = quoted_end(at, end);
			continue;
		}
		depth += *at == '(' ? 1 : *at == ')' ? -1 : 0;
		if (depth == 0)
			return at;
		at++;
	}
	return NULL;
}

static bool fill_names(struct fill *f, const char **at, const char *end)
{
	for (;;) {
		const char *name = spaces(*at + 1, end), *stop = name_end(name, end);

		if (stop == name || f->n == FILL_MAX)
			return false;
		f->from[f->n] = name;
		f->to[f->n++] = stop;
		*at = spaces(stop, end);
		if (*at == end || (**at != ',' && **at != ')'))
			return false;
		if (**at == ')')
			return true;
	}
}

static bool fill_find(struct fill *f, const char *at, const char *end)
{
	f->n = 0;
	if (!fill_names(f, &at, end))
		return false;
	at = spaces(at + 1, end);
	if (end - at < 2 || *at != '=' || at[1] == '=')
		return false;
	f->call = spaces(at + 1, end);
	f->open = name_end(f->call, end);
	if (f->open == f->call)
		return false;
	at = spaces(f->open, end);
	if (at == end || *at != '(')
		return false;
	f->open = at;
	f->close = paren_close(at, end);
	return f->close != NULL;
}

static void fill_emit(struct scan *s, const struct fill *f)
{
	bool empty = spaces(f->open + 1, f->close) == f->close;

	copy(s, f->call, f->open + 1);
	s->at = f->open + 1;
	scan_to(s, f->close);
	for (unsigned i = 0; i < f->n; i++) {
		bool skipped = f->to[i] - f->from[i] == 1 && *f->from[i] == '_';
		struct c_use *use;

		if (s->to)
			buffer_print(s->to, "%s", empty && i == 0 ? "" : ", ");
		if (skipped) {
			if (s->to)
				buffer_print(s->to, "&(struct view){ 0, 0, 0 }");
			continue;
		}
		use = use_new(s, f->from[i], f->to[i]);
		use->fills = true;
		if (s->to)
			buffer_print(s->to, "&");
		name_emit(s, use->name);
	}
	copy(s, f->close, f->close + 1);
	s->at = f->close + 1;
	realign(s);
}

/* --- the scan -------------------------------------------------------------- */

/* Copies a word; in an action `return` becomes a jump of the same length. */
static void word(struct scan *s)
{
	const char *end = s->at;

	while (end < s->end && (is_name((unsigned char)*end) || *end == '$'))
		end++;
	if (end == s->at)
		end++;
	if (end - s->at == 6 && !memcmp(s->at, "return", 6)) {
		s->returns = true;
		if (s->to && s->place->action) {
			buffer_print(s->to, "goto _");
			s->at = end;
			return;
		}
	}
	copy(s, s->at, end);
	s->at = end;
}

static void scan_to(struct scan *s, const char *end)
{
	struct fill fill;

	while (s->at < end) {
		const char *from = s->at, *stop = comment_end(s->at, end);

		if (stop == from && (*from == '"' || *from == '\''))
			stop = quoted_end(from, end);
		if (stop == from && isspace((unsigned char)*from))
			stop = spaces(from, end);
		if (stop != from) {
			copy(s, from, stop);
			s->statement &= *from == '/' || isspace((unsigned char)*from);
			s->at = stop;
			continue;
		}
		stop = dollar_end(from, end);
		if (stop)
			dollar(s, stop);
		else if (*from == '(' && s->statement && fill_find(&fill, from, end))
			fill_emit(s, &fill);
		else
			word(s);
		s->statement = *from == '{' || *from == '}' || *from == ';';
	}
}

struct c_use *cblock_uses(struct unit *u, const struct code *code)
{
	struct c_use *first = NULL;
	struct scan s = { .u = u, .code = code, .at = code->text.at,
		.end = code->text.at + code->text.len, .uses = &first };

	scan_to(&s, s.end);
	return first;
}

bool cblock_returns(struct unit *u, const struct code *code)
{
	struct scan s = { .u = u, .code = code, .at = code->text.at,
		.end = code->text.at + code->text.len };

	scan_to(&s, s.end);
	return s.returns;
}

/* --- brackets -------------------------------------------------------------- */

#define BRACKETS_MAX	64

static void bracket_error(struct unit *u, const struct code *code, const char *at)
{
	uint32_t begin = code->loc.begin + (uint32_t)(at - code->text.at);

	diag_error(u, (struct loc){ code->loc.file, begin, begin + 1 },
		strchr("([{", *at) ? "this `%c` has no end" : "this `%c` closes nothing", *at);
}

bool cblock_brackets(struct unit *u, const struct code *code)
{
	const char *at = code->text.at, *end = at + code->text.len, *open[BRACKETS_MAX];
	unsigned depth = 0;

	while (at < end) {
		const char *stop = *at == '"' || *at == '\'' ? quoted_end(at, end) :
			comment_end(at, end);

		if (stop != at) {
			at = stop;
			continue;
		}
		if (strchr("([{", *at) && depth == BRACKETS_MAX) {
			bracket_error(u, code, at);
			return false;
		} else if (strchr("([{", *at)) {
			open[depth++] = at;
		} else if (strchr(")]}", *at)) {
			if (!depth ||
			    *at != (*open[depth - 1] == '(' ? ')' : *open[depth - 1] + 2)) {
				bracket_error(u, code, depth && *at == '}' ? open[depth - 1] : at);
				return false;
			}
			depth--;
		}
		at++;
	}
	return true;
}

/* The last statement's `;` may be left out, as the papers do. */
static bool is_ended(const struct code *code)
{
	const char *last = code->text.at + code->text.len - 2;

	while (isspace((unsigned char)*last))
		last--;
	return strchr(";{}", *last);
}

void cblock_emit(struct unit *u, const struct place *at, const struct code *code,
	struct buffer *to)
{
	struct scan s = { .u = u, .place = at, .code = code, .at = code->text.at,
		.end = code->text.at + code->text.len, .to = to };
	bool expression = !at->action && !cblock_returns(u, code);

	if (expression)
		buffer_print(to, "return !!(\n");
	emit_line(to, diag_line(u, code->loc), u->sources[code->loc.file].path);
	buffer_print(to, "%*s", (int)diag_column(u, code->loc) - 1, "");
	if (expression) {
		buffer_print(to, " ");
		s.at++;
		scan_to(&s, s.end - 1);
		buffer_print(to, ");");
	} else {
		scan_to(&s, s.end - 1);
		buffer_print(to, is_ended(code) ? "}" : ";}");
	}
}
