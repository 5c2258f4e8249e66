/*
 * A server gives up its rights, or sees another root, before it serves: afterwards the kernel does
 * not let it look at its own pages (a process that changes its user is not dumpable, so its
 * /proc/self/pagemap is root's).  So what checkpoints want of the kernel is had before.
 */
#include <unistd.h>
#include "engine/checkpoint/runtime/state.h"
#include "engine/checkpoint/seam/calls.h"
#include "engine/checkpoint/ways/pages.h"

/* If it cannot be had, that is said where a checkpoint is opened.  A daemon may have closed, with
 * all that it had, what a first request wanted. */
static void before(void)
{
	if (!state->plain && !setup())
		pages_own();
}

int mve_seam_setuid(uid_t user)
{
	before();
	return setuid(user);
}

int mve_seam_seteuid(uid_t user)
{
	before();
	return seteuid(user);
}

int mve_seam_setreuid(uid_t real, uid_t effective)
{
	before();
	return setreuid(real, effective);
}

int mve_seam_setresuid(uid_t real, uid_t effective, uid_t saved)
{
	before();
	return setresuid(real, effective, saved);
}

int mve_seam_chroot(const char *root)
{
	before();
	return chroot(root);
}
