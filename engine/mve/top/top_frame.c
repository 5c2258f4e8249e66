/*
 * What mve top says, as lines of text: made of two answers of the monitor, with
 * no terminal in play.  Rates are differences; after a change of the leader its
 * calls are another version's, and there is none until the next answer.
 */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "engine/mve/show.h"
#include "engine/mve/top/top.h"

#define CALLS_MAX	512	/* rows of by_name that are looked at */
#define NO_RATE		-1.0

static void __attribute__((format(printf, 3, 4)))
put(struct top_frame *f, enum line_kind kind, const char *fmt, ...)
{
	struct top_line *l = &f->line[f->n];
	va_list ap;

	if (f->n == FRAME_LINES)
		return;
	l->kind = kind;
	va_start(ap, fmt);
	vsnprintf(l->text, sizeof(l->text), fmt, ap);
	va_end(ap);
	for (size_t n = strlen(l->text); n && l->text[n - 1] == ' '; n--)
		l->text[n - 1] = 0;
	f->n++;
}

static const char *size_text(json_int_t bytes, char out[16])
{
	const char *unit = "BKMGT";
	double n = (double)bytes;

	for (; n >= 9999.5 && unit[1]; unit++)
		n /= 1024;
	snprintf(out, 16, *unit == 'B' ? "%.0f" : "%.0f%c", n, *unit);
	return out;
}

static const char *rate_text(double rate, char out[16])
{
	if (rate < 0)
		return "-";
	snprintf(out, 16, "%.0f", rate);
	return out;
}

/* The row of a list whose `key` has this text; NULL: none. */
static const json_t *row_named(const json_t *list, const char *key, const char *text)
{
	const json_t *row;
	size_t i;

	json_array_foreach(list, i, row)
		if (!strcmp(show_text(row, key), text))
			return row;
	return NULL;
}

bool top_follows(const json_t *version)
{
	return !strcmp(show_text(version, "role"), "follower");
}

/* --- the session ---------------------------------------------------------------------- */

static const json_t *leader_of(const json_t *status)
{
	const json_t *list = json_object_get(status, "versions");
	const json_t *v = row_named(list, "role", "leader");

	return v ? v : json_array_get(list, 0);
}

static void put_session(struct top_frame *f, const json_t *j)
{
	json_int_t s = show_number(j, "seconds");

	put(f, LINE_TITLE, "mve top: %s   up %lld:%02lld:%02lld   tier %s   %lld thread%s",
	    show_text(j, "name"), s / 3600, s / 60 % 60, s % 60, show_text(j, "tier"),
	    show_number(j, "threads"), show_number(j, "threads") == 1 ? "" : "s");
}

/* The follower that is furthest behind decides how full the ring is. */
static void put_ring(struct top_frame *f, const json_t *j)
{
	const json_t *ring = json_object_get(j, "ring"), *v;
	json_int_t most = 0, bytes = show_number(ring, "bytes");
	size_t i;

	if (!ring) {
		put(f, LINE_PLAIN, "no followers, no ring");
		return;
	}
	json_array_foreach(json_object_get(j, "versions"), i, v)
		if (show_number(v, "lag_bytes") > most)
			most = show_number(v, "lag_bytes");
	put(f, most > bytes / 2 ? LINE_ALERT : LINE_PLAIN,
	    "ring %lld MiB, %.1f %% full   waited %lld times   when full: %s", bytes >> 20,
	    bytes ? 100.0 * (double)most / (double)bytes : 0.0, show_number(ring, "waits"),
	    show_text(ring, "when_full"));
}

/* A live update: its stage, and since when. */
static void put_update(struct top_frame *f, const json_t *j)
{
	const json_t *u = json_object_get(j, "update");

	if (json_is_true(json_object_get(u, "busy")))
		put(f, LINE_PLAIN, "update: %s, for %lld s, to %s", show_text(u, "stage"),
		    show_number(u, "seconds"), show_text(u, "to"));
}

/* The spares, who came and went, and the longest that the server stood still for it. */
static void put_past(struct top_frame *f, const json_t *j)
{
	const json_t *spares = json_object_get(j, "spares");
	const json_t *p, *list = json_object_get(j, "pauses");
	char line[160] = "";
	size_t n = 0, i;

	if (spares)
		n = (size_t)snprintf(line, sizeof(line), "spares %lld of %lld   ",
				     show_number(spares, "there"), show_number(spares, "wanted"));
	n += (size_t)snprintf(line + n, sizeof(line) - n, "joined %lld   lost %lld",
			      show_number(j, "joins"), show_number(j, "lost"));
	json_array_foreach(list, i, p)
		if (show_number(p, "times") && n < sizeof(line))
			n += (size_t)snprintf(line + n, sizeof(line) - n, "   %s %.1f ms",
					      show_text(p, "kind"),
					      (double)show_number(p, "longest_us") / 1000);
	put(f, LINE_PLAIN, "%s", line);
}

/* --- versions ------------------------------------------------------------------------- */

static double version_rate(const struct top_sample *s, const json_t *v)
{
	const json_t *old = row_named(json_object_get(s->before, "versions"), "name",
				      show_text(v, "name"));
	json_int_t more = show_number(v, "calls") - show_number(old, "calls");

	if (!old || more < 0 || s->seconds <= 0 || !strcmp(show_text(v, "role"), "ended"))
		return NO_RATE;
	return (double)more / s->seconds;
}

static void verdicts_text(const json_t *v, char *out, size_t size)
{
	const char *name, *why = show_text(v, "why");
	size_t at = 0;
	json_t *n;

	json_int_t still = show_number(v, "still_ms");

	out[0] = 0;
	if (still)
		at = (size_t)snprintf(out, size, "stands still for %lld s", still / 1000);
	json_object_foreach(json_object_get(v, "verdicts"), name, n) {
		if (at < size)
			at += (size_t)snprintf(out + at, size - at, "%s%lld %s", at ? ", " : "",
					       json_integer_value(n), name);
	}
	if (*why && at < size)
		snprintf(out + at, size - at, "%s%s", at ? ": " : "", why);
}

static void put_version(struct top_frame *f, const struct top_sample *s, const json_t *v,
			bool selected)
{
	bool ended = !strcmp(show_text(v, "role"), "ended");
	char rate[16], size[16], own[16], cells[24] = "-", behind[24] = "-", said[100];
	bool has_own = json_object_get(v, "own_kib");

	verdicts_text(v, said, sizeof(said));
	if (top_follows(v))
		snprintf(cells, sizeof(cells), "%lld", show_number(v, "lag_cells"));
	if (top_follows(v))
		snprintf(behind, sizeof(behind), "%.1fs", (double)show_number(v, "lag_ms") / 1000);
	put(f, ended ? LINE_GONE : selected ? LINE_SELECTED :
	    show_number(v, "still_ms") ? LINE_ALERT : LINE_PLAIN,
	    "%c %-12.12s %-8.8s %7lld %9s %8s %6s %6s %6s  %s", selected ? '>' : ' ',
	    show_text(v, "name"), show_text(v, "role"), show_number(v, "pid"),
	    rate_text(version_rate(s, v), rate), cells,
	    top_follows(v) ? size_text(show_number(v, "lag_bytes"), size) : "-", behind,
	    has_own ? size_text(show_number(v, "own_kib") << 10, own) : "-", said);
}

static void put_versions(struct top_frame *f, const struct top_sample *s, const char *selected)
{
	const json_t *v;
	size_t i;

	put(f, LINE_HEAD, "  %-12s %-8s %7s %9s %8s %6s %6s %6s  %s", "NAME", "ROLE", "PID",
	    "CALLS/s", "LAG", "bytes", "time", "OWN", "VERDICT");
	json_array_foreach(json_object_get(s->now, "versions"), i, v)
		put_version(f, s, v, !strcmp(show_text(v, "name"), selected));
}

/* --- the leader's calls --------------------------------------------------------------- */

struct call_rate {
	const json_t *row;
	double patch, trap;
};

static int by_rate(const void *a, const void *b)
{
	const struct call_rate *x = a, *y = b;
	double d = y->patch + y->trap - x->patch - x->trap;

	if (d)
		return d > 0 ? 1 : -1;
	return strcmp(show_text(x->row, "name"), show_text(y->row, "name"));
}

static double more(const json_t *row, const json_t *old, const char *tier, double seconds)
{
	json_int_t n = show_number(row, tier) - show_number(old, tier);

	return n > 0 ? (double)n / seconds : 0;
}

static const json_t *calls_of(const json_t *status)
{
	return json_object_get(json_object_get(status, "calls"), "by_name");
}

/* Calls that were made between the two answers; how many rows. */
static unsigned rates_take(const struct top_sample *s, struct call_rate *rate)
{
	const json_t *row;
	unsigned n = 0;
	size_t i;

	if (!s->before || s->seconds <= 0 ||
	    strcmp(show_text(leader_of(s->before), "name"), show_text(leader_of(s->now), "name")))
		return 0;
	json_array_foreach(calls_of(s->now), i, row) {
		const json_t *old = row_named(calls_of(s->before), "name", show_text(row, "name"));
		struct call_rate r = { row, more(row, old, "patch", s->seconds),
				       more(row, old, "trap", s->seconds) };

		if (r.patch + r.trap > 0 && n < CALLS_MAX)
			rate[n++] = r;
	}
	qsort(rate, n, sizeof(rate[0]), by_rate);
	return n;
}

static void put_calls(struct top_frame *f, const struct top_sample *s, unsigned lines)
{
	static struct call_rate rate[CALLS_MAX];
	unsigned n = rates_take(s, rate);

	put(f, LINE_HEAD, "  %-21s %-7s %9s %10s  of %s", "CALL", "CLASS", "CALLS/s", "trapped/s",
	    show_text(leader_of(s->now), "name"));
	for (unsigned i = 0; i < n && f->n < lines; i++)
		put(f, LINE_PLAIN, "  %-21.21s %-7.7s %9.0f %10.0f", show_text(rate[i].row, "name"),
		    show_text(rate[i].row, "class"), rate[i].patch + rate[i].trap, rate[i].trap);
	if (!n && s->before)
		put(f, LINE_PLAIN, "  none");
}

void frame_make(struct top_frame *f, const struct top_sample *s, const char *selected,
		unsigned lines)
{
	f->n = 0;
	put_session(f, s->now);
	put_ring(f, s->now);
	put_update(f, s->now);
	put_past(f, s->now);
	put(f, LINE_PLAIN, "%s", "");
	put_versions(f, s, selected);
	put(f, LINE_PLAIN, "%s", "");
	put_calls(f, s, lines);
	if (f->n > lines)
		f->n = lines;
}
