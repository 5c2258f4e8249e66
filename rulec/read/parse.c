/*
 * Between scanner and parser: places of tokens, and the messages for text that
 * is not in the language.
 *
 * Input may be anything, zero bytes included; the scanner works on a copy, and
 * nothing here reads beyond the source's length.
 */
#include <stdlib.h>
#include <string.h>

#include "rulec/read/parse.h"
#include "rules.tab.h"

int rules_yylex_init_extra(struct parse *p, void **scanner);
int rules_yylex_destroy(void *scanner);
void *rules_yy_scan_bytes(const char *text, int len, void *scanner);
int rules_yyparse(void *scanner, struct parse *p);

#define FILE_MAX	(8 << 20)	/* bytes */

void parse_place(struct parse *p, struct loc *loc, size_t len)
{
	*loc = (struct loc){ p->file, p->at, p->at + (uint32_t)len };
	p->at += (uint32_t)len;
}

/* The token's text without `skip` bytes at both ends. */
struct text parse_text(struct parse *p, const struct loc *loc, unsigned skip)
{
	return (struct text){ p->source->text + loc->begin + skip,
		loc->end - loc->begin - 2 * skip };
}

const char *parse_name(struct parse *p, const struct loc *loc, unsigned skip)
{
	return arena_copy(p->unit->arena, p->source->text + loc->begin + skip,
		loc->end - loc->begin - skip);
}

const char *parse_copy(struct parse *p, struct text text)
{
	return arena_copy(p->unit->arena, text.at, text.len);
}

int parse_end(struct parse *p, struct loc *loc)
{
	*loc = (struct loc){ p->file, p->at, p->at };
	return 0;
}

void parse_unclosed(struct parse *p, struct loc loc, const char *what)
{
	p->errors++;
	diag_error(p->unit, loc, "this %s has no end", what);
}

void parse_strange(struct parse *p, struct loc loc)
{
	p->errors++;
	diag_error(p->unit, loc, "strange character");
}

void parse_c_open(struct parse *p, const struct loc *loc)
{
	p->c_begin = loc->begin;
	p->c_depth = 1;
}

void parse_c_close(struct parse *p, struct loc *loc)
{
	loc->begin = p->c_begin;
}

void parse_c_unclosed(struct parse *p)
{
	struct diag *d;

	p->errors++;
	p->last_error = p->at + 1;	/* the end of the file is no second error */
	d = diag_error(p->unit, (struct loc){ p->file, p->c_begin, p->c_begin + 1 },
		"this `{` has no end");
	diag_hint(p->unit, d, "braces in C must balance, outside of strings and comments");
}

void parse_span(struct loc *now, const struct loc *first, const struct loc *last, int n)
{
	*now = *first;
	if (n)
		now->end = last->end;
	else
		now->begin = now->end;
}

void parse_item(struct parse *p, struct item *item)
{
	if (item)
		LIST_APPEND(struct item, p->source->items, item);
}

void parse_error(struct parse *p, struct loc loc, const char *text)
{
	p->errors++;
	diag_error(p->unit, loc, "%s", text);
}

void parse_unexpected(struct parse *p, struct loc loc, const char *found,
	const char *const *expected, int n)
{
	struct buffer b = { 0 };
	struct diag *d;

	p->errors++;
	if (p->last_error && p->last_error == loc.begin + 1)
		return;
	p->last_error = loc.begin + 1;
	d = diag_error(p->unit, loc, "%s is out of place here", found ? found : "this");
	if (n > 0) {
		for (int i = 0; i < n; i++)
			buffer_print(&b, "%s%s", i == 0 ? "" : i == n - 1 ? " or " : ", ",
				expected[i]);
		diag_hint(p->unit, d, "there could be %s", b.at);
	}
	free(b.at);
}

void *parse_alloc(size_t size)
{
	return malloc(size);
}

void *parse_realloc(void *at, size_t size)
{
	return realloc(at, size);
}

void parse_free(void *at)
{
	free(at);
}

void parse_source(struct unit *u, unsigned file)
{
	struct source *source = &u->sources[file];
	struct parse p = { .unit = u, .source = source, .file = file };
	const char *zero = memchr(source->text, 0, source->len);
	void *scanner;

	if (source->len > FILE_MAX) {
		diag_error(u, (struct loc){ file, 0, 0 }, "more than %d MiB", FILE_MAX >> 20);
		source->bad = true;
		return;
	}
	if (zero) {
		uint32_t at = (uint32_t)(zero - source->text);

		diag_error(u, (struct loc){ file, at, at + 1 }, "a zero byte: this is no text");
		source->bad = true;
		return;
	}
	if (rules_yylex_init_extra(&p, &scanner) != 0)
		exit(EXIT_SYSTEM);
	rules_yy_scan_bytes(source->text, (int)source->len, scanner);
	if (rules_yyparse(scanner, &p) != 0)
		p.errors++;
	rules_yylex_destroy(scanner);
	source->bad = p.errors > 0;
}
