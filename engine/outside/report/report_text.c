/*
 * A report for people: 80 columns, the most important first.
 *
 * The window has one line for a call that both made alike, and two for one that
 * they did not; a line that would be longer is cut.  The calls in question stand
 * above it in full, and a suggested rule, which is to be copied, below.
 */
#include <string.h>

#include "engine/core/must.h"
#include "engine/outside/print/plain.h"
#include "engine/outside/report/finding.h"
#include "engine/outside/report/report_parts.h"

#define COLUMNS	80

/* One line, cut at the last column. */
static void line(FILE *to, const char *head, const char *text)
{
	size_t room = COLUMNS - strlen(head);

	if (strlen(text) <= room)
		fprintf(to, "%s%s\n", head, text);
	else
		fprintf(to, "%s%.*s...\n", head, (int)room - 3, text);
}

/* A long text in lines of their own, broken where there is a blank. */
static void wrapped(FILE *to, const char *head, const char *text)
{
	size_t indent = strlen(head), room = COLUMNS - indent;

	MUST(indent < COLUMNS / 2);
	fputs(head, to);
	while (strlen(text) > room) {
		size_t n = room;

		while (n > room / 2 && text[n] != ' ')
			n--;
		n = text[n] == ' ' ? n : room;
		fprintf(to, "%.*s\n%*s", (int)n, text, (int)indent, "");
		text += n + (text[n] == ' ');
	}
	fprintf(to, "%s\n", text);
}

static bool led(const json_t *r)
{
	return json_is_true(json_object_get(r, "led"));
}

/* It was to become another build. */
static bool becoming(const json_t *r)
{
	return *text_of(r, "becoming");
}

/* Whom the report is about. */
static const char *who(const json_t *r)
{
	return led(r) ? "led" : becoming(r) ? "becomes" : "follower";
}

static void head(FILE *to, const json_t *r)
{
	const json_t *leader = json_object_get(r, "leader"), *f = json_object_get(r, "follower");
	char label[64];

	fprintf(to, "report %lld of session %s: %s %s\n", number_of(r, "number"),
		text_of(r, "session"), text_of(f, "name"), text_of(r, "verdict"));
	fprintf(to, "%s, policy %s%s", text_of(r, "time"), text_of(r, "policy"),
		json_is_true(json_object_get(r, "strict")) ? ", strict" : "");
	if (number_of(r, "tried") > 1)
		fprintf(to, ", the same each of %lld times", number_of(r, "tried"));
	fputs("\n\n", to);
	snprintf(label, sizeof(label), "  leader    %-8s pid %-8lld ", text_of(leader, "name"),
		 number_of(leader, "pid"));
	line(to, label, text_of(leader, "command"));
	snprintf(label, sizeof(label), "  %-9s %-8s pid %-8lld ", who(r), text_of(f, "name"),
		 number_of(f, "pid"));
	/* What became of a leader's own request is a report, too. */
	if (strcmp(text_of(f, "name"), text_of(leader, "name")))
		line(to, label, text_of(f, "command"));
	fprintf(to, "  thread %lld", number_of(f, "thread"));
	if (number_of(f, "lane") >= 0)
		fprintf(to, ", lane %lld", number_of(f, "lane"));
	if (becoming(r))
		fprintf(to, ", %s", text_of(r, "becoming"));
	fputs("\n\n", to);
}

/* The columns up to the byte that differs: the same on both sides. */
static int caret_column(const json_t *a, const json_t *b)
{
	const char *x = text_of(a, "text"), *y = text_of(b, "text");
	int n = 0;

	while (x[n] && x[n] == y[n])
		n++;
	/* Not into the middle of an escape. */
	for (int i = 1; i < 4 && i <= n; i++)
		if (x[n - i] == '\\' && (n - i == 0 || x[n - i - 1] != '\\'))
			return n - i;
	return n;
}

static void byte_name(char *to, size_t size, const json_t *side)
{
	const json_t *byte = json_object_get(side, "byte");
	int c = (int)json_integer_value(byte);

	if (!json_is_integer(byte))
		snprintf(to, size, "(end)");
	else if (c > ' ' && c < 0x7f)
		snprintf(to, size, "0x%02x '%c'", c, c);
	else
		snprintf(to, size, "0x%02x", c);
}

static void content(FILE *to, const char *who, const json_t *side)
{
	char byte[16];

	byte_name(byte, sizeof(byte), side);
	fprintf(to, "  %-9.9s %-9s %s%s%s\n", who, byte,
		json_is_true(json_object_get(side, "cut_before")) ? "..." : "   ",
		text_of(side, "text"),
		json_is_true(json_object_get(side, "cut_after")) ? "..." : "");
}

static void contents(FILE *to, const json_t *a)
{
	const json_t *leader = json_object_get(a, "leader"), *own = json_object_get(a, "follower");

	fprintf(to, "\nargument %s%s%s", text_of(a, "name"), *text_of(a, "part") ? ", " : "",
		text_of(a, "part"));
	fprintf(to, " differs at byte %lld", number_of(a, "offset"));
	if (!leader || !own) {
		fputs(": the content is not there any more\n", to);
		return;
	}
	fprintf(to, " (leader %lld bytes, follower %lld):\n", number_of(leader, "length"),
		number_of(own, "length"));
	content(to, "leader", leader);
	content(to, "follower", own);
	fprintf(to, "%*s^\n", 25 + caret_column(leader, own), "");
}

static void argument(FILE *to, const json_t *r)
{
	const json_t *a = json_object_get(r, "argument");
	const json_t *leader = json_object_get(a, "leader"), *own = json_object_get(a, "follower");

	if (json_is_object(a) && !json_object_get(own, "value"))
		contents(to, a);
	else if (json_is_object(a))
		fprintf(to, "\nargument %s: leader %lld, follower %lld\n", text_of(a, "name"),
			number_of(leader, "value"), number_of(own, "value"));
	if (json_is_object(json_object_get(a, "content")))
		contents(to, json_object_get(a, "content"));
}

static void calls(FILE *to, const json_t *r)
{
	const json_t *leader = json_object_get(r, "leader"), *f = json_object_get(r, "follower");

	wrapped(to, "", text_of(r, "summary"));
	if (*text_of(f, "call")) {
		fputc('\n', to);
		wrapped(to, "  leader    ", *text_of(leader, "call") ? text_of(leader, "call")
								     : "(nothing was met)");
		wrapped(to, "  follower  ", text_of(f, "call"));
	}
	argument(to, r);
}

static void frame(FILE *to, size_t i, const json_t *f)
{
	const char *module = text_of(f, "module"), *base = strrchr(module, '/');
	char where[300], label[128];

	if (*text_of(f, "file"))
		snprintf(where, sizeof(where), "%s:%lld", text_of(f, "file"), number_of(f, "line"));
	else if (*text_of(f, "function"))
		snprintf(where, sizeof(where), "%s", base ? base + 1 : module);
	else
		snprintf(where, sizeof(where), "%s %s", base ? base + 1 : module,
			 text_of(f, "address"));
	snprintf(label, sizeof(label), "  #%-2zu %-24s ", i,
		 *text_of(f, "function") ? text_of(f, "function") : "?");
	/* The end of a path says more than its beginning. */
	if (strlen(where) + strlen(label) > COLUMNS && strlen(label) < COLUMNS / 2)
		fprintf(to, "%s...%s\n", label,
			where + strlen(where) - (COLUMNS - strlen(label) - 3));
	else
		line(to, label, where);
}

static void stack(FILE *to, const json_t *r)
{
	const json_t *f, *frames = json_object_get(json_object_get(r, "follower"), "stack");
	size_t i;

	fprintf(to, "\n%s stack", led(r) || becoming(r) ? "its" : "the follower's");
	if (!json_array_size(frames)) {
		fputs(": not known\n", to);
		return;
	}
	fputs(led(r) || becoming(r) ? ":\n" : " (the leader has moved on):\n", to);
	json_array_foreach(frames, i, f)
		frame(to, i, f);
}

/* Of a leader that nobody follows no calls are kept. */
static void window(FILE *to, const json_t *r)
{
	const json_t *row, *rows = json_object_get(r, "window"), *next = json_object_get(r, "next");
	size_t i;

	if (json_array_size(rows))
		fprintf(to, "\nthe last %zu calls of this thread "
			"(= both, L leader, F follower, ? not kept):\n", json_array_size(rows));
	json_array_foreach(rows, i, row) {
		if (json_is_true(json_object_get(row, "same"))) {
			line(to, "  =  ", text_of(row, "leader"));
			continue;
		}
		if (*text_of(row, "leader"))
			line(to, "  L  ", text_of(row, "leader"));
		if (*text_of(row, "follower"))
			line(to, "  F  ", text_of(row, "follower"));
	}
	if (json_array_size(next))
		fprintf(to, "%sthe leader went on with:\n", json_array_size(rows) ? "" : "\n");
	json_array_foreach(next, i, row)
		line(to, "  L  ", json_string_value(row) ? json_string_value(row) : "?");
}

/* Line by line, as it is to be copied: not cut. */
static void suggested(FILE *to, const json_t *r)
{
	const char *text = text_of(r, "suggested_rule");

	if (!*text) {
		fprintf(to, "\nno rule is suggested: %s\n", text_of(r, "suggested_why"));
		return;
	}
	fputs("\na rule for just this (if it is meant; --rules FILE, docs/rules.md):\n", to);
	while (*text) {
		int n = (int)strcspn(text, "\n");

		fprintf(to, "  %.*s\n", n, text);
		text += n + (text[n] == '\n');
	}
}

/* The rule that came nearest, or that failed. */
static void rule(FILE *to, const json_t *r)
{
	if (!json_is_object(r)) {
		fputs("\nrule: none applies\n", to);
		return;
	}
	fprintf(to, "\nrule: %s %s (%s:%lld):\n", text_of(r, "how"), text_of(r, "name"),
		text_of(r, "file"), number_of(r, "line"));
	wrapped(to, "  ", text_of(r, "why"));
	if (*text_of(r, "wanted"))
		wrapped(to, "  wanted  ", text_of(r, "wanted"));
	if (*text_of(r, "had"))
		wrapped(to, "  had     ", text_of(r, "had"));
}

static void request(FILE *to, const json_t *q)
{
	const char *text = text_of(q, "text");

	if (!json_is_object(q)) {
		fputs("\nthe request: not known; no connection was read\n", to);
		return;
	}
	fprintf(to, "\nthe request: %lld bytes of connection %lld%s%s%s\n  file      %s\n",
		number_of(q, "bytes"), number_of(q, "connection"),
		json_is_true(json_object_get(q, "whole")) ? "" : ", its first ones not kept",
		json_is_true(json_object_get(q, "other_thread")) ?
		", which another thread or the parent read" : "",
		json_is_true(json_object_get(q, "cut")) ? "; the last" : "", text_of(q, "file"));
	while (*text) {
		size_t n = strcspn(text, "\n");

		fprintf(to, "  %.*s\n", (int)n, text);
		text += n + (text[n] == '\n');
	}
}

/* What a sanitizer said is told as it said it. */
static void finding(FILE *to, const json_t *f)
{
	const char *text = text_of(f, "text");

	if (number_of(f, "count") > 1)
		fprintf(to, "found %lld times\n", number_of(f, "count"));
	if (finding_is_leak(f))
		fputs("\nno request: leaks are looked for when the process ends\n", to);
	else
		request(to, json_object_get(f, "request"));
	fprintf(to, "\n%s says:\n%s%s", text_of(f, "tool"), text,
		*text && text[strlen(text) - 1] == '\n' ? "" : "\n");
}

/* As it is printed, all that programs have put into it shown and not obeyed. */
void report_text(FILE *to, const json_t *report)
{
	json_t *r = plain_json(json_deep_copy(report), true);
	const json_t *f = json_object_get(r, "finding");

	head(to, r);
	calls(to, r);
	if (*text_of(r, "itself"))
		wrapped(to, "\nno finding: ", text_of(r, "itself"));
	if (json_is_object(f)) {
		finding(to, f);
		window(to, r);
	} else if (led(r) || becoming(r)) {
		stack(to, r);
	} else {
		stack(to, r);
		window(to, r);
		rule(to, json_object_get(r, "rule"));
		suggested(to, r);
	}
	json_decref(r);
}
