/*
 * Messages: queued while the passes run, then sorted by place and printed, each
 * with its source line, `^` under the fault and `~` under a second place.
 *
 * A message is printed once, however often a pass finds it.  Columns count
 * bytes; the line of marks repeats the tabs of the source line, so that they
 * stand right wherever a tab leads.
 */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "engine/core/must.h"
#include "rulec/rulec.h"

#define SHOWN_MAX	50	/* messages of one run */
#define WIDTH_MAX	200	/* columns of a source line that are shown */

struct diag {
	struct diag *next;
	enum diag_level level;
	struct loc loc, second;
	bool has_second;
	const char *text;
	const char *hint;
	unsigned order;
};

static char *format_list(struct unit *u, const char *format, va_list list)
{
	char line[1024];

	vsnprintf(line, sizeof(line), format, list);
	return arena_copy(u->arena, line, strlen(line));
}

static struct diag *diag_add(struct unit *u, enum diag_level level, struct loc loc,
	const char *format, va_list list)
{
	struct diag *d = arena_alloc(u->arena, sizeof(*d));

	d->level = level;
	d->loc = loc;
	d->text = format_list(u, format, list);
	d->order = u->errors + u->warnings;
	d->next = u->diags;
	u->diags = d;
	*(level == DIAG_ERROR ? &u->errors : &u->warnings) += 1;
	return d;
}

struct diag *diag_error(struct unit *u, struct loc loc, const char *format, ...)
{
	struct diag *d;
	va_list list;

	va_start(list, format);
	d = diag_add(u, DIAG_ERROR, loc, format, list);
	va_end(list);
	return d;
}

struct diag *diag_warning(struct unit *u, struct loc loc, const char *format, ...)
{
	struct diag *d;
	va_list list;

	va_start(list, format);
	d = diag_add(u, DIAG_WARNING, loc, format, list);
	va_end(list);
	return d;
}

void diag_second(struct unit *u, struct diag *d, struct loc loc)
{
	(void)u;
	if (d) {
		d->second = loc;
		d->has_second = true;
	}
}

void diag_hint(struct unit *u, struct diag *d, const char *format, ...)
{
	va_list list;

	va_start(list, format);
	if (d)
		d->hint = format_list(u, format, list);
	va_end(list);
}

/* --- places ---------------------------------------------------------------- */

static uint32_t line_begin(const struct source *s, uint32_t at)
{
	if (at > s->len)
		at = (uint32_t)s->len;
	while (at > 0 && s->text[at - 1] != '\n')
		at--;
	return at;
}

unsigned diag_line(const struct unit *u, struct loc loc)
{
	const struct source *s = &u->sources[loc.file];
	unsigned line = 1;

	MUST(loc.file < u->nsources);

	for (uint32_t i = 0; i < loc.begin && i < s->len; i++)
		line += s->text[i] == '\n';
	return line;
}

unsigned diag_column(const struct unit *u, struct loc loc)
{
	return loc.begin - line_begin(&u->sources[loc.file], loc.begin) + 1;
}

/* --- printing -------------------------------------------------------------- */

static bool continues(char c)
{
	return ((unsigned char)c & 0xc0) == 0x80;
}

/* Marks under [loc], as far as it stands in the line that begins at `begin`. */
static void mark(struct buffer *b, const struct source *s, uint32_t begin, uint32_t end,
	struct loc loc, char sign)
{
	uint32_t column = 0;

	for (uint32_t i = begin; i <= end && column < WIDTH_MAX; i++) {
		bool in = i >= loc.begin && (i < loc.end || i == loc.begin);

		if (i < s->len && continues(s->text[i]))
			continue;
		if (column >= b->len)
			buffer_add(b, i < end && s->text[i] == '\t' ? "\t" : " ", 1);
		if (in)
			b->at[column] = sign;
		column++;
	}
	while (b->len && (b->at[b->len - 1] == ' ' || b->at[b->len - 1] == '\t'))
		b->at[--b->len] = 0;
}

static bool same_line(const struct source *s, struct loc a, struct loc b)
{
	return a.file == b.file && line_begin(s, a.begin) == line_begin(s, b.begin);
}

/* The source line of `loc` with its marks, and those of `other` if it is there. */
static void print_line(const struct unit *u, FILE *to, struct loc loc, char sign,
	const struct loc *other)
{
	const struct source *s = &u->sources[loc.file];
	uint32_t begin = line_begin(s, loc.begin), end = begin;
	struct buffer marks = { 0 };
	int shown;

	while (end < s->len && s->text[end] != '\n')
		end++;
	shown = (int)(end - begin < WIDTH_MAX ? end - begin : WIDTH_MAX);
	if (other)
		mark(&marks, s, begin, end, *other, '~');
	mark(&marks, s, begin, end, loc, sign);
	fprintf(to, "%5u | %.*s\n      | %s\n", diag_line(u, loc), shown, s->text + begin,
		marks.at ? marks.at : "");
	free(marks.at);
}

static void print_one(const struct unit *u, FILE *to, const struct diag *d)
{
	const struct source *s = &u->sources[d->loc.file];
	bool together = d->has_second && same_line(s, d->loc, d->second);

	fprintf(to, "%s:%u:%u: %s: %s\n", s->path, diag_line(u, d->loc), diag_column(u, d->loc),
		d->level == DIAG_ERROR ? "error" : "warning", d->text);
	print_line(u, to, d->loc, '^', together ? &d->second : NULL);
	if (d->has_second && !together) {
		if (d->second.file != d->loc.file)
			fprintf(to, "%s:%u:%u:\n", u->sources[d->second.file].path,
				diag_line(u, d->second), diag_column(u, d->second));
		print_line(u, to, d->second, '~', NULL);
	}
	if (d->hint)
		fprintf(to, "hint: %s\n", d->hint);
}

static int compare(const void *a, const void *b)
{
	const struct diag *x = *(struct diag *const *)a, *y = *(struct diag *const *)b;

	if (x->loc.file != y->loc.file)
		return x->loc.file < y->loc.file ? -1 : 1;
	if (x->loc.begin != y->loc.begin)
		return x->loc.begin < y->loc.begin ? -1 : 1;
	return x->order < y->order ? -1 : x->order > y->order;
}

static bool same_message(const struct diag *a, const struct diag *b)
{
	return a->loc.file == b->loc.file && a->loc.begin == b->loc.begin &&
		!strcmp(a->text, b->text);
}

void diag_print(struct unit *u, FILE *to)
{
	unsigned n = 0, shown = 0, total = u->errors + u->warnings;
	struct diag **all = arena_alloc(u->arena, (total + 1) * sizeof(*all));

	for (struct diag *d = u->diags; d; d = d->next)
		all[n++] = d;
	MUST(n <= total);
	if (n)
		qsort(all, n, sizeof(*all), compare);
	for (unsigned i = 0; i < n; i++) {
		if (i && same_message(all[i], all[i - 1]))
			continue;
		if (++shown <= SHOWN_MAX)
			print_one(u, to, all[i]);
	}
	if (shown > SHOWN_MAX)
		fprintf(to, "rulec: %u more messages\n", shown - SHOWN_MAX);
	u->diags = NULL;
}
