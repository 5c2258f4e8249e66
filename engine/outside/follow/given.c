/*
 * Time as a version has it.  On a busy machine a second of the clock may be a few
 * milliseconds of a processor: who is refused for being late must have had the time.
 * What its threads slept counts in full; while one of them could run, only what its
 * processes got of a processor; and what we waited for one ourselves does not count, for
 * they may have waited for us.  A limit of the clock stands beside it, for clients wait.
 */
#include <time.h>

#include "engine/core/must.h"
#include "engine/outside/follow/given.h"
#include "engine/outside/kernel/process.h"
#include "engine/outside/monitor/versions.h"
#include "engine/outside/takeover/takeover.h"
#include "engine/outside/takeover/takeover_parts.h"

static uint64_t process_cpu_us(pid_t pid)
{
	struct timespec t;
	clockid_t clock;

	if (pid <= 0 || clock_getcpuclockid(pid, &clock) || clock_gettime(clock, &t))
		return 0;
	return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

/* Of its processes, as its slots name them: one that is named wrongly is a wrong time. */
static uint64_t processes_us(const struct version *v, uint64_t (*of)(pid_t pid))
{
	uint64_t us = 0;
	pid_t last = 0;

	for (uint32_t i = 0; i < version_slots(v); i++) {
		const struct slot *s = &v->area->slot[i];
		pid_t pid = s->owner ? s->pid : last;

		us += pid != last ? of(pid) : 0;
		last = pid;
	}
	return us;
}

static uint64_t version_cpu_us(const struct version *v)
{
	return processes_us(v, process_cpu_us);
}

uint64_t given_ended_us(const struct version *v)
{
	return processes_us(v, process_ended_us);
}

static bool could_run(const struct version *v)
{
	for (uint32_t i = 0; i < version_slots(v); i++) {
		const struct slot *s = &v->area->slot[i];

		if (s->owner && thread_state(s->pid, (pid_t)s->owner) == 'R')
			return true;
	}
	return false;
}

void given_begin(struct given *p, const struct version *v, uint64_t limit_us)
{
	uint64_t queued = own_queued_us();

	*p = (struct given){ .v = v, .began_us = now_us(), .limit_us = limit_us,
			     .most_us = GIVEN_MOST_US, .queued_us = queued };
	p->looked_us = p->began_us;
	p->cpu_us = version_cpu_us(v);
}

void given_begin_waited(struct given *p, const struct version *v, uint64_t limit_us)
{
	given_begin(p, v, limit_us);
	p->most_us = UINT64_MAX;
}

void given_begin_ending(struct given *p, const struct version *v, uint64_t limit_us)
{
	given_begin(p, v, limit_us);
	p->most_us = GIVEN_ENDING_US;
}

/* From the first time that it says so, whenever it is asked. */
static bool had_all(const struct given *p, uint64_t now)
{
	return p->had_us > p->limit_us || now - p->began_us > p->most_us;
}

void given_ours(struct given *p, uint64_t since_us)
{
	uint64_t now = now_us(), from = since_us > p->looked_us ? since_us : p->looked_us;

	MUST(from <= now);
	p->looked_us += now - from;
}

/* A process that writes what it likes into its version's slots is looked at in that one's time. */
void given_serve(struct given *p, struct monitor *m)
{
	uint64_t now = now_us(), vain = m->vain_us;

	serve_all(m);
	given_ours(p, now + (m->vain_us - vain));
}

static uint64_t since(uint64_t now, uint64_t then)
{
	return now > then ? now - then : 0;
}

/*
 * We may lose the processor between two of these looks at clocks.  What we wait for it around
 * `now`, or as we serve, is taken away twice: for the version, not against it.
 */
bool given_over(struct given *p)
{
	uint64_t now = now_us(), queued, cpu, went, got;

	MUST(p->v && p->looked_us >= p->began_us);

	if (now - p->looked_us < GIVEN_LOOK_US)
		return had_all(p, now);
	queued = own_queued_us();
	now = now_us();
	cpu = version_cpu_us(p->v);
	went = since(now, p->looked_us + since(own_queued_us(), p->queued_us));
	got = since(cpu, p->cpu_us);
	p->had_us += could_run(p->v) && got < went ? got : went;
	p->looked_us = now;
	p->cpu_us = cpu;
	p->queued_us = queued;
	return had_all(p, now);
}

bool given_past(struct given *p)
{
	bool was = p->over;

	MUST(p->v);
	p->over = given_over(p);
	return was;
}
