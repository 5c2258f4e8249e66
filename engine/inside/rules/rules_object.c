/*
 * Rule objects in a follower: mapped, checked, chosen, given back.
 */
#include <asm/signal.h>
#include <asm/unistd.h>
#include <linux/errno.h>
#include <linux/mman.h>
#include <linux/sched.h>
#include <linux/time.h>
#include <linux/time_types.h>

#include "engine/core/must.h"
#include "engine/core/pairs.h"
#include "engine/core/rules.h"
#include "engine/inside/gate/gate.h"
#include "engine/inside/gate/latch.h"
#include "engine/inside/gate/memory.h"
#include "engine/inside/gate/request.h"
#include "engine/inside/gate/thread.h"
#include "engine/inside/order/apart.h"
#include "engine/inside/rules/follow_rules.h"
#include "engine/inside/rules/rules_object.h"

#define RULES_STACK	(16 * PAGE)
#define RULES_GUARD	(16 * PAGE)

static struct loaded *newest;

static uint64_t pages(uint64_t n)
{
	return (n + PAGE - 1) & ~(PAGE - 1);
}

static bool bank_sane(uint32_t size, uint32_t text, uint32_t entry)
{
	return size && size <= sizeof(((struct rules_bank *)0)->bytes) && text <= size &&
	       entry < text && !(text % PAGE);
}

/* The bank's object in memory of our own, behind its page; NULL: it cannot be. */
static struct loaded *object_map(uint32_t generation)
{
	const struct rules_bank *b = &brief()->bank[generation % 2];
	uint32_t size = b->size, text = b->text, entry = b->entry;
	uint64_t len = PAGE + pages(size);
	struct loaded *l;
	long at;

	if (!bank_sane(size, text, entry))
		return NULL;
	at = own_map(len);
	if (at < 0)
		return NULL;
	l = (struct loaded *)at;
	bytes_copy((void *)((uint64_t)at + PAGE), b->bytes, size);
	/* The bank was whole when it was copied if its turn is not over. */
	if (CONSUME_AGAIN(brief_rules, &brief()->rules) != generation) {
		OWN2(__NR_munmap, at, len);
		return NULL;
	}
	OWN3(__NR_mprotect, (uint64_t)at + PAGE, text, PROT_READ | PROT_EXEC);
	l->len = len;
	l->generation = generation;
	l->rules.object.rows = (const struct rules_row *)((uint64_t)at + PAGE + entry);
	return l;
}

static long object_attach(void *arg)
{
	struct loaded *l = arg;

	return rules_attach(&l->rules, (rules_entry *)(uintptr_t)l->rules.object.rows);
}

/* All that an object points to lies in it. */
static bool object_whole(const struct loaded *l)
{
	const struct rules_object *o = &l->rules.object;
	uint64_t end = (uint64_t)l + l->len;
	const void *const at[] = {
		o->rows, o->outs, o->text, o->wanted, o->wants[0], o->wants[1],
		(const void *)(uintptr_t)o->pick, (const void *)(uintptr_t)o->left,
		(const void *)(uintptr_t)o->fits, (const void *)(uintptr_t)o->act,
	};

	for (unsigned i = 0; i < sizeof(at) / sizeof(at[0]); i++)
		if ((uint64_t)at[i] - (uint64_t)l - PAGE >= l->len - PAGE)
			return false;
	/* Looked at without rules_try. */
	for (unsigned i = 0; i < RULES_SCOPES; i++)
		if (o->wants_size > end - (uint64_t)o->wants[i])
			return false;
	return !(o->flags & RULES_HAS_PROCESS);
}

static struct loaded *object_load(struct thread *t, uint32_t generation)
{
	struct rules_thread *rt = t->rules;
	struct loaded *l = object_map(generation);
	long result;

	MUST(!rt->in_rule);

	if (!l)
		return NULL;
	rt->in_rule = 1;
	result = rules_try(object_attach, l, &rt->back, rt->stack);
	rt->in_rule = 0;
	if (!result && object_whole(l))
		return l;
	OWN2(__NR_munmap, l, l->len);
	return NULL;
}

static void object_release(struct loaded *l)
{
	MUST(!l || l->users);
	if (l && !--l->users && l != newest)
		OWN2(__NR_munmap, l, l->len);
}

/* The area's object; it may be replaced while it is copied. */
static struct loaded *object_newest(struct thread *t)
{
	uint32_t generation;

	MUST(latch_is_held(LATCH_rules));

	do {
		/* The bank is written. */
		generation = CONSUME(brief_rules, &brief()->rules);
		if (!newest || newest->generation != generation) {
			struct loaded *was = newest;

			newest = object_load(t, generation);
			if (was && !was->users)
				OWN2(__NR_munmap, was, was->len);
		}
	} while (!newest && generation != brief()->rules);
	return newest;
}

/* Changes the thread over to it. */
void rules_object_get(struct thread *t)
{
	struct rules_thread *rt = t->rules;

	latch_take(LATCH_rules);
	object_release(rt->now);
	rt->now = object_newest(t);
	if (rt->now)
		rt->now->users++;
	latch_give(LATCH_rules);
}

struct choice {
	struct rules *rules;
	const struct release *leader, *follower;
};

static long object_choose(void *arg)
{
	const struct choice *c = arg;
	int32_t leader = c->leader->age, follower = c->follower->age;

	rules_choose(c->rules, leader < follower ? RULES_STAGE_OLD : leader > follower ?
		     RULES_STAGE_NEW : RULES_STAGE_ANY, c->leader->name, c->follower->name);
	return 0;
}

/* Which rules are on, for the leader whose stream it reads. */
bool rules_object_choose(struct thread *t, uint32_t source)
{
	struct rules_thread *rt = t->rules;
	const struct brief *b = brief();
	struct choice c = { &rt->rules, &b->release[source % RELEASES],
			    &b->release[b->self % RELEASES] };
	long result;

	MUST(rt->now && !rt->in_rule);

	rt->rules.object = rt->now->rules.object;
	rt->source = source;
	rt->in_rule = 1;	/* names lie in the object */
	result = rules_try(object_choose, &c, &rt->back, rt->stack);
	rt->in_rule = 0;
	return !result;
}

/* Below the stack is a range that faults, wider than a frame is without probing. */
bool rules_place_map(struct thread *t)
{
	MUST(!t->rules && t == thread_self());
	long at = own_map(sizeof(struct rules_thread));
	long stack = at < 0 ? at : own_map(RULES_GUARD + RULES_STACK);

	if (stack < 0) {
		if (at >= 0)
			OWN2(__NR_munmap, at, sizeof(struct rules_thread));
		return false;
	}
	OWN3(__NR_mprotect, stack, RULES_GUARD, PROT_NONE);
	t->rules = (struct rules_thread *)at;
	t->rules->stack = (uint64_t)stack + RULES_GUARD + RULES_STACK;
	t->rules->lens = APART_ALL;
	return true;
}

void rules_place_clear(struct rules_thread *rt)
{
	bytes_zero(&rt->state, sizeof(rt->state));
	rt->helds = 0;
	rt->in_rule = 0;
}

/* A new thread, or a copy of one: nothing is matched. */
void rules_child(struct thread *t)
{
	if (!t->rules)
		return;
	rules_place_clear(t->rules);
	apart_forget(t);
}

/* It leads from here. */
void rules_forget(struct thread *t)
{
	if (t->rules)
		rules_place_clear(t->rules);
}
