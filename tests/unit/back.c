/*
 * A follower on its way back to its image: who wants a processor is not too late.  And how far apart
 * its images are.
 */
#include <criterion/criterion.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "engine/outside/kernel/process.h"
#include "engine/outside/monitor/monitor.h"
#include "engine/outside/monitor/versions.h"
#include "engine/outside/rewind/rewind_parts.h"

static struct monitor monitor;
static struct version version;

static pid_t spinning(void)
{
	pid_t pid = fork();

	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);	/* where the test ends before it ends us */
	for (volatile int i = 0;; i = !i)
		;
}

Test(back, who_runs_is_not_late)
{
	static const enum rewind_state states[] = { REWIND_ENDS, REWIND_WAKES };
	pid_t pid = spinning();

	version.monitor = &monitor;
	version.area = aligned_alloc(_Alignof(struct area), sizeof(struct area));
	memset(version.area, 0, sizeof(*version.area));
	version.area->slots_high = 1;
	version.area->slot[0].owner = (uint32_t)pid;
	version.area->slot[0].pid = pid;
	version.rewind.copies = 1;
	version.rewind.copy[0].pid = pid;
	version.rewind.copy[0].began = process_began(pid);
	for (unsigned i = 0; i < 2; i++) {
		version.rewind.state = states[i];
		back_look(&version, true);
		cr_assert(version.rewind.state == states[i]);
		cr_assert(version.rewind.until_ms > now_ms());
	}
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	free(version.area);
}

#define LONG_US		10000000
#define IMAGES		5

/* So many images, and between two it works so long: how often its way is double. */
static unsigned doubled_by(uint64_t us, bool in_turns, bool needed)
{
	struct rewind rw = { .image = 1 };

	for (unsigned i = 0; i < IMAGES; i++) {
		rw.needed = needed;
		images_pace(&rw, in_turns, (i + 1) * us);
	}
	return rw.doubled;
}

Test(back, images_are_near_where_it_works_long)
{
	struct rewind rw = { .image = 1 };

	cr_assert(doubled_by(0, true, false) == doubled_by(LONG_US, false, false));
	cr_assert(doubled_by(0, true, false) > 1);
	cr_assert(!doubled_by(LONG_US, true, false));
	cr_assert(!doubled_by(0, true, true) && !doubled_by(0, false, true));
	/* One that has gone back is another process, whose time begins anew. */
	rw.worked_us = LONG_US;
	images_pace(&rw, true, 0);
	cr_assert(rw.doubled == 1);
}
