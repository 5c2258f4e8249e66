/*
 * Descriptors that rules let a follower open for itself: numbers of a range that no server
 * is given.
 */
#include <asm/unistd.h>
#include <linux/errno.h>
#include <linux/fcntl.h>

#include "engine/core/must.h"
#include "engine/inside/gate/gate.h"
#include "engine/inside/gate/thread.h"
#include "engine/inside/rules/opened.h"

/*
 * Limit (rules): descriptors that a follower has opened by rules. Beyond: its open fails
 * with EMFILE.
 */
#define PRIVATE_FDS	256
#define PRIVATE_LEAST	64	/* a lower limit of descriptors leaves no room for any */
#define LIMIT_NOFILE	7
_Static_assert(PRIVATE_FDS % 64 == 0 && PRIVATE_LEAST < PRIVATE_FDS, "words of bits");

static uint32_t private_base;	/* the first number of the range; 0: not chosen yet */
static uint64_t private_used[PRIVATE_FDS / 64];

static bool private_choose(void)
{
	uint64_t limit[2] = { 0, 0 };

	OWN4(__NR_prlimit64, 0, LIMIT_NOFILE, 0, limit);
	if (!private_base && limit[0] >= 4 * PRIVATE_LEAST && limit[0] < 1u << 30)
		private_base = (uint32_t)(limit[0] - (limit[0] > 4 * PRIVATE_FDS ? PRIVATE_FDS
										: PRIVATE_LEAST));
	return private_base;
}

bool rules_opened(uint64_t fd)
{
	uint32_t i = (uint32_t)fd - private_base;

	return private_base && i < PRIVATE_FDS && private_used[i / 64] >> i % 64 & 1;
}

static void private_set(uint64_t fd, bool used)
{
	uint32_t i = (uint32_t)fd - private_base;

	if (i >= PRIVATE_FDS)
		return;
	if (used)
		__atomic_fetch_or(&private_used[i / 64], 1ull << i % 64, __ATOMIC_RELAXED);
	else
		__atomic_fetch_and(&private_used[i / 64], ~(1ull << i % 64), __ATOMIC_RELAXED);
}

long rules_opened_move(long fd)
{
	long to = private_choose() ? OWN3(__NR_fcntl, fd, F_DUPFD_CLOEXEC, private_base) : -EMFILE;

	MUST(fd >= 0);
	OWN1(__NR_close, fd);
	if (to >= 0)
		private_set((uint64_t)to, true);
	return to;
}

void rules_opened_gone(uint64_t fd)
{
	private_set(fd, false);
}
