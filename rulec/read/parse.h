/*
 * What scanner and parser share: one struct parse for the time that a file is
 * read.  The functions are parse.c's; each is what one action of grammar/rules.l
 * or rules.y needs.
 */
#ifndef RULEC_PARSE_H
#define RULEC_PARSE_H

#include "rulec/rulec.h"

struct parse {
	struct unit *unit;
	struct source *source;
	uint32_t file;
	uint32_t at;		/* the scanner's place */
	uint32_t c_begin;
	unsigned c_depth;
	unsigned errors;
	uint32_t last_error;	/* where the last syntax error was */
	bool in_group;
};

void parse_place(struct parse *p, struct loc *loc, size_t len);
struct text parse_text(struct parse *p, const struct loc *loc, unsigned skip);
const char *parse_name(struct parse *p, const struct loc *loc, unsigned skip);
const char *parse_copy(struct parse *p, struct text text);
int parse_end(struct parse *p, struct loc *loc);
void parse_unclosed(struct parse *p, struct loc loc, const char *what);
void parse_strange(struct parse *p, struct loc loc);
void parse_c_open(struct parse *p, const struct loc *loc);
void parse_c_close(struct parse *p, struct loc *loc);
void parse_c_unclosed(struct parse *p);
void parse_span(struct loc *now, const struct loc *first, const struct loc *last, int n);
void parse_item(struct parse *p, struct item *item);
void parse_error(struct parse *p, struct loc loc, const char *text);
void parse_unexpected(struct parse *p, struct loc loc, const char *found,
	const char *const *expected, int n);
void *parse_alloc(size_t size);
void *parse_realloc(void *at, size_t size);
void parse_free(void *at);
struct attr *ast_attrs(struct attr *list, struct attr *attr);

#endif
