/*
 * The spiller sleeps while nobody is far behind.  A leader's thread that finds no room says so in
 * `full`, and then wakes who sleeps on that (inside/lanes/full.c).  It is another's when another
 * leads, which the monitor tells by `leader` when that does: a switch of the streams itself wakes
 * nobody but who is to take over.
 */
#include <errno.h>
#include <linux/futex.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "engine/core/must.h"
#include "engine/core/ring.h"
#include "engine/outside/monitor/streams.h"
#include "engine/outside/monitor/wakes.h"
#include "engine/outside/spill/quiet.h"

#define SLEEP_US	250000	/* then it looks whether somebody comes to be behind */

uint32_t behind_most(const struct monitor *m, uint32_t leader)
{
	uint32_t bits = m->conduct->following & ~m->conduct->mute & ~(1u << leader), most = 0;
	uint32_t high = section_lanes(streams_part(m, leader));

	MUST(high <= LANES && leader < VERSIONS);
	for (; bits; bits &= bits - 1) {
		uint32_t v = (uint32_t)__builtin_ctz(bits);
		uint64_t cells = 0;

		for (uint32_t i = 0; v < VERSIONS && i < high; i++)
			cells += streams_lane_unread(m, v, leader, i);
		if (cells / CHUNK_CELLS > most)
			most = (uint32_t)(cells / CHUNK_CELLS);
	}
	return most;
}

bool sleep_until_full(const struct monitor *m, uint32_t leader)
{
	const struct timespec until = clock_after(SLEEP_US);
	struct futex_waitv word[] = {
		{ .val = leader, .uaddr = (uintptr_t)&m->conduct->leader, .flags = FUTEX_32 },
		{ .val = 0, .uaddr = (uintptr_t)&streams_part(m, leader)->full, .flags = FUTEX_32 },
	};

	MUST(leader < VERSIONS);
	return syscall(SYS_futex_waitv, word, 2, 0, &until, CLOCK_MONOTONIC) >= 0 ||
	       (errno != ENOSYS && errno != EPERM);
}

static void awake(int sig)
{
	MUST(sig == SIGUSR1);
}

void sleep_ends_with_parent(void)
{
	struct sigaction a = { .sa_handler = awake };

	sigaction(SIGUSR1, &a, NULL);
	prctl(PR_SET_PDEATHSIG, SIGUSR1);
}
