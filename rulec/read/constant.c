/*
 * Names of constants: O_CREAT, SIGTERM, AT_FDCWD, EAGAIN.
 *
 * On either side of a rule a name in capital letters is a constant where the
 * argument has named values, and nothing else; several are joined by `|`.  For other
 * numbers, and in C, every name is known that strace would print, and those of errors.
 */
#include <ctype.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "engine/outside/print/xlat.h"
#include "rulec/rulec.h"

#define NAME_MAX_	64
#define ERRORS		134

/* What no set of flags has: the absence of flags, and so on. */
static const struct xlat_value others[] = {
	{ 0, "O_RDONLY" }, { 1, "O_WRONLY" }, { 2, "O_RDWR" }, { 3, "O_ACCMODE" },
	{ (uint64_t)-100, "AT_FDCWD" },
};

static bool other_value(const char *name, uint64_t *value)
{
	for (unsigned i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		if (!strcmp(others[i].name, name)) {
			*value = others[i].value;
			return true;
		}
	return false;
}

static bool signal_value(const char *name, uint64_t *value)
{
	for (int i = 1; i < 32 && !strncmp(name, "SIG", 3); i++) {
		const char *known = sigabbrev_np(i);

		if (known && !strcmp(known, name + 3)) {
			*value = (uint64_t)i;
			return true;
		}
	}
	return false;
}

static bool error_value(const char *name, uint64_t *value)
{
	for (int i = 1; i < ERRORS; i++) {
		const char *known = strerrorname_np(i);

		if (known && !strcmp(known, name)) {
			*value = (uint64_t)i;
			return true;
		}
	}
	return false;
}

static bool has_named_values(const struct arg_desc *arg)
{
	return arg->kind == KIND_ENUM || arg->kind == KIND_FLAGS || arg->kind == KIND_DIRFD ||
		arg->kind == KIND_SIG;
}

/* Also those that no row names, since they hang on another argument. */
static const struct xlat *const sets[] = {
#define XLAT(name, unknown) &xlat_##name,
#define V(value, name)
#define END
#include "engine/outside/print/xlat.def"
#undef XLAT
#undef V
#undef END
};

static bool any_value(const char *name, uint64_t *value)
{
	for (unsigned i = 0; i < sizeof(sets) / sizeof(sets[0]); i++)
		if (xlat_value(sets[i], name, value))
			return true;
	return other_value(name, value) || signal_value(name, value) || error_value(name, value);
}

static bool value_of(const struct arg_desc *arg, const char *name, uint64_t *value)
{
	if (!has_named_values(arg))
		return any_value(name, value);
	if (arg->kind == KIND_SIG)
		return signal_value(name, value);
	if (arg->kind != KIND_DIRFD && xlat_value(xlat_find(arg->what), name, value))
		return true;
	if (arg->kind == KIND_ENUM && arg->what == XLAT_sock_types)
		return xlat_value(&xlat_sock_flags, name, value);
	return other_value(name, value) && (arg->kind == KIND_DIRFD) == (name[0] == 'A');
}

/*
 * Where the table names no values (an option of setsockopt, whose names hang on the
 * level) a name must be known, or look like one: as a binding it would be any value.
 */
bool constant_meant(const struct arg_desc *arg, const char *name)
{
	bool capital = false;
	uint64_t value;

	for (const char *c = name; *c; c++) {
		if (*c == '|')
			return true;
		if (islower((unsigned char)*c))
			return false;
		capital |= isupper((unsigned char)*c);
	}
	if (!capital || arg_is_memory(arg))
		return false;
	return has_named_values(arg) || strchr(name + 1, '_') || any_value(name, &value);
}

static const char *nearest(const struct arg_desc *arg, const char *name)
{
	const char *names[512];
	const struct xlat *set = xlat_find(arg->what);
	unsigned n = 0;

	for (unsigned i = 0; arg->kind != KIND_SIG && i < set->count && n < 500; i++)
		names[n++] = set->values[i].name;
	for (unsigned i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		names[n++] = others[i].name;
	return nearest_of(name, names, n);
}

static void unknown(struct unit *u, struct arg *a, const struct arg_desc *arg,
	const char *name)
{
	struct diag *d = diag_error(u, a->loc, "`%s` is no value of `%s`", name, arg->name);
	const char *near = has_named_values(arg) ? nearest(arg, name) : NULL;

	if (near)
		diag_hint(u, d, "did you mean `%s`?", near);
	else
		diag_hint(u, d, "no constant of that name is known; write the number");
	a->form = ARG_ANY;
}

void constant_resolve(struct unit *u, struct arg *a, const struct arg_desc *arg)
{
	uint64_t sum = 0, value;
	const char *at = a->name;

	for (;;) {
		char name[NAME_MAX_];
		size_t n = strcspn(at, "|");

		snprintf(name, sizeof(name), "%.*s", (int)n, at);
		if (!value_of(arg, name, &value)) {
			unknown(u, a, arg, name);
			return;
		}
		sum |= value;
		if (!at[n])
			break;
		at += n + 1;
	}
	a->form = ARG_NUMBER;
	a->number = (int64_t)sum;
}

/* --- in C ------------------------------------------------------------------ */

static void define(struct unit *u, const char *at, size_t n, struct buffer *to)
{
	const char *name = arena_copy(u->arena, at, n);
	uint64_t value;

	u->constants++;
	if (text_first(u, arena_format(u->arena, "constant %s", name), u->constants) !=
	    u->constants || !any_value(name, &value))
		return;
	buffer_print(to, "#ifndef %s\n#define %s %lld\n#endif\n", name, name, (long long)value);
}

static bool is_letter(int c)
{
	return c == '_' || isalnum(c);
}

void constants_define(struct unit *u, const struct code *code, struct buffer *to)
{
	const char *at = code ? code->text.at : NULL, *end = at ? at + code->text.len : NULL;

	while (at < end) {
		const char *from = at;

		while (at < end && is_letter((unsigned char)*at))
			at++;
		if (at - from > 1 && at - from < NAME_MAX_ &&
		    (isupper((unsigned char)*from) || *from == '_'))
			define(u, from, (size_t)(at - from), to);
		at += at == from;
	}
}
