/*
 * Fuzzing rulec: any text goes through parser, checker and generator; what is
 * accepted is also formatted, twice, which must be the same.
 *
 * For libFuzzer; tests/rules/long-fuzz.sh builds and runs it. The compiler's
 * sources are linked as they are, so what is fuzzed is what is shipped.
 */
#include <stdlib.h>
#include <string.h>

#include "rulec/rulec.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct unit empty;

static struct unit *unit_new(const char *text, size_t len)
{
	struct unit *u = malloc(sizeof(*u));

	*u = empty;
	u->arena = arena_new();
	source_load_text(u, "fuzz.rules", arena_copy(u->arena, text, len), len);
	return u;
}

static void unit_free(struct unit *u)
{
	arena_free(u->arena);
	free(u);
}

static bool parses(const struct unit *u)
{
	return !u->sources[0].bad && !u->errors;
}

static struct buffer format(const char *text, size_t len)
{
	struct unit *u = unit_new(text, len);
	struct buffer b = { 0 };

	buffer_add(&b, "", 0);
	if (!parses(u))
		abort();	/* what fmt prints is in the language */
	fmt_print(u, &u->sources[0], &b);
	unit_free(u);
	return b;
}

static void format_twice(const char *text, size_t len)
{
	struct buffer once = format(text, len), twice = format(once.at, once.len);

	if (once.len != twice.len || memcmp(once.at, twice.at, once.len))
		abort();
	free(once.at);
	free(twice.at);
}

static void compile(struct unit *u)
{
	static void (*const passes[])(struct unit *) = { pass_resolve, pass_bind, pass_check,
		pass_overlap };
	struct buffer b = { 0 };

	for (unsigned i = 0; i < 4 && !u->shaky; i++)
		passes[i](u);
	if (!u->errors) {
		pass_graph(u, &b);
		pass_emit(u, &b);
	}
	free(b.at);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static FILE *nowhere;
	struct unit *u = unit_new((const char *)data, size);
	bool fine = parses(u);

	if (!nowhere)
		nowhere = fopen("/dev/null", "we");
	if (fine)
		compile(u);
	diag_print(u, nowhere);
	unit_free(u);
	if (fine)
		format_twice((const char *)data, size);
	return 0;
}
