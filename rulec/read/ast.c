/*
 * The constructors that the grammar's actions call.  They only build: whether a
 * name means something is resolve.c's question.  What can be decided from the
 * token alone (escapes in strings, the size of a number) is decided here.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "engine/core/must.h"
#include "rulec/read/parse.h"

#define NEW(p, type) ((type *)arena_alloc((p)->unit->arena, sizeof(type)))
#define ELLIPSIS "\xe2\x80\xa6"

static int hex_digit(int c)
{
	return c >= '0' && c <= '9' ? c - '0' :
		c >= 'a' && c <= 'f' ? c - 'a' + 10 :
		c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* One escape behind a backslash; *at moves over it.  -1: there is no such. */
static int escape(const char **at, const char *end)
{
	static const char names[] = "abefnrtv\\\"'?$/", values[] = "\a\b\033\f\n\r\t\v\\\"'?$/";
	int c = (unsigned char)*(*at)++, value = 0, digits = 0;
	const char *name;

	if (c == 'x') {
		while (*at < end && digits < 2 && hex_digit(**at) >= 0)
			value = value * 16 + hex_digit(*(*at)++), digits++;
		return digits ? value : -1;
	}
	if (c >= '0' && c <= '7') {
		for (value = c - '0'; *at < end && digits < 2 && **at >= '0' && **at <= '7';
		     digits++)
			value = value * 8 + *(*at)++ - '0';
		return value & 0xff;
	}
	name = c ? strchr(names, c) : NULL;
	return name ? (unsigned char)values[name - names] : -1;
}

static struct text unescape(struct unit *u, struct loc loc, struct text raw)
{
	char *to = arena_alloc(u->arena, raw.len + 1);
	const char *at = raw.at, *end = raw.at + raw.len;
	size_t len = 0;

	while (at < end) {
		const char *begin = at;
		int c = (unsigned char)*at++;

		if (c == '\\' && at < end)
			c = escape(&at, end);
		if (c < 0) {
			uint32_t from = loc.begin + (uint32_t)(begin - (raw.at - 1));

			diag_error(u, (struct loc){ loc.file, from, from + 2 },
				"no such escape in a string");
			c = '?';
		}
		to[len++] = (char)c;
	}
	return (struct text){ to, len };
}

/* Where `…`, or the dots that one types for it, stand in a string; NULL: nowhere. */
static const char *dots_in(struct text raw, size_t *len)
{
	static const char *const dots[] = { ELLIPSIS, "..." };
	const char *first = NULL;

	for (unsigned i = 0; i < 2; i++) {
		const char *at = memmem(raw.at, raw.len, dots[i], strlen(dots[i]));

		if (!at || (first && at > first))
			continue;
		first = at;
		*len = strlen(dots[i]);
	}
	return first;
}

/* It would be taken for bytes, and never match what was meant. */
static void dots_refuse(struct unit *u, struct loc loc, struct text raw)
{
	size_t len;
	const char *at = dots_in(raw, &len);
	uint32_t from;

	if (!at)
		return;
	from = loc.begin + (uint32_t)(at - (raw.at - 1));
	diag_hint(u, diag_error(u, (struct loc){ loc.file, from, from + (uint32_t)len },
		"`%.*s` is no part of a string", (int)len, at),
		"`…` at a string's end says how content begins; in the middle a regular "
		"expression is meant, ~ /^x.*y$/; dots themselves are \\x2e..");
}

struct pattern *ast_text(struct loc loc, struct unit *u, struct text raw)
{
	struct pattern *pattern = arena_alloc(u->arena, sizeof(*pattern));
	size_t cut = strlen(ELLIPSIS);

	*pattern = (struct pattern){ .loc = loc, .kind = PATTERN_STRING, .raw = raw };
	if (raw.len >= cut && !memcmp(raw.at + raw.len - cut, ELLIPSIS, cut)) {
		pattern->prefix = true;
		raw.len -= cut;
	}
	dots_refuse(u, loc, raw);
	pattern->bytes = unescape(u, loc, raw);
	return pattern;
}

struct pattern *ast_string(struct loc loc, struct parse *p, struct text raw)
{
	return ast_text(loc, p->unit, raw);
}

struct pattern *ast_regex(struct loc loc, struct parse *p, struct text raw)
{
	struct pattern *pattern = NEW(p, struct pattern);
	size_t end = raw.len;

	*pattern = (struct pattern){ .loc = loc, .kind = PATTERN_REGEX };
	while (raw.at[end - 1] != '/') {
		end--;
		if (raw.at[end] == 'i')
			pattern->fold = true;
		else
			parse_error(p, (struct loc){ loc.file, loc.begin + (uint32_t)end,
				loc.begin + (uint32_t)end + 1 }, "no such flag: only `i` is");
	}
	MUST(end >= 2 && raw.at[0] == '/');	/* as the scanner has found it */
	pattern->raw = (struct text){ raw.at + 1, end - 2 };
	return pattern;
}

struct pattern *ast_pattern_name(struct loc loc, struct parse *p, const char *name)
{
	struct pattern *pattern = NEW(p, struct pattern);

	*pattern = (struct pattern){ .loc = loc, .kind = PATTERN_NAME,
		.raw = { name, strlen(name) } };
	return pattern;
}

struct arg *ast_arg(struct loc loc, struct parse *p, enum arg_form form)
{
	struct arg *arg = NEW(p, struct arg);

	*arg = (struct arg){ .loc = loc, .form = form };
	return arg;
}

struct arg *ast_arg_name(struct loc loc, struct parse *p, const char *name)
{
	struct arg *arg = ast_arg(loc, p, ARG_NAME);

	arg->name = name;
	return arg;
}

struct arg *ast_arg_or(struct loc loc, struct parse *p, struct arg *arg, const char *name)
{
	size_t n = strlen(arg->name), m = strlen(name);
	char *both = arena_alloc(p->unit->arena, n + m + 2);

	memcpy(both, arg->name, n);
	both[n] = '|';
	memcpy(both + n + 1, name, m);
	arg->name = both;
	arg->loc = loc;
	return arg;
}

struct arg *ast_arg_number(struct loc loc, struct parse *p, struct text raw)
{
	struct arg *arg = ast_arg(loc, p, ARG_NUMBER);
	const char *text = parse_copy(p, raw);

	arg->raw = raw;
	errno = 0;
	arg->number = *text == '-' ? strtoll(text, NULL, 0) : (int64_t)strtoull(text, NULL, 0);
	if (errno)
		parse_error(p, loc, "a number of more than 64 bits");
	return arg;
}

struct arg *ast_arg_pattern(struct loc loc, struct parse *p, enum arg_form form,
	struct pattern *pattern)
{
	struct arg *arg = ast_arg(loc, p, form);

	arg->pattern = pattern;
	return arg;
}

struct call *ast_call(struct loc loc, struct parse *p, struct loc name_loc,
	const char *name, struct arg *args)
{
	struct call *call = NEW(p, struct call);

	*call = (struct call){ .loc = loc, .name_loc = name_loc, .name = name, .args = args };
	call->bare = args && args->form == ARG_ANY && !args->next;
	return call;
}

struct code *ast_code(struct loc loc, struct parse *p, struct text text)
{
	struct code *code = NEW(p, struct code);

	*code = (struct code){ loc, text };
	return code;
}

struct step *ast_step(struct loc loc, struct parse *p, struct call *alts, struct code *guard)
{
	struct step *step = NEW(p, struct step);

	*step = (struct step){ .loc = loc, .alts = alts, .guard = guard };
	return step;
}

struct step *ast_step_label(struct loc loc, struct step *step, struct loc label_loc,
	const char *label)
{
	step->loc = loc;
	step->label_loc = label_loc;
	step->label = label;
	return step;
}

struct out *ast_out(struct loc loc, struct parse *p, struct call *call, bool has_args,
	struct code *guard)
{
	struct out *out = NEW(p, struct out);

	*out = (struct out){ .loc = loc, .call = call, .has_args = has_args, .guard = guard };
	return out;
}

struct out *ast_out_action(struct loc loc, struct out *out, struct loc result_loc,
	const char *result, struct code *action)
{
	out->loc = loc;
	out->result_loc = result_loc;
	out->result = result;
	out->action = action;
	return out;
}

struct out *ast_out_star(struct loc loc, struct out *out)
{
	out->loc = loc;
	out->star = true;
	return out;
}

struct attr *ast_attr(struct loc loc, struct parse *p, const char *name, struct loc value_loc,
	const char *value)
{
	struct attr *attr = NEW(p, struct attr);

	*attr = (struct attr){ .loc = loc, .value_loc = value_loc, .name = name, .value = value };
	return attr;
}

struct attr *ast_attrs(struct attr *list, struct attr *attr)
{
	LIST_APPEND(struct attr, list, attr);
	return list;
}

struct rule *ast_left(struct loc loc, struct parse *p, enum left_kind kind, struct step *steps)
{
	struct rule *rule = NEW(p, struct rule);

	rule->left_loc = rule->loc = loc;
	rule->left = kind;
	rule->steps = steps;
	return rule;
}

struct rule *ast_rule(struct loc loc, struct parse *p, struct rule *left, struct loc right_loc,
	struct out *outs)
{
	(void)p;
	left->loc = loc;
	left->name_loc = left->left_loc;
	left->right_loc = right_loc;
	if (outs && !outs->call)
		left->drop = outs;
	else
		left->outs = outs;
	return left;
}

struct rule *ast_rule_head(struct loc loc, struct rule *rule, struct loc name_loc,
	const char *name, struct attr *attrs)
{
	rule->loc = loc;
	rule->name = name;
	rule->attrs = attrs;
	if (name)
		rule->name_loc = name_loc;
	return rule;
}

struct item *ast_item(struct loc loc, struct parse *p, enum item_kind kind)
{
	struct item *item = NEW(p, struct item);

	*item = (struct item){ .loc = loc, .kind = kind };
	return item;
}

struct item *ast_item_path(struct loc loc, struct parse *p, enum item_kind kind,
	struct text path)
{
	struct item *item = ast_item(loc, p, kind);

	item->path = path;
	return item;
}

struct item *ast_item_group(struct loc loc, struct parse *p, struct loc name_loc,
	const char *name, struct call *calls)
{
	struct item *item = ast_item(loc, p, ITEM_GROUP);

	item->group = NEW(p, struct group);
	*item->group = (struct group){ .loc = loc, .name_loc = name_loc, .name = name,
		.calls = calls };
	return item;
}

struct item *ast_item_let(struct loc loc, struct parse *p, struct loc name_loc,
	const char *name, struct pattern *pattern)
{
	struct item *item = ast_item(loc, p, ITEM_LET);

	item->let = NEW(p, struct let);
	*item->let = (struct let){ .loc = loc, .name_loc = name_loc, .name = name,
		.pattern = pattern };
	return item;
}

struct item *ast_item_rule(struct loc loc, struct parse *p, struct rule *rule)
{
	struct item *item = ast_item(loc, p, ITEM_RULE);

	item->rule = rule;
	return item;
}

struct item *ast_item_transform(struct loc loc, struct parse *p, const char *kind,
	struct loc name_loc, const char *name, struct code *body)
{
	struct item *item = ast_item(loc, p, ITEM_TRANSFORM);

	MUST(name && body);
	item->transform = NEW(p, struct transform);
	*item->transform = (struct transform){ .kind = kind, .name = name,
		.name_loc = name_loc, .body = body };
	return item;
}

void ast_comment(struct loc loc, struct parse *p)
{
	struct comment *comment = NEW(p, struct comment);

	comment->loc = loc;
	LIST_APPEND(struct comment, p->source->comments, comment);
}
