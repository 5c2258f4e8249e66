/*
 * Finding a rule in a long list without trying all of them.  Pasted into the
 * generated C, and included by emit_find.c, which fills the tables.
 *
 * A rule of a list has *constants*: numbers that arguments must have, and at most
 * one content that begins or is so.  Rules whose constants stand in the same
 * places form a group.  For each group the values found in those places are mixed
 * into a hash, and one table of the list leads from there to the rules that have
 * just these constants.  Content goes through a tree of texts first; every text on
 * the way down is one that the content begins with, or is.  A rule without any
 * constant is in a group without keys.
 *
 * What is found may still not hold (two hashes may be one): each rule is asked in
 * full, in the order of the file, and the earliest that holds is the answer.  So
 * the cost grows with the rules that agree with the call, not with the list.
 */
#ifndef RULEC_FIND_H
#define RULEC_FIND_H

#ifndef MVE_ABI_RULES_H
#include "engine/abi/rules.h"
#endif

#define FIND_NR		0xff	/* of a key: not an argument, the call's number */
#define FIND_NOBODY	0xffff

/* A place that a constant stands in. */
struct find_key {
	uint8_t own;		/* of the follower's call */
	uint8_t step;		/* else of this event */
	uint8_t arg;
	uint8_t width;		/* enum find_width */
};

enum find_width { FIND_SIGNED_32, FIND_UNSIGNED_32, FIND_WHOLE };

struct find_group {
	uint32_t keys;		/* the first of nkeys */
	uint16_t nkeys;
	uint16_t least;		/* the earliest rule */
	uint16_t content;	/* it has content, too */
	uint16_t pad;
};

struct find_slot {
	uint32_t hash;
	uint32_t first;		/* into rules */
	uint32_t n;		/* 0: nobody */
};

/* A piece of text; what comes behind it is chosen by one byte, from `low` on. */
struct find_node {
	uint32_t text;
	uint32_t kids;
	uint16_t len;
	uint16_t begins;	/* content that begins so; 0: none is meant */
	uint16_t is;		/* content that ends here */
	uint16_t nkids;
	uint8_t low;
	uint8_t pad[3];
};

struct find_list {
	uint32_t groups, slots, root;
	uint32_t mask;		/* of slots */
	uint16_t ngroups;
	uint8_t depth;		/* so many events are looked at */
	uint8_t guards;		/* some guards are equal */
	struct find_key content;
};

struct find_tables {
	const struct find_list *lists;
	const struct find_group *groups;
	const struct find_key *keys;
	const struct find_slot *slots;
	const uint16_t *rules;
	const struct find_node *nodes;
	const uint32_t *kids;
	const uint8_t *texts;
	bool (*holds)(struct rules_run *run, unsigned rule, unsigned depth);
};

static inline uint32_t find_mix(uint32_t hash, uint64_t value)
{
	hash = (hash ^ (uint32_t)value ^ (uint32_t)(value >> 32)) * 0x9e3779b1u;
	return hash ^ hash >> 15;
}

static inline uint64_t find_value(struct rules_run *run, const struct find_key *k)
{
	uint64_t value;

	if (k->arg == FIND_NR)
		return k->own ? run->call->nr : run->ev[k->step]->nr;
	value = k->own ? run->call->args[k->arg] : run->ev[k->step]->args[k->arg];
	return k->width == FIND_WHOLE ? value : k->width == FIND_UNSIGNED_32 ?
		(uint32_t)value : (uint64_t)(int32_t)value;
}

/* The earliest of the rules with this hash that holds and is before `best`. */
static inline unsigned find_try(struct rules_run *run, const struct find_tables *t,
	const struct find_list *l, uint32_t hash, unsigned best)
{
	const struct find_slot *slots = t->slots + l->slots;
	uint32_t at = hash & l->mask;

	for (; slots[at].n; at = (at + 1) & l->mask) {
		if (slots[at].hash != hash)
			continue;
		for (uint32_t i = 0; i < slots[at].n; i++) {
			unsigned rule = t->rules[slots[at].first + i];

			if (rule >= best)
				break;
			if (t->holds(run, rule, l->depth))
				return rule;
		}
		return best;
	}
	return best;
}

static inline bool find_passes(struct view v, uint32_t at, const uint8_t *text, uint32_t len)
{
	if (v.len_ - at < len)
		return false;
	for (uint32_t i = 0; i < len; i++)
		if (v.at_[at + i] != text[i])
			return false;
	return true;
}

/* The same for every text that the content begins with. */
static inline unsigned find_content(struct rules_run *run, const struct find_tables *t,
	const struct find_list *l, uint32_t hash, struct view v, unsigned best)
{
	uint32_t node = l->root, at = 0;

	for (;;) {
		const struct find_node *n = &t->nodes[node];
		uint8_t next;

		if (!find_passes(v, at, t->texts + n->text, n->len))
			return best;
		at += n->len;
		if (n->begins)
			best = find_try(run, t, l, find_mix(hash, n->begins), best);
		if (at == v.len_)
			return n->is ? find_try(run, t, l, find_mix(hash, n->is), best) : best;
		next = (uint8_t)(v.at_[at++] - n->low);
		if (next >= n->nkids || !t->kids[n->kids + next])
			return best;
		node = t->kids[n->kids + next];
	}
}

/* A rule's number, or RULES_NONE. */
static inline int find_first(struct rules_run *run, const struct find_tables *t, unsigned list)
{
	const struct find_list *l = &t->lists[list];
	const struct find_key *c = &l->content;
	uint16_t said_no[RULES_SAID_NO];
	unsigned best = FIND_NOBODY;
	struct view v = { 0, 0, 0 };
	bool looked = false;

	for (unsigned i = 0; l->guards && i < RULES_SAID_NO; i++)
		said_no[i] = 0;
	run->said_no = l->guards ? said_no : 0;
	for (unsigned i = 0; i < l->ngroups; i++) {
		const struct find_group *g = &t->groups[l->groups + i];
		uint32_t hash = i;

		if (g->least >= best)
			break;
		for (unsigned k = 0; k < g->nkeys; k++)
			hash = find_mix(hash, find_value(run, &t->keys[g->keys + k]));
		if (g->content && !looked)
			v = c->own ? rules_own_bytes(run, c->arg) :
				     rules_bytes(run, c->step, c->arg);
		looked |= g->content;
		best = g->content ? find_content(run, t, l, hash, v, best) :
			find_try(run, t, l, hash, best);
	}
	run->said_no = 0;
	return best == FIND_NOBODY ? RULES_NONE : (int)best;
}

#endif
