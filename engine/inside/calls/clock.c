/*
 * What the kernel's vDSO answers without a call.
 */
#include <asm/unistd.h>
#include <linux/errno.h>
#include <linux/fcntl.h>
#include <linux/mman.h>
#include <linux/time.h>

#include "engine/core/walk.h"
#include "engine/inside/calls/clock.h"
#include "engine/inside/calls/special.h"
#include "engine/inside/gate/thread.h"

typedef long vdso_fn(uint64_t, uint64_t, uint64_t);

/*
 * Clocks that the kernel's vDSO reads.  For any other it makes a call, which is
 * held as every call is: not from in here.
 */
#define VDSO_CLOCKS	(1u << CLOCK_REALTIME | 1u << CLOCK_MONOTONIC |			\
			 1u << CLOCK_MONOTONIC_RAW | 1u << CLOCK_REALTIME_COARSE |	\
			 1u << CLOCK_MONOTONIC_COARSE | 1u << CLOCK_BOOTTIME | 1u << CLOCK_TAI)

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

/* Where the kernel's function is to write: in memory of ours, if the program gave some. */
static INLINE uint64_t given(uint64_t asked, unsigned bytes, uint64_t *room)
{
	return bytes && asked ? (uint64_t)room : asked;
}

static INLINE bool given_back(uint64_t asked, unsigned bytes, const uint64_t *room)
{
	return !bytes || !asked || !target_out(asked, room, bytes);
}

/*
 * The kernel's function writes to memory of ours, for it is no call: an address of the
 * program's that is bad would be a fault in here.
 */
static INLINE long vdso_call(const struct frame *f, int which)
{
	const uint8_t *n = vdso_writes[which];
	uint64_t a[2], b[2];
	long result;

	result = ((vdso_fn *)boot.vdso[which])(given(f->rdi, n[0], a), given(f->rsi, n[1], b),
					       f->rdx);
	if (result >= 0 && (!given_back(f->rdi, n[0], a) || !given_back(f->rsi, n[1], b)))
		return -EFAULT;
	return result;
}

static INLINE long vdso_or_call(struct thread *t, long nr, int which)
{
	if (!boot.vdso[which] || !vdso_reads(&t->frame, nr))
		return serve_special(t, nr);
	t->answered = 1;
	return vdso_call(&t->frame, which);
}

long clock_call(struct thread *t, long nr)
{
	switch (nr) {
	case __NR_clock_gettime:
		return vdso_or_call(t, nr, VDSO_CLOCK_GETTIME);
	case __NR_gettimeofday:
		return vdso_or_call(t, nr, VDSO_GETTIMEOFDAY);
	case __NR_time:
		return vdso_or_call(t, nr, VDSO_TIME);
	case __NR_clock_getres:
		return vdso_or_call(t, nr, VDSO_CLOCK_GETRES);
	case __NR_getcpu:
		return vdso_or_call(t, nr, VDSO_GETCPU);
	default:
		return serve_special(t, nr);
	}
}

long call_serve(struct thread *t, long nr)
{
	return call_is_vdso(t) ? clock_call(t, nr) : serve_special(t, nr);
}
