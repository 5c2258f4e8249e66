/*
 * Regular expressions: read here, compiled by re2c.
 *
 * The dialect is the common one: . [a-z] [^a] \d \w \s \xNN, groups ( ),
 * (?: ) and (?<name> ), |, * + ? {n} {n,m}, ^ first and $ last, flag i.  It
 * works on bytes.  Each group becomes a pair of re2c's tags; re2c makes the
 * automaton, so matching is one pass without a stack.
 *
 * Sizes are bounded before re2c sees them; what its automaton makes of them is
 * bounded by build.c.
 */
#include <stdlib.h>
#include <string.h>

#include "engine/core/must.h"
#include "rulec/rulec.h"

#define DEPTH_MAX	32
#define REPEAT_MAX	255
#define SIZE_MAX_	4000	/* positions of the automaton */

struct reader {
	struct unit *u;
	const struct pattern *pattern;
	struct regex *regex;
	const char *at, *end;
	unsigned depth;
	bool failed;
};

struct set {
	uint8_t bits[32];
};

static void set_add(struct set *s, int c)
{
	MUST(c >= 0 && c < 256);
	s->bits[c / 8 & 31] |= (uint8_t)(1 << c % 8);
}

static bool set_has(const struct set *s, int c)
{
	return s->bits[c / 8] >> c % 8 & 1;
}

static void set_range(struct set *s, int from, int to)
{
	for (int c = from; c <= to; c++)
		set_add(s, c);
}

static void fail(struct reader *r, const char *text)
{
	uint32_t at = r->pattern->loc.begin + 1 + (uint32_t)(r->at - r->pattern->raw.at);

	if (!r->failed)
		diag_error(r->u, (struct loc){ r->pattern->loc.file, at, at + 1 }, "%s", text);
	r->failed = true;
	r->at = r->end;
}

/* --- one byte, or a set of bytes ------------------------------------------- */

/* Letters that stand for a set; false: c is none. */
static bool set_class(struct set *s, int c)
{
	struct set plain = { { 0 } };
	bool inverted = c == 'D' || c == 'W' || c == 'S';

	switch (c | 0x20) {
	case 'w':
		set_range(&plain, 'a', 'z');
		set_range(&plain, 'A', 'Z');
		set_add(&plain, '_');
		/* fall through */
	case 'd':
		set_range(&plain, '0', '9');
		break;
	case 's':
		set_add(&plain, ' ');
		set_range(&plain, '\t', '\r');
		break;
	default:
		return false;
	}
	for (int i = 0; i < 256; i++)
		if (set_has(&plain, i) != inverted)
			set_add(s, i);
	return true;
}

static int hex_value(int c)
{
	return c >= '0' && c <= '9' ? c - '0' : (c | 0x20) >= 'a' && (c | 0x20) <= 'f' ?
		(c | 0x20) - 'a' + 10 : -1;
}

/* The byte behind a backslash. */
static int escaped(struct reader *r)
{
	static const char names[] = "nrtfve0", values[] = "\n\r\t\f\v\033";
	const char *name;
	int c;

	if (r->at == r->end) {
		fail(r, "nothing stands behind this backslash");
		return 0;
	}
	c = (unsigned char)*r->at++;
	if (c == 'x' && r->end - r->at >= 2 && hex_value(r->at[0]) >= 0 &&
	    hex_value(r->at[1]) >= 0) {
		c = hex_value(r->at[0]) * 16 + hex_value(r->at[1]);
		r->at += 2;
		return c;
	}
	name = strchr(names, c);
	if (name)
		return (unsigned char)values[name - names];
	if ((c | 0x20) >= 'a' && (c | 0x20) <= 'z') {
		r->at--;
		fail(r, "no such escape in a regular expression");
	}
	return c;
}

static int set_byte(struct reader *r)
{
	int c = (unsigned char)*r->at++;

	return c == '\\' ? escaped(r) : c;
}

static void set_member(struct reader *r, struct set *s)
{
	int from, to;

	if (r->end - r->at >= 2 && r->at[0] == '\\' && set_class(s, (unsigned char)r->at[1])) {
		r->at += 2;
		return;
	}
	from = to = set_byte(r);
	if (r->end - r->at >= 2 && r->at[0] == '-' && r->at[1] != ']') {
		r->at++;
		to = set_byte(r);
	}
	if (to < from)
		fail(r, "this range is empty");
	set_range(s, from, to);
}

static void set_read(struct reader *r, struct set *s)
{
	bool inverted = r->at < r->end && *r->at == '^', first = true;

	r->at += inverted;
	while (r->at < r->end && (*r->at != ']' || first)) {
		first = false;
		set_member(r, s);
	}
	if (r->at == r->end) {
		fail(r, "this `[` has no end");
		return;
	}
	r->at++;
	for (int i = 0; inverted && i < 32; i++)
		s->bits[i] = (uint8_t)~s->bits[i];
}

static void set_emit(struct reader *r, struct set *s)
{
	struct buffer *b = &r->regex->re2c;
	unsigned n = 0;

	for (int c = 'a'; c <= 'z' && r->pattern->fold; c++)
		if (set_has(s, c) || set_has(s, c - 32))
			set_add(s, c), set_add(s, c - 32);
	buffer_print(b, "[");
	for (int from = 0; from < 256; from++) {
		int to = from;

		if (!set_has(s, from))
			continue;
		while (to < 255 && set_has(s, to + 1))
			to++;
		buffer_print(b, from == to ? "\\x%02x" : "\\x%02x-\\x%02x", from, to);
		from = to;
		n++;
	}
	buffer_print(b, "]");
	if (!n)
		fail(r, "this set holds no byte");
}

/* --- the expression -------------------------------------------------------- */

static unsigned alternatives(struct reader *r);

/* `?:` or `?<name>` behind a `(`; the group's number, -1: it has none. */
static int group_open(struct reader *r)
{
	struct regex *x = r->regex;
	const char *name = NULL;

	if (r->end - r->at >= 2 && r->at[0] == '?' && r->at[1] == ':') {
		r->at += 2;
		return -1;
	}
	if (r->end - r->at >= 2 && r->at[0] == '?' && r->at[1] == '<') {
		const char *from = r->at += 2;

		while (r->at < r->end && (*r->at == '_' || (*r->at | 0x20) >= 'a') &&
		       (*r->at | 0x20) <= 'z')
			r->at++;
		if (r->at == r->end || *r->at != '>' || r->at == from)
			fail(r, "a group's name is letters, and ends with `>`");
		else
			name = arena_copy(r->u->arena, from, (size_t)(r->at++ - from));
	}
	for (unsigned i = 0; name && i < x->ngroups; i++)
		if (x->group[i] && !strcmp(x->group[i], name))
			fail(r, "two groups of this name");
	if (x->ngroups == REGEX_GROUPS) {
		fail(r, "too many groups");
		return -1;
	}
	MUST(x->ngroups < REGEX_GROUPS);
	x->group[x->ngroups] = name;
	return (int)x->ngroups++;
}

static unsigned group_read(struct reader *r)
{
	int group = group_open(r);
	unsigned size;

	if (++r->depth > DEPTH_MAX)
		fail(r, "too many brackets in each other");
	buffer_print(&r->regex->re2c, "(");
	if (group >= 0)
		buffer_print(&r->regex->re2c, "@b%d ", group);
	size = alternatives(r);
	if (group >= 0)
		buffer_print(&r->regex->re2c, " @e%d", group);
	buffer_print(&r->regex->re2c, ")");
	MUST(r->depth);
	r->depth--;
	if (!r->failed && (r->at == r->end || *r->at != ')'))
		fail(r, "this group has no `)`");
	else if (!r->failed)
		r->at++;
	return size;
}

static unsigned atom(struct reader *r)
{
	struct set s = { { 0 } };
	int c = (unsigned char)*r->at++;

	if (c == '(')
		return group_read(r);
	if (c == '*' || c == '+' || c == '?' || c == '{') {
		r->at--;
		fail(r, "nothing stands before this to be repeated");
	} else if (c == '^' || c == '$') {
		r->at--;
		fail(r, "`^` stands first and `$` last, or behind a backslash");
	} else if (c == '.') {
		set_range(&s, 0, 255);
	} else if (c == '[') {
		set_read(r, &s);
	} else if (c == '\\' && r->at < r->end && set_class(&s, (unsigned char)*r->at)) {
		r->at++;
	} else {
		set_add(&s, c == '\\' ? escaped(r) : c);
	}
	if (!r->failed)
		set_emit(r, &s);
	return 1;
}

static unsigned number(struct reader *r)
{
	unsigned n = 0;

	if (r->at == r->end || *r->at < '0' || *r->at > '9')
		fail(r, "a number must stand here: {2} or {2,4}");
	while (r->at < r->end && *r->at >= '0' && *r->at <= '9' && n <= REPEAT_MAX)
		n = n * 10 + (unsigned)(*r->at++ - '0');
	return n;
}

/* `{n}`, `{n,}`, `{n,m}`; what size is multiplied by. */
static unsigned counted(struct reader *r)
{
	unsigned from = number(r), to = from;
	bool open = false;

	if (r->at < r->end && *r->at == ',') {
		r->at++;
		open = r->at < r->end && *r->at == '}';
		to = open ? from + 1 : number(r);
	}
	if (r->failed)
		return 1;
	if (r->at == r->end || *r->at != '}' || to < from || to > REPEAT_MAX || to == 0) {
		fail(r, "not a repetition: {n,m}, at most 255");
		return 1;
	}
	r->at++;
	buffer_print(&r->regex->re2c, open ? "{%u,}" : "{%u,%u}", from, to);
	return to;
}

static unsigned repeated(struct reader *r)
{
	unsigned size = atom(r), times = 1;

	while (r->at < r->end && strchr("*+?{", *r->at) && *r->at) {
		if (*r->at == '{') {
			r->at++;
			times = counted(r);
			size = size > SIZE_MAX_ ? size : size * times;
		} else {
			buffer_add(&r->regex->re2c, r->at++, 1);
		}
		/* A second repetition of the same: in brackets for re2c's sake. */
		if (r->at < r->end && *r->at && strchr("*+?{", *r->at))
			fail(r, "repeated twice");
	}
	buffer_print(&r->regex->re2c, " ");
	return size;
}

static unsigned sequence(struct reader *r)
{
	unsigned size = 0;

	MUST(r->at <= r->end && r->end == r->pattern->raw.at + r->pattern->raw.len);

	while (r->at < r->end && *r->at != '|' && *r->at != ')') {
		if (*r->at == '$' && r->at + 1 == r->end && r->depth == 0) {
			r->regex->to_end = true;
			r->at++;
			break;
		}
		size += repeated(r);
		if (size > SIZE_MAX_)
			fail(r, "this expression is too large");
	}
	if (size == 0)
		buffer_print(&r->regex->re2c, "\"\" ");
	return size;
}

static unsigned alternatives(struct reader *r)
{
	unsigned size = sequence(r);

	while (r->at < r->end && *r->at == '|') {
		r->at++;
		buffer_print(&r->regex->re2c, "| ");
		size += sequence(r);
	}
	return size;
}

/* The same expression again: one automaton does. */
static struct regex *regex_again(const struct unit *u, const struct pattern *pattern)
{
	struct regex *x = u->regexes;

	while (x && !(x->fold == pattern->fold && x->raw.len == pattern->raw.len &&
		      !memcmp(x->raw.at, pattern->raw.at, x->raw.len)))
		x = x->next;
	return x;
}

struct regex *regex_new(struct unit *u, const struct pattern *pattern)
{
	struct regex *x = regex_again(u, pattern);
	struct reader r;

	if (x)
		return x;
	x = arena_alloc(u->arena, sizeof(*x));
	r = (struct reader){ .u = u, .pattern = pattern, .regex = x, .at = pattern->raw.at,
		.end = pattern->raw.at + pattern->raw.len };
	x->loc = pattern->loc;
	x->raw = pattern->raw;
	x->fold = pattern->fold;
	x->from_start = r.at < r.end && *r.at == '^';
	r.at += x->from_start;
	alternatives(&r);
	if (!r.failed && r.at < r.end)
		fail(&r, "this `)` closes nothing");
	if (!r.failed) {
		x->number = u->regexes ? u->regexes->number + 1 : 0;
		x->next = u->regexes;
		u->regexes = x;
	}
	x->text = arena_copy(u->arena, x->re2c.at ? x->re2c.at : "", x->re2c.len);
	free(x->re2c.at);
	return r.failed ? NULL : x;
}

/* --- what it begins with ---------------------------------------------------- */

/* Behind `[`: the place of its `]`. */
static const char *set_end(const char *at, const char *end)
{
	at += at < end && *at == '^';
	at += at < end && *at == ']';
	while (at < end && *at != ']')
		at += *at == '\\' ? 2 : 1;
	return at;
}

/* Where the first of several alternatives ends; the end if there is one only. */
static const char *first_bar(const char *at, const char *end)
{
	unsigned depth = 0;

	for (; at < end; at++) {
		if (*at == '\\')
			at++;
		else if (*at == '[')
			at = set_end(at + 1, end);
		else if (*at == '|' && !depth)
			return at;
		else
			depth += (*at == '(') - (*at == ')');
	}
	return end;
}

struct text regex_head(const struct pattern *pattern)
{
	const char *at = pattern->raw.at, *end = at + pattern->raw.len, *from = at + 1;

	if (at == end || *at != '^' || pattern->fold || first_bar(at, end) < end)
		return (struct text){ at, 0 };
	for (at = from; at < end && !strchr("\\[](){}.*+?|^$", *at); at++)
		;
	/* What is repeated may be missing. */
	if (at < end && at > from && strchr("*?{", *at))
		at--;
	return (struct text){ from, (size_t)(at - from) };
}

/* --- what re2c reads ------------------------------------------------------- */

static void tags_emit(const struct regex *x, struct buffer *to)
{
	for (unsigned i = 0; i < x->ngroups; i++)
		buffer_print(to, "\tconst uint8_t *b%u = 0, *e%u = 0;\n", i, i);
}

static void groups_emit(const struct regex *x, struct buffer *to)
{
	for (unsigned i = 0; i < x->ngroups; i++)
		if (x->group[i])
			buffer_print(to, "\t\tif (group && group[%u])\n"
				"\t\t\t*group[%u] = b%u && e%u ? "
				"view_of(b%u, (size_t)(e%u - b%u)) : view_none();\n",
				i, i, i, i, i, i, i);
	for (unsigned i = 0; i < x->ngroups; i++)
		if (!x->group[i])
			buffer_print(to, "\t\t(void)b%u, (void)e%u;\n", i, i);
}

static bool any_first(const struct regex *x)
{
	return !x->from_start && x->ngroups == 0;
}

static const char settings[] =
	"/*!re2c\n"
	"\tre2c:api = custom;\n"
	"\tre2c:api:style = free-form;\n"
	"\tre2c:yyfill:enable = 0;\n"
	"\tre2c:eof = 0;\n"
	"\tre2c:tags = 1;\n"
	"\tre2c:define:YYCTYPE = \"uint8_t\";\n"
	"\tre2c:define:YYPEEK = \"(at < end ? *at : 0)\";\n"
	"\tre2c:define:YYSKIP = \"++at;\";\n"
	"\tre2c:define:YYBACKUP = \"mark = at;\";\n"
	"\tre2c:define:YYRESTORE = \"at = mark;\";\n"
	"\tre2c:define:YYLESSTHAN = \"(at >= end)\";\n"
	"\tre2c:define:YYSTAGP = \"@@{tag} = at;\";\n"
	"\tre2c:define:YYSTAGN = \"@@{tag} = 0;\";\n"
	"\tre2c:define:YYSHIFTSTAG = \"@@{tag} += @@{shift};\";\n";

static void regex_emit_one(const struct regex *x, struct buffer *to)
{
	buffer_print(to, "static bool re_%u_at(const uint8_t *at, const uint8_t *end, "
		"struct view *const *group)\n{\n\tconst uint8_t *mark = at;\n", x->number);
	tags_emit(x, to);
	buffer_print(to, "\t/*!stags:re2c format = \"const uint8_t *@@ = 0;\\n\"; */\n");
	/* The tags of all blocks are declared in each. */
	buffer_print(to, "\t/*!stags:re2c format = \"(void)@@;\\n\"; */\n");
	buffer_print(to, "\t(void)mark, (void)group;\n%s", settings);
	buffer_print(to, "\t%s(%s) {\n", any_first(x) ? "[\\x00-\\xff]* " : "", x->text);
	groups_emit(x, to);
	buffer_print(to, "\t\treturn %s;\n\t}\n\t* { return false; }\n"
		"\t$ { return false; }\n*/\n}\n\n", x->to_end ? "at == end" : "true");
	buffer_print(to, "static bool re_%u(struct view v, struct view *const *group)\n{\n",
		x->number);
	if (x->from_start || any_first(x))
		buffer_print(to, "\treturn re_%u_at(v.at_, v.at_ + v.len_, group);\n}\n\n",
			x->number);
	else
		buffer_print(to, "\tfor (uint32_t i = 0; i <= v.len_; i++)\n"
			"\t\tif (re_%u_at(v.at_ + i, v.at_ + v.len_, group))\n"
			"\t\t\treturn true;\n\treturn false;\n}\n\n", x->number);
}

void regex_emit(const struct unit *u, struct buffer *to)
{
	for (unsigned n = u->regexes ? u->regexes->number + 1 : 0, i = 0; i < n; i++) {
		const struct regex *x = u->regexes;

		while (x && x->number != i)
			x = x->next;
		MUST(x);	/* they are numbered without a gap */
		regex_emit_one(x, to);
	}
}
