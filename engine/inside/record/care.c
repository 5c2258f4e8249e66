/*
 * What is to be done around a call of a number: found out once, by its row.
 */
#include <asm/unistd.h>
#include <linux/errno.h>
#include <linux/fcntl.h>
#include <linux/mman.h>
#include <linux/time.h>

#include "engine/core/walk.h"
#include "engine/inside/fd/follow_epoll.h"
#include "engine/inside/fd/inner.h"
#include "engine/inside/fd/private.h"
#include "engine/inside/gate/dispatch.h"
#include "engine/inside/record/care.h"
#include "engine/inside/record/realm.h"
#include "engine/inside/sample/scope.h"
#include "engine/inside/sample/seam.h"
#include "engine/inside/takeover/kept.h"

struct plan row_plans[SLOT_CALLS];

bool stateless;

static bool is_one_of(const uint16_t *calls, unsigned n, long nr)
{
	for (unsigned i = 0; i < n; i++)
		if (calls[i] == nr)
			return true;
	return false;
}

#define ONE_OF(nr, ...)									\
	is_one_of((const uint16_t[]){ __VA_ARGS__ },					\
		  sizeof((uint16_t[]){ __VA_ARGS__ }) / sizeof(uint16_t), nr)

/* Told in another form: see stat_form. */
bool call_is_old_stat(long nr)
{
	return nr >= __NR_stat && nr <= __NR_lstat;
}

bool call_sends(long nr)
{
	return ONE_OF(nr, __NR_kill, __NR_tkill, __NR_tgkill, __NR_rt_sigqueueinfo,
		      __NR_rt_tgsigqueueinfo);
}

static bool is_bare(const struct call_desc *d, const struct recipe *r)
{
	return r->known && d->class != CLASS_LIFE && d->class != CLASS_LOCAL &&
	       !call_is_special(d->nr) && !call_is_old_stat(d->nr) && !call_sends(d->nr);
}

/* It may take for ever. */
static bool is_waiting(long nr)
{
	return epoll_is_wait(nr) ||
	       ONE_OF(nr, __NR_poll, __NR_ppoll, __NR_select, __NR_pselect6, __NR_accept,
		      __NR_accept4, __NR_read, __NR_readv, __NR_recvfrom, __NR_recvmsg,
		      __NR_recvmmsg, __NR_nanosleep, __NR_clock_nanosleep, __NR_pause, __NR_wait4,
		      __NR_waitid, __NR_rt_sigsuspend, __NR_rt_sigtimedwait, __NR_flock,
		      __NR_connect);
}

/* Of a number: whatever its variants are. */
static unsigned care_of(long nr)
{
	unsigned care = 0;

	care |= kept_is_noted(nr) ? CARE_KEPT : 0;
	care |= realm_may_change(nr) ? CARE_RIGHTS : 0;
	care |= is_waiting(nr) ? CARE_WAITS : 0;
	care |= inner_makes(nr) ? CARE_MAKES : 0;
	care |= call_has_variants(nr) ? CARE_NUMBER | CARE_ALIAS : 0;
	return care;
}

static unsigned care_of_row(const struct call_desc *d)
{
	long nr = d->nr;
	unsigned care = 0;

	care |= nr == __NR_close ? CARE_CLOSES : 0;
	care |= nr == __NR_close || epoll_is_wait(nr) || nr == __NR_epoll_ctl ? CARE_POLLS : 0;
	care |= call_gives(d) ? CARE_GIVES : 0;
	care |= d->result == KIND_FD ? CARE_NUMBER : 0;
	care |= step_may_alias(d) ? CARE_ALIAS : 0;
	if (ONE_OF(nr, __NR_clock_gettime, __NR_gettimeofday, __NR_time))
		care |= CARE_CLOCK;
	if (ONE_OF(nr, __NR_write, __NR_writev, __NR_sendto, __NR_sendmsg))
		care |= CARE_WRITES;
	if (ONE_OF(nr, __NR_read, __NR_readv, __NR_recvfrom, __NR_recvmsg))
		care |= CARE_READS;
	if (call_sends(nr))
		care |= CARE_SENDS;
	if (ONE_OF(nr, __NR_poll, __NR_ppoll, __NR_select, __NR_pselect6, __NR_nanosleep,
		   __NR_clock_nanosleep))
		care |= CARE_SLEEPS;
	return care;
}

/* Once, before the program's first call. */
void lead_prepare(void)
{
	stateless = is_stateless();
	if (stateless)
		scope_prepare();
	for (long nr = 0; nr + 1 < SLOT_CALLS; nr++) {
		struct plan *p = &row_plans[nr + 1];

		p->care = (uint16_t)care_of(nr);
		if (!call_find(nr) || call_has_variants(nr))
			continue;
		p->desc = call_find(nr);
		p->recipe = step_recipe(p->desc);
		p->bare = is_bare(p->desc, &p->recipe) && !seam_may_open(p->desc);
		p->care |= (uint16_t)care_of_row(p->desc);
		p->seam = seam_is_call(nr);
		p->scope = scope_row(p->desc);
		p->opens = private_may_open(nr);
		p->plain = p->bare && !p->seam && !p->opens && !stateless &&
			   !(p->care & CARE_ALIAS);
	}
}

void lead_looks_at_places(void)
{
	for (long nr = 0; nr + 1 < SLOT_CALLS; nr++) {
		const struct call_desc *d = call_find(nr);

		if (d && (d->result == KIND_FD || nr == __NR_fcntl ||
			  ONE_OF(nr, __NR_write, __NR_writev, __NR_close)))
			row_plans[nr + 1].care |= CARE_PLACES;
	}
}

const struct recipe *lead_recipe(long nr)
{
	return &plan_of(nr)->recipe;
}

bool lead_wakes(long nr)
{
	return plan_of(nr)->care & CARE_WAITS;
}
