/* What is to be done around a call of a number: found out once, by its row. */
#ifndef MVE_INSIDE_CARE_H
#define MVE_INSIDE_CARE_H

#include "engine/core/walk.h"
#include "engine/inside/fd/numbers.h"
#include "engine/inside/sample/scope.h"

void lead_prepare(void);
/* From here on places_made() is asked. */
void lead_looks_at_places(void);

/*
 * What else is to be done around a call than to tell of it: the traits of its row (CARE_ALONE
 * of lead.c: which of them also where the process has one thread), and
 */
enum care {
	/* What epoll knows is looked after: epoll_led. */
	CARE_POLLS	= TRAIT_EPOLL | TRAIT_REGISTERS,
	/* Numbers of descriptors go, or come to lead elsewhere: kept.def. */
	CARE_CAME	= TRAIT_COPIES | TRAIT_GATHERS,
	CARE_KEPT	= TRAITS_GONE | CARE_CAME,
	CARE_PLACES	= 1u << 28,	/* on files that have mirrors: places.c */
	CARE_ALIAS	= 1u << 29,	/* it may be answered where it sends from: sent.c */
	/* These where the process has more than one thread. */
	CARE_GIVES	= 1u << 30,	/* see seq_before */
	CARE_NUMBER	= 1u << 31,	/* it may be given a descriptor */
	/* Its event may have an edge: after_others. */
	CARE_EDGES	= CARE_POLLS | CARE_NUMBER | TRAIT_READS | TRAIT_WRITES | TRAIT_SIGNALS |
			  TRAIT_SLEEPS | TRAIT_WAITS | TRAIT_CLOSES_RANGE,
};

_Static_assert(TRAIT_COUNT <= 28, "care and traits are one word");

unsigned care_of(const struct call_desc *d);

/*
 * What a call gives to other threads (bytes for a pipe, a registration) is numbered
 * before it is made, what it takes from them after: so whoever got something has
 * the greater number.  What only makes descriptors takes their numbers, and gives nothing yet.
 */
static INLINE bool call_gives(const struct call_desc *d)
{
	return d->class == CLASS_EFFECT && d->result != KIND_FD && !call_has(d, TRAIT_INNER);
}

/*
 * Some give and take in one: a semaphore, a lock of files, splice.  They are numbered behind, for
 * they come behind what they took, however long that took them.
 */
static INLINE bool call_meets(const struct call_desc *d)
{
	return call_gives(d) && d->traits & TRAIT_WAITS;
}

/* It may take what others gave by no descriptor that is inner. */
static INLINE bool care_takes_other(unsigned care)
{
	return care & TRAIT_WAITS && !(care & (TRAIT_READS | TRAIT_POLLS | TRAIT_SLEEPS));
}

/* Without what is known of its arguments alone (CARE_ALIAS). */
static INLINE unsigned care_of_row(const struct call_desc *d)
{
	return d->traits | (call_gives(d) ? (unsigned)CARE_GIVES : 0) |
	       (numbers_may_be_given(d) ? (unsigned)CARE_NUMBER : 0);
}

/* What is the same at each call of a number; rows with variants are looked for. */
struct plan {
	const struct call_desc *desc;	/* NULL: it has variants, or is unknown */
	struct recipe recipe;
	uint32_t care;			/* traits, and enum care */
	uint8_t bare;			/* see lead_bare */
	uint8_t plain;			/* nothing but that */
	uint8_t tells;			/* the gate may make it: tell.c */
	uint8_t opens;			/* a private file, perhaps */
	uint8_t seam;			/* a request begins with it */
	struct scope_row scope;
} __attribute__((aligned(32)));
extern struct plan row_plans[SLOT_CALLS];

/* The slot knows only the low 16 bits of a number: those behind are nobody's. */
static inline const struct plan *plan_of(long nr)
{
	return &row_plans[(unsigned long)nr + 1 < SLOT_CALLS ? nr + 1 : 0];
}
/* The session is: is_stateless(), looked up once. */
extern bool stateless;

bool call_is_old_stat(long nr);

#endif
