/*
 * What is to be done around a call of a number: found out once, by its row.
 */
#include <asm/unistd.h>
#include <linux/errno.h>
#include <linux/fcntl.h>
#include <linux/mman.h>
#include <linux/time.h>

#include "engine/core/must.h"
#include "engine/core/walk.h"
#include "engine/inside/calls/private.h"
#include "engine/inside/calls/special.h"
#include "engine/inside/fd/follow_epoll.h"
#include "engine/inside/gate/ways.h"
#include "engine/inside/record/care.h"
#include "engine/inside/sample/scope.h"
#include "engine/inside/sample/seam.h"

struct plan row_plans[SLOT_CALLS];

bool stateless;

/* Told in another form: see stat_form. */
bool call_is_old_stat(long nr)
{
	return nr >= __NR_stat && nr <= __NR_lstat;
}

static bool is_bare(const struct call_desc *d, const struct recipe *r)
{
	return r->known && d->class != CLASS_LIFE && d->class != CLASS_LOCAL &&
	       !call_is_special(d->nr) && !call_is_old_stat(d->nr) && !call_has(d, TRAIT_SIGNALS);
}

unsigned care_of(const struct call_desc *d)
{
	return care_of_row(d) | (step_may_alias(d) ? CARE_ALIAS : 0);
}

static unsigned values_of(const struct call_desc *d)
{
	unsigned n = 0;

	for (unsigned i = 0; i < d->nargs; i++)
		n += d->args[i].kind < KIND_VALUES && d->args[i].kind != KIND_SKIP;
	return n;
}

/* Once, before the program's first call. */
void lead_prepare(void)
{
	stateless = is_stateless();
	if (stateless)
		scope_prepare();
	for (long nr = 0; nr + 1 < SLOT_CALLS; nr++) {
		struct plan *p = &row_plans[nr + 1];

		/* Which variant it is, and what care that needs, is looked up at each call. */
		p->care = call_has_variants(nr) ? call_traits(nr) | CARE_ALIAS : 0;
		if (!call_find(nr) || call_has_variants(nr))
			continue;
		MUST(call_find(nr)->nr == nr);
		p->desc = call_find(nr);
		p->care = care_of(p->desc);
		p->recipe = step_recipe(p->desc);
		p->bare = is_bare(p->desc, &p->recipe) && !seam_may_open(p->desc);
		p->seam = seam_is_call(nr);
		p->scope = scope_row(p->desc);
		p->opens = call_has(p->desc, TRAIT_OPENS);
		p->tells = p->bare && !p->seam && !stateless;
		p->plain = p->tells && !p->opens && !(p->care & CARE_ALIAS);
		MUST(!(p->care & CARE_EDGES) || values_of(p->desc) <= EDGE_ARG);
		/* What lead_bare does not look after. */
		MUST(!p->plain || !(p->care & (TRAIT_SIGNALS | TRAIT_SPECIAL)));
	}
}

static void place_care(long nr)
{
	row_plans[nr + 1].care |= CARE_PLACES;
	way_set((unsigned)nr + 1, WAY_LONG);
}

void lead_looks_at_places(void)
{
	for (long nr = 0; nr + 1 < SLOT_CALLS; nr++) {
		const struct call_desc *d = call_find(nr);

		if (d && (d->result == KIND_FD || call_has_variants(nr) ||
			  call_has(d, TRAIT_WRITES)))
			place_care(nr);
	}
}
