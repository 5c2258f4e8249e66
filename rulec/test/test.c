/*
 * rulec test: files of tests, each `[name:] [@old|@new] events ; outcome ; calls`.
 *
 * The events are what the leader did; the calls are what the follower then does,
 * with what it must get: a result behind `=`, content in strings, and in brackets
 * how it must be served and by which rule.  The outcome is `ok` when the follower
 * runs through and nothing of the leader is left, or `diverge`.
 *
 * Without a file, FILE.t beside FILE.rules is run.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "rulec/test/sim.h"

struct test {
	const char *name;
	struct loc loc;
	enum rules_stage stage;
	bool diverges;
	struct sim_calls events, calls;
};

struct runner {
	struct unit *u;
	struct sim *sim;
	struct test *test;
	unsigned file;
	const char *at, *end;
	unsigned passed, failed;
};

static bool malformed(struct runner *r, const char *text)
{
	diag_error(r->u, sim_loc(r->u, r->file, r->at, r->at < r->end ? r->at + 1 : r->at), "%s",
		text);
	return false;
}

static bool take(struct runner *r, const char *text)
{
	size_t len = strlen(text);

	r->at = sim_space(r->at, r->end);
	if ((size_t)(r->end - r->at) < len || memcmp(r->at, text, len))
		return false;
	r->at += len;
	return true;
}

/* `name:`, if one stands here. */
static void name_read(struct runner *r)
{
	const char *to = sim_word(r->at, r->end);

	if (to == r->at || to == r->end || *to != ':')
		return;
	r->test->name = arena_copy(r->u->arena, r->at, (size_t)(to - r->at));
	r->at = to + 1;
}

static bool test_read(struct runner *r)
{
	struct test *t = r->test;

	t->name = NULL;
	t->stage = RULES_STAGE_ANY;
	t->loc = sim_loc(r->u, r->file, r->at, r->at + 1);
	name_read(r);
	if (take(r, "@old"))
		t->stage = RULES_STAGE_OLD;
	else if (take(r, "@new"))
		t->stage = RULES_STAGE_NEW;
	if (!sim_parse(r->u, r->file, &r->at, r->end, &t->events))
		return false;
	if (!take(r, ";"))
		return malformed(r, "a `;` must stand between events and outcome");
	t->diverges = take(r, "diverge");
	if (!t->diverges && !take(r, "ok"))
		return malformed(r, "the outcome is `ok` or `diverge`");
	if (!take(r, ";"))
		return malformed(r, "a `;` must stand between outcome and calls");
	return sim_parse(r->u, r->file, &r->at, r->end, &t->calls);
}

/* --- what came of it ------------------------------------------------------- */

static bool wrong(struct runner *r, const struct sim_call *c, const char *text)
{
	diag_error(r->u, c->loc, "%s%s%s%s", r->test->name ? r->test->name : "test",
		r->test->name ? ": " : " failed: ", text, "");
	return false;
}

static void show_bytes(struct buffer *b, struct view v)
{
	buffer_print(b, "\"");
	for (size_t i = 0; i < view_len(v) && i < 200; i++) {
		int c = view_at(v, i);

		if (c == '\n' || c == '\r' || c == '\t')
			buffer_print(b, "\\%c", c == '\n' ? 'n' : c == '\r' ? 'r' : 't');
		else
			buffer_print(b, c < ' ' || c > '~' || c == '"' || c == '\\' ?
				"\\%03o" : "%c", c);
	}
	buffer_print(b, "\"");
}

static bool memory_right(struct runner *r, const struct sim_call *c, const struct sim_result *got)
{
	struct buffer b = { 0 };
	bool fine = true;

	for (unsigned i = 0; i < c->row->desc.nargs && fine; i++) {
		const struct arg_desc *arg = &c->row->desc.args[i];

		if (!arg_is_memory(arg) || arg->dir != DIR_OUT || c->any & 1u << i ||
		    !c->call.args[i] || got->how == SIM_RUN || view_same(got->buf[i], c->buf[i]))
			continue;
		buffer_print(&b, "`%s` of `%s` is ", arg->name, c->row->name);
		show_bytes(&b, got->buf[i]);
		fine = wrong(r, c, b.at);
	}
	free(b.at);
	return fine;
}

static bool served_right(struct runner *r, const struct sim_call *c, const struct sim_result *got)
{
	const char *by = got->rule < 0 ? "no rule" :
		rules_name(&r->sim->rules, (unsigned)got->rule);
	char line[200];

	if (c->has_ret && got->ret != c->call.ret) {
		snprintf(line, sizeof(line), "the result is %lld", (long long)got->ret);
		return wrong(r, c, line);
	}
	if ((c->how != SIM_ANY && c->how != got->how) || (c->by && strcmp(c->by, by))) {
		snprintf(line, sizeof(line), "it was served %s, by %s", sim_how_text(got->how), by);
		return wrong(r, c, line);
	}
	return memory_right(r, c, got);
}

static bool test_run(struct runner *r)
{
	struct test *t = r->test;
	struct sim_result got;

	sim_begin(r->sim, &t->events, t->stage);
	for (unsigned i = 0; i < t->calls.n; i++) {
		sim_step(r->sim, &t->calls.at[i], &got);
		if (!got.served && t->diverges)
			return true;
		if (!got.served)
			return wrong(r, &t->calls.at[i], got.why);
		if (!served_right(r, &t->calls.at[i], &got))
			return false;
	}
	if (sim_finish(r->sim) != t->diverges)
		return true;
	if (t->diverges) {
		diag_error(r->u, t->loc, "%s: it does not diverge", t->name ? t->name : "test");
		return false;
	}
	return wrong(r, &t->events.at[r->sim->cursor], "the follower did not come to this");
}

/* --- files ----------------------------------------------------------------- */

static bool file_run(struct runner *r, const char *path)
{
	size_t len;
	char *text = file_read(r->u->arena, path, &len);

	if (!text || r->u->nsources == SOURCES_MAX) {
		fprintf(stderr, "rulec: cannot read: %s: %s\n", path, strerror(errno));
		return false;
	}
	r->file = r->u->nsources++;
	r->u->sources[r->file] = (struct source){ .path = path, .text = text, .len = len };
	r->at = sim_space(text, text + len);
	r->end = text + len;
	while (r->at < r->end) {
		if (!test_read(r))
			return true;
		*(test_run(r) ? &r->passed : &r->failed) += 1;
		r->at = sim_space(r->at, r->end);
		take(r, ";");
		r->at = sim_space(r->at, r->end);
	}
	return true;
}

static const char *beside(struct unit *u, const char *path)
{
	const char *dot = strrchr(path, '.');

	return arena_format(u->arena, "%.*s.t", dot && !strchr(dot, '/') ? (int)(dot - path) :
		(int)strlen(path), path);
}

int command_test(struct unit *u, int argc, char **argv)
{
	struct runner r = { .u = u };
	bool readable = true;

	r.sim = arena_alloc(u->arena, sizeof(*r.sim));
	r.test = arena_alloc(u->arena, sizeof(*r.test));
	if (!sim_open(r.sim, u)) {
		diag_print(u, stderr);
		return u->errors ? EXIT_NO : EXIT_SYSTEM;
	}
	if (argc == 0)
		readable = file_run(&r, beside(u, u->sources[0].path));
	for (int i = 0; i < argc && readable; i++)
		readable = file_run(&r, argv[i]);
	diag_print(u, stderr);
	printf("%u passed, %u failed\n", r.passed, r.failed);
	if (!readable)
		return EXIT_SYSTEM;
	return r.failed || u->errors || !r.passed ? EXIT_NO : EXIT_OK;
}
