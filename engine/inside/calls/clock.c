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

static bool vdso_reads(const struct frame *f, long nr)
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

/*
 * The kernel's function writes to memory of ours, for it is no call: an address of the
 * program's that is bad would be a fault in here.
 */
static long vdso_call(const struct frame *f, int which)
{
	uint64_t asked[VDSO_POINTERS] = { f->rdi, f->rsi }, given[VDSO_POINTERS];
	uint64_t room[VDSO_POINTERS][2];
	long result;

	for (int i = 0; i < VDSO_POINTERS; i++)
		given[i] = vdso_writes[which][i] && asked[i] ? (uint64_t)room[i] : asked[i];
	result = ((vdso_fn *)boot.vdso[which])(given[0], given[1], f->rdx);
	for (int i = 0; i < VDSO_POINTERS; i++)
		if (result >= 0 && given[i] != asked[i] &&
		    target_out(asked[i], room[i], vdso_writes[which][i]))
			return -EFAULT;
	return result;
}

long clock_call(struct thread *t, long nr)
{
	static const int16_t of[VDSO_FUNCTIONS] = {
		[VDSO_CLOCK_GETTIME] = __NR_clock_gettime, [VDSO_GETTIMEOFDAY] = __NR_gettimeofday,
		[VDSO_TIME] = __NR_time, [VDSO_CLOCK_GETRES] = __NR_clock_getres,
		[VDSO_GETCPU] = __NR_getcpu, [VDSO_GETRANDOM] = -1,
	};
	const struct frame *f = &t->frame;

	for (int i = 0; i < VDSO_FUNCTIONS; i++) {
		if (of[i] != nr || !boot.vdso[i] || !vdso_reads(f, nr))
			continue;
		t->answered = 1;
		return vdso_call(f, i);
	}
	return serve_special(t, nr);
}

long call_serve(struct thread *t, long nr)
{
	return call_is_vdso(t) ? clock_call(t, nr) : serve_special(t, nr);
}
