/* The time that a version is given: it counts where it sleeps, and where it is served. */
#include <criterion/criterion.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "engine/outside/follow/given.h"
#include "engine/outside/kernel/process.h"
#include "engine/outside/monitor/monitor.h"
#include "engine/outside/takeover/takeover.h"

#define LIMIT_US	100000
#define LOOKS		40	/* of 10 ms: four times the limit */

static pid_t child(bool spins, int policy)
{
	pid_t pid = fork();
	cpu_set_t one;

	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);	/* where the test ends before it ends us */
	CPU_ZERO(&one);
	CPU_SET(sched_getcpu(), &one);
	sched_setscheduler(0, policy, &(struct sched_param){ 0 });
	while (spins && !sched_setaffinity(0, sizeof(one), &one))
		for (volatile int i = 0; i < 1000000; i++)
			;
	for (;;)
		pause();
}

static void end(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

/* Whether its time is over, after so long; `ours`: that was a look of the monitor's. */
static bool over_by(pid_t pid, bool ours)
{
	struct version v = { .area = aligned_alloc(_Alignof(struct area), sizeof(struct area)) };
	struct given p;
	bool is = false;

	memset(v.area, 0, sizeof(*v.area));
	v.area->slots_high = 1;
	v.area->slot[0].owner = (uint32_t)pid;
	v.area->slot[0].pid = pid;
	given_begin(&p, &v, LIMIT_US);
	for (int i = 0; i < LOOKS && !is; i++) {
		uint64_t since = now_us();

		usleep(GIVEN_LOOK_US);
		if (ours)
			given_ours(&p, since);
		is = given_over(&p);
	}
	cr_assert(is == given_over(&p));	/* and so it stays, asked at once */
	free(v.area);
	return is;
}

static bool over(pid_t pid)
{
	return over_by(pid, false);
}

/* What came while we had no processor is looked for behind the end, and once. */
Test(given, past)
{
	struct version v = { .area = aligned_alloc(_Alignof(struct area), sizeof(struct area)) };
	struct given p;

	memset(v.area, 0, sizeof(*v.area));
	given_begin(&p, &v, LIMIT_US);
	usleep(2 * LIMIT_US);
	cr_assert_not(given_past(&p));
	cr_assert(given_past(&p));
	free(v.area);
}

/* What the monitor takes for itself is not the version's. */
Test(given, looked_at)
{
	pid_t pid = child(false, SCHED_OTHER);

	cr_assert_not(over_by(pid, true));
	end(pid);
}

Test(given, sleeper)
{
	pid_t pid = child(false, SCHED_OTHER);

	cr_assert(over(pid));
	end(pid);
}

/* Nothing but its processor is taken: a SIGSTOP would be its own affair. */
Test(given, starved)
{
	pid_t spinner[2], pid;
	cpu_set_t one;

	CPU_ZERO(&one);
	CPU_SET(sched_getcpu(), &one);
	sched_setaffinity(0, sizeof(one), &one);
	for (int i = 0; i < 2; i++)
		spinner[i] = child(true, SCHED_OTHER);
	pid = child(true, SCHED_IDLE);
	cr_assert_not(over(pid));
	for (int i = 0; i < 2; i++)
		end(spinner[i]);
	end(pid);
}

/* Who looks has no processor, and nobody is served: a sleeper may wait for that. */
Test(given, unlooked)
{
	struct version v = { .area = aligned_alloc(_Alignof(struct area), sizeof(struct area)) };
	pid_t spinner[2], pid = child(false, SCHED_OTHER);
	uint64_t queued;
	struct given p;
	cpu_set_t one;

	CPU_ZERO(&one);
	CPU_SET(sched_getcpu(), &one);
	sched_setaffinity(0, sizeof(one), &one);
	memset(v.area, 0, sizeof(*v.area));
	v.area->slots_high = 1;
	v.area->slot[0].owner = (uint32_t)pid;
	v.area->slot[0].pid = pid;
	given_begin_waited(&p, &v, LIMIT_US);
	for (int i = 0; i < 2; i++)
		spinner[i] = child(true, SCHED_OTHER);
	sched_setscheduler(0, SCHED_IDLE, &(struct sched_param){ 0 });
	while (own_queued_us() < p.queued_us + 2 * LIMIT_US)
		;
	/* So long a wait for a processor, and half of the limit beside it. */
	queued = own_queued_us() - p.queued_us;
	p.began_us = p.looked_us = now_us() - queued - LIMIT_US / 2;
	cr_assert_not(given_over(&p));
	for (int i = 0; i < 2; i++)
		end(spinner[i]);
	end(pid);
	free(v.area);
}

/* Who has the leader wait for a follower has it wait for one without a processor, too. */
Test(given, waited)
{
	struct version v = { .area = aligned_alloc(_Alignof(struct area), sizeof(struct area)) };
	struct given p;

	memset(v.area, 0, sizeof(*v.area));
	given_begin(&p, &v, LIMIT_US);
	p.began_us -= 2 * GIVEN_MOST_US;
	cr_assert(given_over(&p));
	given_begin_waited(&p, &v, LIMIT_US);
	p.began_us -= 2 * GIVEN_MOST_US;
	cr_assert_not(given_over(&p));
	usleep(2 * LIMIT_US);
	cr_assert(given_over(&p));
	free(v.area);
}
