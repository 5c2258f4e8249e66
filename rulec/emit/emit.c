/*
 * The whole of the generated C: the contract (engine/abi/rules.h, pasted), the
 * four functions a compiler may call by itself, what the rules include, tables,
 * every rule's functions, the automaton, and the entry.
 *
 * The entry fills in pointers when it runs, and tables hold offsets into one
 * text, so nothing in the object needs a relocation.
 */
#include <stdlib.h>
#include <string.h>

#include "engine/core/must.h"
#include "rulec/emit/emit.h"

extern const char rules_header[];
extern const unsigned rules_header_len;
extern const char find_header[];
extern const unsigned find_header_len;

void emit_line(struct buffer *to, unsigned line, const char *path)
{
	buffer_print(to, "#line %u ", line);
	emit_bytes(to, (struct text){ path, strlen(path) });
	buffer_print(to, "\n");
}

static const char tests[] =
	"/* Out of line: a thousand rules have a thousand of these. */\n"
	"SMALL static bool no(struct rules_run *run, uint8_t why, unsigned step, unsigned arg, "
	"unsigned want)\n"
	"{\n\treturn rules_no(run, why, step, arg, want);\n}\n\n"
	"SMALL static struct view event_bytes(struct rules_run *run, unsigned step, unsigned i)\n"
	"{\n\treturn rules_bytes(run, step, i);\n}\n\n"
	"SMALL static uint64_t event_arg(struct rules_run *run, unsigned step, unsigned i)\n"
	"{\n\treturn rules_arg(run, step, i);\n}\n\n"
	"SMALL static struct view own_bytes(struct rules_run *run, unsigned i)\n"
	"{\n\treturn rules_own_bytes(run, i);\n}\n\n"
	"SMALL static bool is_text(struct view v, const char *text, size_t len)\n"
	"{\n\treturn view_same(v, view_of(text, len));\n}\n\n"
	"SMALL static bool has_text(struct view v, const char *text, size_t len)\n"
	"{\n\treturn view_begins_with(v, view_of(text, len));\n}\n\n";

static const char helpers[] =
	"#define SMALL __attribute__((noinline))\n"
	"#if MANY_RULES && !defined(__clang__)\n"
	"#define BLOCK __attribute__((noinline, optimize(\"O0\")))\n"
	"#else\n"
	"#define BLOCK SMALL\n"
	"#endif\n"
	"#define HIDDEN __attribute__((visibility(\"hidden\"), used))\n"
	"HIDDEN void *memcpy(void *to, const void *from, size_t n);\n"
	"HIDDEN void *memmove(void *to, const void *from, size_t n);\n"
	"HIDDEN void *memset(void *to, int c, size_t n);\n"
	"HIDDEN int memcmp(const void *a, const void *b, size_t n);\n"
	"void *memcpy(void *to, const void *from, size_t n)\n"
	"{\n"
	"\tfor (size_t i = 0; i < n; i++)\n"
	"\t\t((uint8_t *)to)[i] = ((const uint8_t *)from)[i];\n"
	"\treturn to;\n"
	"}\n"
	"void *memmove(void *to, const void *from, size_t n)\n"
	"{\n"
	"\tif ((uintptr_t)to <= (uintptr_t)from)\n"
	"\t\treturn memcpy(to, from, n);\n"
	"\twhile (n--)\n"
	"\t\t((uint8_t *)to)[n] = ((const uint8_t *)from)[n];\n"
	"\treturn to;\n"
	"}\n"
	"void *memset(void *to, int c, size_t n)\n"
	"{\n"
	"\tfor (size_t i = 0; i < n; i++)\n"
	"\t\t((uint8_t *)to)[i] = (uint8_t)c;\n"
	"\treturn to;\n"
	"}\n"
	"int memcmp(const void *a, const void *b, size_t n)\n"
	"{\n"
	"\tconst uint8_t *x = a, *y = b;\n"
	"\tsize_t i = 0;\n"
	"\n"
	"\twhile (i < n && x[i] == y[i])\n"
	"\t\ti++;\n"
	"\treturn i < n ? x[i] - y[i] : 0;\n"
	"}\n\n";

/* --- texts ----------------------------------------------------------------- */

/* The object's text: "" at 0, then paths of files, then names of rules. */
_Static_assert(RULES_MAX < UINT16_MAX && RULES_STEPS <= UINT8_MAX && RULES_OUTS <= UINT16_MAX &&
	       CALL_MAX < RULES_ANY_CALL, "fields of struct rules_row and rules_out");
_Static_assert(CALL_ARGS <= RULES_ARGS && RULES_ARGS <= 8, "arguments are bits of `compare`");
_Static_assert(RULES_OUT_READS <= UINT8_MAX && RULES_ROW_APART <= UINT16_MAX, "and flags");

struct texts {
	struct buffer *to;
	unsigned at;
};

unsigned text_file(const struct unit *u, unsigned file)
{
	unsigned at = 1;

	MUST(file < u->nsources);

	for (unsigned f = 0; f < file; f++)
		at += (unsigned)strlen(u->sources[f].path) + 1;
	return at;
}

static unsigned text_add(struct texts *t, const char *text)
{
	unsigned at = t->at;

	if (!text)
		return 0;
	buffer_print(t->to, "\t");
	emit_bytes(t->to, (struct text){ text, strlen(text) });
	buffer_print(t->to, " \"\\0\"\n");
	t->at += (unsigned)strlen(text) + 1;
	return at;
}

static const char *rule_title(struct unit *u, const struct rule *rule)
{
	return rule->name ? rule->name :
		arena_format(u->arena, "line %u", diag_line(u, rule->left_loc));
}

/* --- functions that are the same ------------------------------------------- */

#define BUCKETS	1024

struct seen {
	struct seen *next;
	const char *text;
	unsigned number;
};

/* The number under which this text came first. */
unsigned text_first(struct unit *u, const char *text, unsigned number)
{
	unsigned hash = 5381;
	struct seen **bucket;

	if (!u->seen)
		u->seen = arena_alloc(u->arena, BUCKETS * sizeof(*u->seen));
	for (const char *c = text; *c; c++)
		hash = hash * 33 + (unsigned char)*c;
	bucket = &u->seen[hash % BUCKETS];
	for (struct seen *s = *bucket; s; s = s->next)
		if (!strcmp(s->text, text))
			return s->number;
	*bucket = memcpy(arena_alloc(u->arena, sizeof(**bucket)),
		&(struct seen){ *bucket, arena_copy(u->arena, text, strlen(text)), number },
		sizeof(**bucket));
	return number;
}

/* --- what a rule has at a place, for reports --------------------------------- */

#define WANT_MAX	90	/* bytes of it */

struct want {
	struct want *next;
	const char *text;
};

/* Where it lies in the object's `wanted`; each text is there once. */
unsigned want_add(struct unit *u, struct buffer *text)
{
	size_t len = text->len;
	struct want *want;
	unsigned at;

	if (len > WANT_MAX) {
		/* Not into the middle of a character. */
		for (len = WANT_MAX; (text->at[len] & 0xc0) == 0x80;)
			len--;
		text->len = len;
		buffer_print(text, "...");
	}
	at = text_first(u, arena_format(u->arena, "want\n%s", text->at), u->wanted + 1);
	if (at == u->wanted + 1) {
		want = arena_alloc(u->arena, sizeof(*want));
		want->text = arena_copy(u->arena, text->at, text->len);
		MUST(u->wants_end && !*u->wants_end);
		*u->wants_end = want;
		u->wants_end = &want->next;
		u->wanted += (unsigned)text->len + 1;
	}
	free(text->at);
	return at;
}

static void wanted_emit(struct unit *u, struct buffer *to)
{
	buffer_print(to, "static const char wanted[] = \"\\0\"\n");
	for (const struct want *want = u->wants; want; want = want->next) {
		buffer_print(to, "\t");
		emit_bytes(to, (struct text){ want->text, strlen(want->text) });
		buffer_print(to, " \"\\0\"\n");
	}
	buffer_print(to, "\t;\n\n");
}

/* --- tables ---------------------------------------------------------------- */

static void row_emit(struct unit *u, const struct rule *r, struct texts *t, struct buffer *to)
{
	unsigned name = text_add(t, rule_title(u, r));
	unsigned leader = text_add(t, r->leader), follower = text_add(t, r->follower);

	MUST(r->within_ms <= UINT16_MAX && r->within_events <= UINT16_MAX &&
	     r->flags <= UINT16_MAX);
	MUST(!r->broken && (!r->then || u->rules[r->then->index] == r->then));

	buffer_print(to, "\t{ %u, %u, %u, %u, %u, %u, %u, %u, %u, %u, 0x%x, %u },\n", name,
		text_file(u, r->loc.file), leader, follower, diag_line(u, r->left_loc),
		rule_outs(r) ? rule_outs(r)->number : 0, r->nouts, r->nsteps, r->within_ms,
		r->within_events, r->flags, r->then ? r->then->index + 1 : 0);
}

static void outs_emit(struct unit *u, struct buffer *to)
{
	buffer_print(to, "static const struct rules_out outs[] = {\n");
	for (unsigned i = 0; i < u->nrules; i++)
		for (const struct out *o = rule_outs(u->rules[i]); o; o = o->next)
			buffer_print(to, "\t{ %u, %d, %u, %u, %u, 0, %u },\n",
				o->match || o->ncalls != 1 ? RULES_ANY_CALL : o->calls->row->nr,
				o->kind, o->flags, o->match ? o->match->index : 0, o->compare,
				diag_line(u, o->loc));
	buffer_print(to, "\t{ 0, 0, 0, 0, 0, 0, 0 },\n};\n\n");
}

static void calls_want(uint8_t *wants, const struct call *c, unsigned bit)
{
	for (; c; c = c->next)
		wants[c->row->nr] |= (uint8_t)bit;
}

static void wants_emit(struct unit *u, unsigned process, struct buffer *to)
{
	uint8_t wants[CALL_MAX] = { 0 };

	for (unsigned i = 0; i < u->nrules; i++) {
		const struct rule *r = u->rules[i];
		bool first = r->left != LEFT_STEPS;

		if (process != !!(r->flags & RULES_ROW_PROCESS))
			continue;
		for (const struct step *s = r->steps; s; s = s->next)
			calls_want(wants, s->calls, s->index ? RULES_WANTS_LATER :
				RULES_WANTS_EVENT);
		for (const struct out *o = r->outs; o; o = o->next) {
			calls_want(wants, o->calls, RULES_WANTS_CALL | (!first ? 0 :
				r->flags & RULES_ROW_FIRST ? RULES_WANTS_NOW :
				RULES_WANTS_FIRST));
			first &= o->star;
		}
	}
	buffer_print(to, "static const uint8_t wants_%u[%d] = {\n", process, CALL_MAX);
	/* The last one always, so that the braces are not empty. */
	for (unsigned nr = 0; nr < CALL_MAX; nr++)
		if (wants[nr] || nr == CALL_MAX - 1)
			buffer_print(to, "\t[%u] = %u,\n", nr, wants[nr]);
	buffer_print(to, "};\n\n");
}

static void tables_emit(struct unit *u, struct buffer *to)
{
	struct buffer text = { 0 }, rows = { 0 };
	struct texts t = { &text, 1 };

	for (unsigned f = 0; f < u->nsources; f++) {
		MUST(t.at == text_file(u, f));
		text_add(&t, u->sources[f].path);
	}
	for (unsigned i = 0; i < u->nrules; i++)
		row_emit(u, u->rules[i], &t, &rows);
	buffer_print(to, "static const char text[] = \"\\0\"\n%s;\n\n", text.at ? text.at : "");
	buffer_print(to, "static const struct rules_row rows[] = {\n%s"
		"\t{ 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 },\n};\n\n", rows.at ? rows.at : "");
	outs_emit(u, to);
	wants_emit(u, 0, to);
	wants_emit(u, 1, to);
	free(text.at);
	free(rows.at);
}

/* --- functions ------------------------------------------------------------- */

static void dispatch_left(struct unit *u, struct buffer *to)
{
	buffer_print(to, "static bool left(struct rules_run *run, unsigned rule, unsigned n)\n"
		"{\n\t(void)run, (void)n;\n\tswitch (rule) {\n");
	for (unsigned i = 0; i < u->nrules; i++)
		if (u->rules[i]->steps)
			buffer_print(to, "\tcase %u: return left_%u(run, n);\n", i, i);
	buffer_print(to, "\tdefault: return false;\n\t}\n}\n\n");
}

static void dispatch_fits(struct unit *u, struct buffer *to)
{
	unsigned n = 0;

	buffer_print(to, "static const uint32_t fits_same[] = {");
	for (unsigned i = 0; i < u->nrules; i++)
		for (const struct out *o = rule_outs(u->rules[i]); o; o = o->next, n++)
			buffer_print(to, "%s%u,", n % 12 ? " " : "\n\t", o->fits);
	MUST(n == u->nouts);
	buffer_print(to, "\n\t%u\n};\n\nstatic bool fits(struct rules_run *run, unsigned out)\n"
		"{\n\t(void)run;\n\tswitch (out <= %u ? fits_same[out] : %u) {\n", n, n, n);
	for (unsigned i = 0; i < u->nrules; i++)
		for (const struct out *o = u->rules[i]->outs; o; o = o->next)
			if (o->fits == o->number)
				buffer_print(to, "\tcase %u: return fits_%u(run);\n", o->number,
					o->number);
	buffer_print(to, "\tdefault: return false;\n\t}\n}\n\n");
}

static void dispatch_act(struct unit *u, struct buffer *to)
{
	buffer_print(to, "static void act(struct rules_run *run, unsigned out)\n"
		"{\n\t(void)run;\n\tswitch (out) {\n");
	for (unsigned i = 0; i < u->nrules; i++)
		for (const struct out *o = rule_outs(u->rules[i]); o; o = o->next) {
			if (!(o->flags & RULES_OUT_ACTION))
				continue;
			buffer_print(to, "\tcase %u:\n", o->number);
			if (o->action)
				emit_place(u, u->rules[i], o->action, to);
			buffer_print(to, "\tact_%u(run);\n\tbreak;\n", o->number);
		}
	buffer_print(to, "\tdefault: break;\n\t}\n}\n\n");
}

static void entry_emit(struct unit *u, struct buffer *to)
{
	unsigned steps = 0;

	for (unsigned i = 0; i < u->nrules; i++)
		steps = u->rules[i]->nsteps > steps ? u->rules[i]->nsteps : steps;
	buffer_print(to, "__attribute__((visibility(\"default\")))\n"
		"int mve_rules(struct rules_object *object, uint32_t version);\n"
		"int mve_rules(struct rules_object *object, uint32_t version)\n{\n"
		"\tif (version != RULES_VERSION)\n\t\treturn -22;\n"
		"\tobject->magic = RULES_MAGIC;\n\tobject->version = RULES_VERSION;\n"
		"\tobject->flags = %u;\n\tobject->rules = %u;\n\tobject->steps_max = %u;\n"
		"\tobject->rows = rows;\n\tobject->outs = outs;\n\tobject->text = text;\n"
		"\tobject->wanted = wanted;\n"
		"\tobject->wants[RULES_THREAD] = wants_0;\n"
		"\tobject->wants[RULES_PROCESS] = wants_1;\n"
		"\tobject->wants_size = %d;\n"
		"\tobject->pick = pick;\n\tobject->left = left;\n"
		"\tobject->fits = fits;\n\tobject->act = act;\n\treturn 0;\n}\n",
		u->flags, u->nrules, steps, CALL_MAX);
}

/* An earlier item of all files includes the same: one text is one file, wherever it stands. */
static bool included_before(const struct unit *u, const struct item *item)
{
	for (unsigned f = 0; f < u->nsources; f++)
		for (const struct item *i = u->sources[f].items; i; i = i->next) {
			if (i == item)
				return false;
			if (i->kind == ITEM_INCLUDE && i->path.len == item->path.len &&
			    !memcmp(i->path.at, item->path.at, i->path.len))
				return true;
		}
	return false;
}

/* Helpers of the rules, once each; what they do not use is no fault. */
static void includes_emit(struct unit *u, struct buffer *to)
{
	buffer_print(to, "#pragma GCC diagnostic push\n"
		"#pragma GCC diagnostic ignored \"-Wunused-variable\"\n");
	for (unsigned f = 0; f < u->nsources; f++)
		for (const struct item *i = u->sources[f].items; i; i = i->next) {
			if (i->kind != ITEM_INCLUDE || included_before(u, i))
				continue;
			emit_line(to, diag_line(u, i->loc), u->sources[f].path);
			buffer_print(to, "#include \"%.*s\"\n", (int)i->path.len, i->path.at);
		}
	emit_line(to, 1, "rules");
	buffer_print(to, "#pragma GCC diagnostic pop\n");
}

static void constants_emit(struct unit *u, struct buffer *to)
{
	for (unsigned i = 0; i < u->nrules; i++) {
		for (const struct step *s = u->rules[i]->steps; s; s = s->next)
			constants_define(u, s->guard, to);
		for (const struct out *o = rule_outs(u->rules[i]); o; o = o->next) {
			constants_define(u, o->guard, to);
			constants_define(u, o->action, to);
		}
	}
}

/*
 * Of so many rules the C of each is compiled as it stands: it is a few calls of functions
 * that are the same for all, and optimising thousands of such pieces is nearly all of a
 * compilation.  What searches in long lists, and what has loops, is not among them.
 */
#define RULES_MANY	256

void pass_emit_head(const struct unit *u, struct buffer *to)
{
	buffer_print(to, "#define MANY_RULES %d\n", u->nrules >= RULES_MANY);
	buffer_print(to, "/* Made by rulec: do not edit. */\n"
		"#pragma GCC diagnostic ignored \"-Wunused-function\"\n"
		"#pragma GCC diagnostic ignored \"-Wsign-compare\"\n"
		"#define RULES_FAR __attribute__((noinline, unused)) static\n");
	buffer_add(to, rules_header, rules_header_len);
	/* What C in braces and headers may not have: a system call of its own, say. */
	buffer_print(to, "%s#pragma GCC poison asm __asm __asm__\n", helpers);
}

void pass_emit(struct unit *u, struct buffer *to)
{
	MUST(!u->errors);	/* no object is made of what is wrong */
	buffer_print(to, "%s", tests);
	buffer_add(to, find_header, find_header_len);
	includes_emit(u, to);
	constants_emit(u, to);
	tables_emit(u, to);
	emit_guards(u);
	u->wants_end = &u->wants;
	for (unsigned i = 0; i < u->nrules; i++)
		emit_rule(u, u->rules[i], to);
	wanted_emit(u, to);
	dispatch_left(u, to);
	dispatch_fits(u, to);
	dispatch_act(u, to);
	emit_picks(u, to);
	entry_emit(u, to);
}
