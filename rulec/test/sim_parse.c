/*
 * Calls as text: name(arguments) [= result] [[how rule]].
 *
 * An argument is a number, a string, `-` (null) or `_` (not said); `…` says
 * nothing of this and all further arguments, and at the end of a list that more
 * calls may follow.  What is not said gets a sensible value: a count that is
 * large enough, a result that is success.
 */
#include <stdlib.h>
#include <string.h>

#include "rulec/test/sim.h"

#define ELLIPSIS "\xe2\x80\xa6"
#define COUNT_ANY 65536

const char *sim_space(const char *at, const char *end)
{
	while (at < end) {
		if (*at == ' ' || *at == '\t' || *at == '\n' || *at == '\r') {
			at++;
		} else if (*at == '#' || (end - at >= 2 && at[0] == '/' && at[1] == '/')) {
			while (at < end && *at != '\n')
				at++;
		} else {
			break;
		}
	}
	return at;
}

const char *sim_word(const char *at, const char *end)
{
	while (at < end && (*at == '_' || (*at >= '0' && *at <= '9') ||
	       (*at >= 'A' && *at <= 'Z') || (*at >= 'a' && *at <= 'z')))
		at++;
	return at;
}

struct loc sim_loc(const struct unit *u, unsigned file, const char *from, const char *to)
{
	const char *text = u->sources[file].text;

	return (struct loc){ file, (uint32_t)(from - text), (uint32_t)(to - text) };
}

struct reader {
	struct unit *u;
	unsigned file;
	const char *at, *end;
};

static bool fail(struct reader *r, const char *from, const char *text)
{
	const char *to = from < r->end ? from + 1 : from;

	diag_error(r->u, sim_loc(r->u, r->file, from, to), "%s", text);
	return false;
}

static bool take(struct reader *r, const char *text)
{
	size_t len = strlen(text);

	r->at = sim_space(r->at, r->end);
	if ((size_t)(r->end - r->at) < len || memcmp(r->at, text, len))
		return false;
	r->at += len;
	return true;
}

static bool number(struct reader *r, int64_t *n)
{
	char *stop;

	r->at = sim_space(r->at, r->end);
	*n = r->at < r->end && *r->at == '-' ? strtoll(r->at, &stop, 0) :
		(int64_t)strtoull(r->at, &stop, 0);
	if (stop == r->at)
		return fail(r, r->at, "a number must stand here");
	r->at = stop;
	return true;
}

/* --- arguments ------------------------------------------------------------- */

static bool string(struct reader *r, struct sim_call *c, unsigned i)
{
	const char *from = r->at++;
	struct pattern *p;

	while (r->at < r->end && *r->at != '"' && *r->at != '\n')
		r->at += *r->at == '\\' && r->at + 1 < r->end ? 2 : 1;
	if (r->at >= r->end || *r->at != '"')
		return fail(r, from, "this string has no end");
	r->at++;
	p = ast_text(sim_loc(r->u, r->file, from, r->at), r->u,
		(struct text){ from + 1, (size_t)(r->at - from) - 2 });
	if (!arg_is_memory(&c->row->desc.args[i]))
		return fail(r, from, "this argument is a number");
	c->buf[i] = view_of(p->bytes.at, p->bytes.len);
	c->call.args[i] = 0x1000 * (i + 1);
	return true;
}

static bool argument(struct reader *r, struct sim_call *c, unsigned i)
{
	const char *from = r->at = sim_space(r->at, r->end);
	int64_t n;

	if (from < r->end && *from == '"')
		return string(r, c, i);
	if (take(r, "_")) {
		c->any |= (uint8_t)(1u << i);
		return true;
	}
	if (from + 1 < r->end && *from == '-' && (from[1] < '0' || from[1] > '9')) {
		r->at++;
		return true;
	}
	if (!number(r, &n))
		return false;
	c->call.args[i] = (uint64_t)n;
	return true;
}

static bool count_wrong(struct reader *r, const struct sim_call *c, const char *from)
{
	struct diag *d = diag_error(r->u, sim_loc(r->u, r->file, from, r->at),
		"`%s` has %u arguments", c->row->name, c->row->desc.nargs);

	diag_hint(r->u, d, "`_` for what does not matter, `…` for all the rest");
	return false;
}

static bool arguments(struct reader *r, struct sim_call *c)
{
	const char *from = r->at;
	unsigned i = 0, nargs = c->row->desc.nargs;

	if (!take(r, "("))
		return fail(r, r->at, "a `(` must stand here");
	while (!take(r, ")")) {
		if (i && !take(r, ","))
			return fail(r, r->at, "a `,` or `)` must stand here");
		if (take(r, ELLIPSIS)) {
			for (; i < nargs; i++)
				c->any |= (uint8_t)(1u << i);
			if (!take(r, ")"))
				return fail(r, r->at, "nothing can follow `…`");
			break;
		}
		if (i == nargs)
			return count_wrong(r, c, from);
		if (!argument(r, c, i++))
			return false;
	}
	/* One `_` for all, as in rules. */
	if (i == 1 && c->any == 1)
		for (; i < nargs; i++)
			c->any |= (uint8_t)(1u << i);
	return i == nargs || count_wrong(r, c, from);
}

/* --- what is not said ------------------------------------------------------ */

static void count_guess(struct sim_call *c, unsigned i)
{
	const struct arg_desc *arg = &c->row->desc.args[i];
	uint64_t bit = 1u << arg->len_arg;

	if (arg->len_rule == LEN_RULE_RESULT && c->any & bit)
		c->call.args[arg->len_arg] = COUNT_ANY;
	if (arg->len_rule == LEN_RULE_COUNT && c->any & bit)
		c->call.args[arg->len_arg] = c->buf[i].len_;
	if (c->has_ret)
		return;
	if (arg->len_rule == LEN_RULE_RESULT)
		c->call.ret = c->buf[i].len_;
	if (arg->len_rule == LEN_RULE_COUNT && c->row->desc.result == KIND_SIZE &&
	    arg->what == LAYOUT_bytes)
		c->call.ret = (int64_t)c->call.args[arg->len_arg];
}

static void guess(struct sim_call *c)
{
	for (unsigned i = 0; i < c->row->desc.nargs; i++) {
		const struct arg_desc *arg = &c->row->desc.args[i];

		if (arg_is_memory(arg) && c->any & 1u << i)
			c->call.args[i] = 0x1000 * (i + 1);
		if (arg_is_memory(arg))
			count_guess(c, i);
	}
	if (c->row->variant && c->any & 1u << c->row->arg)
		c->call.args[c->row->arg] = c->row->value;
	c->call.nr = c->row->nr;
}

/* --- calls ----------------------------------------------------------------- */

static bool how(struct reader *r, struct sim_call *c)
{
	static const char *const words[] = { "any", "default", "match", "run", "answer" };
	const char *from = r->at = sim_space(r->at, r->end), *to = sim_word(from, r->end);

	for (unsigned i = 0; i < 5; i++)
		if (strlen(words[i]) == (size_t)(to - from) &&
		    !memcmp(words[i], from, (size_t)(to - from)))
			c->how = i;
	if (c->how == SIM_ANY)
		return fail(r, from, "there are [default], [match], [run], [answer]");
	r->at = sim_space(to, r->end);
	if (c->how == SIM_RUN && r->at < r->end && (*r->at == '-' ||
	    (*r->at >= '0' && *r->at <= '9'))) {
		c->ran = true;
		if (!number(r, &c->ran_ret))
			return false;
		r->at = sim_space(r->at, r->end);
	}
	to = sim_word(r->at, r->end);
	if (to > r->at)
		c->by = arena_copy(r->u->arena, r->at, (size_t)(to - r->at));
	r->at = to;
	return take(r, "]") || fail(r, r->at, "a `]` must stand here");
}

static bool call(struct reader *r, struct sim_call *c)
{
	const char *from = r->at = sim_space(r->at, r->end), *to = sim_word(from, r->end);
	const char *name = arena_copy(r->u->arena, from, (size_t)(to - from)), *near;
	struct diag *d;
	bool many;

	*c = (struct sim_call){ .loc = sim_loc(r->u, r->file, from, to) };
	if (to == from)
		return fail(r, from, "a call must stand here");
	c->row = name_find(name, &many);
	if (!c->row) {
		d = diag_error(r->u, c->loc, "unknown call `%s`", name);
		near = name_nearest(r->u, name);
		if (near)
			diag_hint(r->u, d, "did you mean `%s`?", near);
		return false;
	}
	r->at = to;
	if (!arguments(r, c))
		return false;
	if (take(r, "=")) {
		c->has_ret = true;
		if (!number(r, &c->call.ret))
			return false;
	}
	guess(c);
	return !take(r, "[") || how(r, c);
}

bool sim_parse(struct unit *u, unsigned file, const char **at, const char *end,
	struct sim_calls *calls)
{
	struct reader r = { u, file, sim_space(*at, end), end };
	bool fine = true;

	calls->n = 0;
	calls->open = false;
	while (fine && r.at < end && *r.at != ';') {
		if (take(&r, ELLIPSIS)) {
			calls->open = true;
			break;
		}
		if (calls->n == SIM_CALLS)
			return fail(&r, r.at, "too many calls");
		fine = call(&r, &calls->at[calls->n]);
		if (fine)
			calls->n++;
		if (!fine || !take(&r, ","))
			break;
	}
	*at = sim_space(r.at, end);
	return fine;
}
