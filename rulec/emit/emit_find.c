/*
 * Tables for long lists of rules (find.h): which constants each rule asks for, the
 * groups that have them in the same places, a hash table for each list, and a tree
 * of the texts.
 *
 * What the tables say must follow from what left_N() and fits_N() ask: a rule that
 * holds is always found.  That it asks for more does not matter.
 */
#include <stdlib.h>
#include <string.h>

#include "engine/core/must.h"
#include "rulec/emit/emit.h"
#include "rulec/emit/find.h"

#define KEYS_MAX	32	/* of a rule: enough to tell rules apart */
#define NODE_TEXT_MAX	60000

_Static_assert(RULES_MAX < FIND_NOBODY && CALL_ARGS < FIND_NR && RULES_STEPS <= UINT8_MAX,
	       "struct find_key and find's rules hold them");
_Static_assert(KEYS_MAX <= UINT16_MAX && NODE_TEXT_MAX <= UINT16_MAX, "and find_group, find_node");
_Static_assert(sizeof(struct find_key) == 4 && sizeof(struct find_slot) == 12 &&
	       sizeof(struct find_node) == 20, "no hole in a table that is printed");

struct constant {
	struct find_key key;
	uint64_t value;
};

/* A text that content must be, or begin with. */
struct literal {
	struct literal *next;
	struct text text;
	bool prefix;
};

struct profile {
	struct profile *next;
	const struct rule *rule;
	struct constant constant[KEYS_MAX];
	unsigned n;
	struct literal *literals;	/* of the list's content */
	struct group_of *group;
};

struct group_of {
	struct group_of *next;
	const struct profile *like;	/* its first: the earliest rule, and the keys */
	unsigned number;
};

/* One byte of the texts. */
struct leaf {
	struct leaf *next, *kids;
	uint8_t byte;
	unsigned begins, is;
	unsigned number;
};

struct finding {
	struct unit *u;
	struct find_out *to;
	const struct find_want *want;
	struct profile *profiles;
	struct group_of *groups;
	unsigned ngroups;
	struct leaf root;
	unsigned texts;
	struct find_key content;	/* width FIND_WHOLE when there is some */
};

/* --- constants of a rule --------------------------------------------------- */

static bool key_same(const struct find_key *a, const struct find_key *b)
{
	return a->own == b->own && a->step == b->step && a->arg == b->arg;
}

static void constant_add(struct profile *p, struct find_key key, uint64_t value)
{
	MUST(p->n <= KEYS_MAX);
	for (unsigned i = 0; i < p->n; i++)
		if (key_same(&p->constant[i].key, &key))
			return;
	if (p->n < KEYS_MAX)
		p->constant[p->n++] = (struct constant){ key, value };
}

static struct find_key key_of(const struct call *c, bool own, unsigned step, unsigned arg)
{
	return (struct find_key){ own, (uint8_t)step, (uint8_t)arg,
		arg == FIND_NR ? FIND_WHOLE : (uint8_t)emit_width(c->row, arg) };
}

static void call_constants(struct profile *p, const struct call *c, const struct out *o,
	unsigned step)
{
	unsigned i = 0;

	if (c->row->variant && c->row->mask == UINT32_MAX) {
		struct find_key key = key_of(c, o, step, c->row->arg);

		key.width = FIND_UNSIGNED_32;
		constant_add(p, key, c->row->value);
		return;
	}
	for (const struct arg *a = c->args; a; a = a->next, i++)
		if (a->form == ARG_NUMBER && !(o && out_counts_given(o, c, i)))
			constant_add(p, key_of(c, o, step, i),
				(uint64_t)emit_narrow(c->row, i, a->number));
}

/* The one alternative of a step that has this number; NULL: several have. */
static const struct call *step_call(const struct step *s, unsigned nr)
{
	const struct call *found = NULL;

	for (const struct call *c = s->calls; c; c = c->next) {
		if (c->row->nr != nr)
			continue;
		if (found)
			return NULL;
		found = c;
	}
	return found;
}

/* The first call of the right side, if there is only one that it may be. */
static const struct out *first_out(const struct rule *rule)
{
	const struct out *o = rule->outs;

	return o && !o->star && o->ncalls == 1 ? o : NULL;
}

static struct profile *profile_new(struct finding *f, const struct rule *rule)
{
	struct profile *p = arena_alloc(f->u->arena, sizeof(*p));
	const struct out *o = first_out(rule);
	const struct step *s = rule->steps;

	MUST(f->want->depth <= rule->nsteps);

	p->rule = rule;
	for (unsigned i = 0; i < f->want->depth; i++, s = s->next) {
		const struct call *c = step_call(s, f->want->nrs[i]);

		if (c)
			call_constants(p, c, NULL, i);
	}
	if (o) {
		constant_add(p, key_of(o->calls, true, 0, FIND_NR), o->calls->row->nr);
		call_constants(p, o->calls, o, 0);
	}
	return p;
}

/* --- content --------------------------------------------------------------- */

static bool literals_of(struct finding *f, const struct pattern *pattern, struct literal **to)
{
	for (const struct pattern *p = pattern; p; p = p->next) {
		struct literal *l;

		if (p->kind == PATTERN_NAME) {
			if (!literals_of(f, p->let->pattern, to))
				return false;
			continue;
		}
		l = arena_alloc(f->u->arena, sizeof(*l));
		*l = (struct literal){ *to, p->bytes, p->prefix };
		if (p->kind == PATTERN_REGEX) {
			l->text = regex_head(p);
			l->prefix = true;
			if (!l->text.len)
				return false;
		}
		*to = l;
	}
	return true;
}

/* What a rule wants of the content at a place; NULL: anything, or too much. */
static struct literal *literals_at(struct finding *f, const struct rule *rule,
	const struct find_key *at)
{
	const struct out *o = first_out(rule);
	const struct step *s = rule->steps;
	const struct call *c;
	struct literal *found = NULL;
	const struct arg *a;
	unsigned i = 0;

	for (unsigned k = 0; s && !at->own && k < at->step; k++)
		s = s->next;
	c = at->own ? (o ? o->calls : NULL) : s ? step_call(s, f->want->nrs[at->step]) : NULL;
	for (a = c ? c->args : NULL; a && i < at->arg; i++)
		a = a->next;
	if (!a || !a->pattern || (at->own && out_gives(o, c, a, i)))
		return NULL;
	return literals_of(f, a->pattern, &found) ? found : NULL;
}

/* How many rules of the list want something of it. */
static unsigned content_uses(struct finding *f, const struct find_key *at)
{
	unsigned n = 0;

	for (const struct rule_list *r = f->want->list; r; r = r->next)
		n += literals_at(f, r->rule, at) != NULL;
	return n;
}

/* The follower's own memory is read only where there are no events. */
static void content_choose(struct finding *f)
{
	unsigned places = f->want->depth ? f->want->depth : 1, most = 0;

	for (unsigned step = 0; step < places; step++)
		for (unsigned arg = 0; arg < RULES_ARGS; arg++) {
			struct find_key at = { !f->want->depth, (uint8_t)step, (uint8_t)arg,
				FIND_WHOLE };
			unsigned uses = content_uses(f, &at);

			if (uses > most) {
				most = uses;
				f->content = at;
			}
		}
}

/* --- groups ---------------------------------------------------------------- */

static bool profile_like(const struct profile *a, const struct profile *b)
{
	if (a->n != b->n || !a->literals != !b->literals)
		return false;
	for (unsigned i = 0; i < a->n; i++)
		if (memcmp(&a->constant[i].key, &b->constant[i].key, sizeof(struct find_key)))
			return false;
	return true;
}

static void group_join(struct finding *f, struct profile *p)
{
	struct group_of **g = &f->groups;

	while (*g && !profile_like((*g)->like, p))
		g = &(*g)->next;
	if (!*g) {
		*g = arena_alloc(f->u->arena, sizeof(**g));
		**g = (struct group_of){ NULL, p, f->ngroups++ };
	}
	p->group = *g;
}

static void profiles_make(struct finding *f)
{
	struct profile **last = &f->profiles;

	for (const struct rule_list *r = f->want->list; r; r = r->next) {
		struct profile *p = profile_new(f, r->rule);

		if (f->content.width)
			p->literals = literals_at(f, r->rule, &f->content);
		group_join(f, p);
		*last = p;
		last = &p->next;
	}
}

static void groups_print(struct finding *f)
{
	struct find_out *to = f->to;

	for (const struct group_of *g = f->groups; g; g = g->next) {
		const struct profile *p = g->like;

		buffer_print(&to->groups, "\t{ %u, %u, %u, %d, 0 },\n", to->nkeys, p->n,
			p->rule->index, p->literals != NULL);
		for (unsigned i = 0; i < p->n; i++) {
			const struct find_key *k = &p->constant[i].key;

			buffer_print(&to->keys, "\t{ %u, %u, %u, %u },\n", k->own, k->step,
				k->arg, k->width);
		}
		to->nkeys += p->n;
	}
	to->ngroups += f->ngroups;
}

/* --- the tree of texts ----------------------------------------------------- */

static struct leaf *leaf_follow(struct finding *f, struct leaf *from, uint8_t byte)
{
	struct leaf **at = &from->kids, *made;

	while (*at && (*at)->byte < byte)
		at = &(*at)->next;
	if (*at && (*at)->byte == byte)
		return *at;
	MUST(!*at || (*at)->byte > byte);
	made = arena_alloc(f->u->arena, sizeof(*made));
	made->byte = byte;
	made->next = *at;
	*at = made;
	return made;
}

/* The number of a text, as a find_node has it. */
static unsigned text_number(struct finding *f, const struct literal *l)
{
	struct leaf *at = &f->root;
	unsigned *number;

	for (size_t i = 0; i < l->text.len; i++)
		at = leaf_follow(f, at, (uint8_t)l->text.at[i]);
	number = l->prefix ? &at->begins : &at->is;
	if (!*number)
		*number = ++f->texts;
	return *number;
}

static void node_print(struct find_out *to, struct leaf *from);

static void kids_print(struct find_out *to, struct leaf *at)
{
	struct leaf *last = at->kids;
	unsigned next = at->kids->byte;

	for (; last->next; last = last->next)
		;
	for (struct leaf *k = at->kids; k; k = k->next)
		node_print(to, k);
	MUST(last->byte >= at->kids->byte);
	at->number = to->nkids;
	for (struct leaf *k = at->kids; k; k = k->next) {
		for (; next < k->byte; next++, to->nkids++)
			buffer_print(&to->kids, "\t0,\n");
		buffer_print(&to->kids, "\t%u,\n", k->number);
		next++;
		to->nkids++;
	}
}

/* Depth is a text's length, which a line of the file bounds. */
static void node_print(struct find_out *to, struct leaf *from)
{
	struct leaf *at = from;
	unsigned text = to->ntexts, len = 0, kids = 0, n = 0, low = 0;

	while (at->kids && !at->kids->next && !at->begins && !at->is && len < NODE_TEXT_MAX) {
		at = at->kids;
		buffer_print(&to->texts, "\t%u,\n", at->byte);
		len++;
	}
	to->ntexts += len;
	if (at->kids) {
		const struct leaf *last = at->kids;

		while (last->next)
			last = last->next;
		low = at->kids->byte;
		n = last->byte - low + 1u;
		kids_print(to, at);
		kids = at->number;
	}
	from->number = to->nnodes++;
	buffer_print(&to->nodes, "\t{ %u, %u, %u, %u, %u, %u, %u, { 0 } },\n", text, kids, len,
		at->begins, at->is, n, low);
}

/* --- the hash table -------------------------------------------------------- */

struct entry {
	uint32_t hash;
	unsigned rule;
};

static int entry_order(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;

	return x->hash != y->hash ? (x->hash < y->hash ? -1 : 1) :
		(x->rule > y->rule) - (x->rule < y->rule);
}

static unsigned literals_count(const struct profile *p)
{
	unsigned n = 0;

	for (const struct literal *l = p->literals; l; l = l->next)
		n++;
	return n ? n : 1;
}

static unsigned entries_fill(struct finding *f, struct entry *to)
{
	unsigned n = 0;

	for (const struct profile *p = f->profiles; p; p = p->next) {
		uint32_t hash = p->group->number;

		for (unsigned i = 0; i < p->n; i++)
			hash = find_mix(hash, p->constant[i].value);
		for (const struct literal *l = p->literals; l; l = l->next)
			to[n++] = (struct entry){ find_mix(hash, text_number(f, l)),
				p->rule->index };
		if (!p->literals)
			to[n++] = (struct entry){ hash, p->rule->index };
	}
	MUST(n);
	qsort(to, n, sizeof(*to), entry_order);
	return n;
}

static void slots_fill(struct finding *f, const struct entry *entries, unsigned n,
	struct find_slot *slots, unsigned mask)
{
	for (unsigned i = 0, end; i < n; i = end) {
		uint32_t at = entries[i].hash & mask;

		for (end = i; end < n && entries[end].hash == entries[i].hash; end++)
			buffer_print(&f->to->rules, "\t%u,\n", entries[end].rule);
		while (slots[at].n)
			at = (at + 1) & mask;
		slots[at] = (struct find_slot){ entries[i].hash, f->to->nrules + i, end - i };
	}
	f->to->nrules += n;
}

static unsigned slots_print(struct finding *f)
{
	unsigned most = 0, size = 4, n;
	struct entry *entries;
	struct find_slot *slots;

	for (const struct profile *p = f->profiles; p; p = p->next)
		most += literals_count(p);
	while (size < 2 * most)
		size *= 2;
	entries = arena_alloc(f->u->arena, most * sizeof(*entries));
	slots = arena_alloc(f->u->arena, size * sizeof(*slots));
	n = entries_fill(f, entries);
	/* A search ends at a free place. */
	MUST(n <= most && n < size && !(size & (size - 1)));
	slots_fill(f, entries, n, slots, size - 1);
	for (unsigned i = 0; i < size; i++)
		buffer_print(&f->to->slots, "\t{ %uu, %u, %u },\n", slots[i].hash, slots[i].first,
			slots[i].n);
	f->to->nslots += size;
	return size - 1;
}

static bool guards_shared(const struct find_want *want)
{
	for (const struct rule_list *r = want->list; r; r = r->next)
		for (const struct step *s = r->rule->steps; s; s = s->next)
			if (s->guard_shared)
				return true;
	return false;
}

/* --- all of it ------------------------------------------------------------- */

unsigned find_add(struct unit *u, struct find_out *to, const struct find_want *want)
{
	struct finding f = { .u = u, .to = to, .want = want };
	unsigned groups = to->ngroups, slots = to->nslots, mask;
	const struct find_key *c = &f.content;

	/* Number 0 is nobody. */
	if (!to->nnodes)
		buffer_print(&to->nodes, "\t{ 0, 0, 0, 0, 0, 0, 0, { 0 } },\n");
	to->nnodes += !to->nnodes;
	content_choose(&f);
	profiles_make(&f);
	groups_print(&f);
	MUST(want->list && want->depth <= RULES_STEPS);
	mask = slots_print(&f);
	node_print(to, &f.root);
	buffer_print(&to->lists, "\t{ %u, %u, %u, %u, %u, %u, %d, { %u, %u, %u, %u } },\n", groups,
		slots, f.root.number, mask, f.ngroups, want->depth, guards_shared(want), c->own,
		c->step, c->arg, c->width);
	return to->nlists++;
}

static void table_print(const char *type, const char *name, struct buffer *rows, const char *last,
	struct buffer *to)
{
	buffer_print(to, "static const %s find_%s[] = {\n", type, name);
	buffer_add(to, rows->at ? rows->at : "", rows->len);
	buffer_print(to, "\t%s\n};\n\n", last);
	free(rows->at);
	*rows = (struct buffer){ 0 };
}

void find_print(struct find_out *f, struct buffer *to)
{
	table_print("struct find_group", "groups", &f->groups, "{ 0, 0, 0, 0, 0 },", to);
	table_print("struct find_key", "keys", &f->keys, "{ 0, 0, 0, 0 },", to);
	table_print("struct find_slot", "slots", &f->slots, "{ 0, 0, 0 },", to);
	table_print("uint16_t", "rules", &f->rules, "0,", to);
	table_print("struct find_node", "nodes", &f->nodes, "{ 0, 0, 0, 0, 0, 0, 0, { 0 } },", to);
	table_print("uint32_t", "kids", &f->kids, "0,", to);
	table_print("uint8_t", "texts", &f->texts, "0,", to);
	table_print("struct find_list", "lists", &f->lists,
		"{ 0, 0, 0, 0, 0, 0, 0, { 0, 0, 0, 0 } },", to);
}
