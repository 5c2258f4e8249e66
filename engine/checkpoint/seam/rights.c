/*
 * A server gives up its rights, or sees another root, before it serves: afterwards the kernel does
 * not let it look at its own pages (a process that changes its user is not dumpable, so its
 * /proc/self/pagemap is root's).  So what checkpoints want of the kernel is had before.
 *
 * And it bounds its memory, by which it means its own: what we have reserved does not count.
 */
#include <unistd.h>
#include "engine/checkpoint/runtime/heap.h"
#include "engine/checkpoint/runtime/maps.h"
#include "engine/checkpoint/runtime/state.h"
#include "engine/checkpoint/seam/calls.h"
#include "engine/checkpoint/ways/pages.h"
#include "engine/checkpoint/ways/ways.h"

/* If it cannot be had, that is said where a checkpoint is opened.  A daemon may have closed, with
 * all that it had, what a first request wanted. */
static void before(void)
{
	if (state->plain || setup())
		return;
	pages_own();
	protect_own();
}

/* One that was made without rights may have taken them again (proftpd's sessions do). */
static int after(int got)
{
	if (!state->plain && state->ready)
		pages_again();
	return got;
}

int mve_seam_setuid(uid_t user)
{
	before();
	return after(setuid(user));
}

int mve_seam_seteuid(uid_t user)
{
	before();
	return after(seteuid(user));
}

int mve_seam_setreuid(uid_t real, uid_t effective)
{
	before();
	return after(setreuid(real, effective));
}

int mve_seam_setresuid(uid_t real, uid_t effective, uid_t saved)
{
	before();
	return after(setresuid(real, effective, saved));
}

int mve_seam_chroot(const char *root)
{
	before();
	return chroot(root);
}

/* Of the program's words the kernel's, or the other way round.  No more than who has no rights may
 * ask for. */
static rlim_t moved(rlim_t limit, rlim_t by, rlim_t most)
{
	if (limit == RLIM_INFINITY)
		return limit;
	return limit + by < most ? limit + by : most;
}

static rlim_t reserved(void)
{
	uintptr_t begin, used, end;

	heap_bounds(&begin, &used, &end);
	return state->reserved + (end - begin);
}

static int bounds_us(__rlimit_resource_t what)
{
	return what == RLIMIT_AS || what == RLIMIT_DATA;
}

int mve_heap_setrlimit(__rlimit_resource_t what, const struct rlimit *limit)
{
	struct rlimit ours, now;

	if (!bounds_us(what) || getrlimit(what, &now))
		return setrlimit(what, limit);
	heap_bound(limit->rlim_cur);
	ours.rlim_max = moved(limit->rlim_max, reserved(), now.rlim_max);
	ours.rlim_cur = moved(limit->rlim_cur, reserved(), ours.rlim_max);
	return setrlimit(what, &ours);
}

int mve_heap_getrlimit(__rlimit_resource_t what, struct rlimit *limit)
{
	int got;

	seam_written(limit, sizeof(*limit));
	got = getrlimit(what, limit);
	if (!got && bounds_us(what)) {
		limit->rlim_max = moved(limit->rlim_max, -reserved(), RLIM_INFINITY);
		limit->rlim_cur = moved(limit->rlim_cur, -reserved(), RLIM_INFINITY);
	}
	return got;
}
