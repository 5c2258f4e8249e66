/*
 * The table of a live update as a whole: each event in each stage is handled or said to be
 * impossible, once; from each stage everything comes back to one version alone; and a user can
 * end an update in each.
 */
#include <criterion/criterion.h>

#include "engine/outside/monitor/monitor.h"
#include "engine/outside/stages/stages_parts.h"

static const struct {
	enum stage stage;
	enum stage_event event;
	enum stage next;
} rows[] = {
#define ON(stage, event, act, next) { STAGE_##stage, STAGE_##event##_happens, STAGE_##next },
#include "engine/outside/stages/stages.def"
};

#define ROWS	(sizeof(rows) / sizeof(rows[0]))
#define E(event) (1u << STAGE_##event##_happens)

static const struct {
	enum stage stage;
	unsigned events;
} never[] = {
#define NEVER(stage, events, why) { STAGE_##stage, events },
#include "engine/outside/stages/stages.def"
};

static int said(unsigned stage, unsigned event)
{
	int n = 0;

	for (unsigned i = 0; i < ROWS; i++)
		n += rows[i].stage == stage && rows[i].event == event;
	for (unsigned i = 0; i < sizeof(never) / sizeof(never[0]); i++)
		n += never[i].stage == stage && never[i].events >> event & 1;
	return n;
}

Test(stages, each_pair_once)
{
	for (unsigned s = 0; s < STAGES; s++)
		for (unsigned e = 0; e < STAGE_EVENTS; e++)
			cr_assert_eq(said(s, e), 1, "stage %u, event %u: %d times", s, e, said(s, e));
}

static unsigned reached(enum stage from, bool back)
{
	unsigned set = 1u << from, was = 0;

	while (set != was) {
		was = set;
		for (unsigned i = 0; i < ROWS; i++) {
			enum stage a = back ? rows[i].next : rows[i].stage;
			enum stage b = back ? rows[i].stage : rows[i].next;

			if (set >> a & 1)
				set |= 1u << b;
		}
	}
	return set;
}

/* weigh() puts it to `again` by itself. */
Test(stages, all_come_to_an_end)
{
	cr_assert_eq(reached(STAGE_alone, true), (1u << STAGES) - 1);
	cr_assert_eq(reached(STAGE_alone, false) | reached(STAGE_again, false),
		     (1u << STAGES) - 1);
}

Test(stages, a_user_can_end_each)
{
	for (unsigned s = 0; s < STAGES; s++) {
		bool ends = s == STAGE_alone;

		for (unsigned i = 0; i < ROWS; i++)
			ends |= rows[i].stage == s && rows[i].event == STAGE_aborted_happens;
		cr_assert(ends, "stage %u", s);
	}
}
