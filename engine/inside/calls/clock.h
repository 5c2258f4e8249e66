/* What the kernel's vDSO answers without a call. */
#ifndef MVE_INSIDE_CLOCK_H
#define MVE_INSIDE_CLOCK_H

#include <asm/unistd.h>
#include <linux/errno.h>
#include <linux/time.h>

#include "engine/inside/calls/special.h"
#include "engine/inside/gate/above.h"
/* Before host.h: what its copies are. */
#include "engine/inside/gate/memory.h"
#include "engine/inside/gate/thread.h"

long call_serve(struct thread *t, long nr);

/* A call of our vDSO: the kernel's answers it without a call. */
static inline bool call_is_vdso(const struct thread *t)
{
	return !t->frame.site_end;
}

long clock_call(struct thread *t, long nr);

/* --- the same where the number is known when we are compiled ---------------------------- */

typedef long vdso_fn(uint64_t, uint64_t, uint64_t);

_Static_assert(VDSO_CLOCKS ==
	       (1u << CLOCK_REALTIME | 1u << CLOCK_MONOTONIC | 1u << CLOCK_MONOTONIC_RAW |
		1u << CLOCK_REALTIME_COARSE | 1u << CLOCK_MONOTONIC_COARSE | 1u << CLOCK_BOOTTIME |
		1u << CLOCK_TAI), "those of a kernel of today");

static INLINE bool vdso_reads(const struct frame *f, long nr)
{
	bool has_clock = nr == __NR_clock_gettime || nr == __NR_clock_getres;

	return !has_clock || ((uint32_t)f->rdi < 32 && VDSO_CLOCKS >> (uint32_t)f->rdi & 1);
}

#define VDSO_POINTERS	2

/* The bytes that each writes behind its arguments. */
static const uint8_t vdso_writes[VDSO_FUNCTIONS][VDSO_POINTERS] = {
	[VDSO_CLOCK_GETTIME] = { 0, 16 }, [VDSO_GETTIMEOFDAY] = { 16, 8 }, [VDSO_TIME] = { 8 },
	[VDSO_CLOCK_GETRES] = { 0, 16 }, [VDSO_GETCPU] = { 4, 4 },
};

/* Where it writes, before the program is given it. */
struct clock_room {
	uint64_t of[VDSO_POINTERS][2];
};

/* Where the kernel's function is to write: in memory of ours, if the program gave some. */
static INLINE uint64_t clock_given(uint64_t asked, unsigned bytes, uint64_t *room)
{
	return bytes && asked ? (uint64_t)room : asked;
}

static INLINE bool clock_given_back(uint64_t asked, unsigned bytes, const uint64_t *room)
{
	return !bytes || !asked || target_copy((uint8_t *)asked, (uint64_t)room, bytes);
}

/*
 * The kernel's function writes to memory of ours, for it is no call: an address of the
 * program's that is bad would be a fault in here.
 */
static INLINE long clock_vdso(const struct frame *f, int which, struct clock_room *room)
{
	const uint8_t *n = vdso_writes[which];
	uint64_t *a = room->of[0], *b = room->of[1];
	long result;

	result = ((vdso_fn *)boot.vdso[which])(clock_given(f->rdi, n[0], a),
					       clock_given(f->rsi, n[1], b), f->rdx);
	if (result >= 0 &&
	    (!clock_given_back(f->rdi, n[0], a) || !clock_given_back(f->rsi, n[1], b)))
		return -EFAULT;
	return result;
}

static INLINE int clock_function(long nr)
{
	switch (nr) {
	case __NR_clock_gettime:
		return VDSO_CLOCK_GETTIME;
	case __NR_gettimeofday:
		return VDSO_GETTIMEOFDAY;
	case __NR_time:
		return VDSO_TIME;
	case __NR_clock_getres:
		return VDSO_CLOCK_GETRES;
	case __NR_getcpu:
		return VDSO_GETCPU;
	default:
		return VDSO_FUNCTIONS;
	}
}

static INLINE long clock_read(struct thread *t, long nr, struct clock_room *room)
{
	const int which = clock_function(nr);

	if (which == VDSO_FUNCTIONS || !boot.vdso[which] || !vdso_reads(&t->frame, nr))
		return serve_special(t, nr);
	t->answered = 1;
	return clock_vdso(&t->frame, which, room);
}

#endif
