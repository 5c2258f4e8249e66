/*
 * What a leader's clock has said is told on the program's stack (gate/vdso.S), where it is one
 * event and nothing else.  It is written by the row's recorder, as each call's is.
 *
 * Nothing here calls another function: a return address of ours, left on the program's stack,
 * would be taken for a place where the program is within us.
 */
#include "engine/abi/rows.h"

#include "engine/core/host.h"
#include "engine/core/inline.h"
#include "engine/inside/gate/memory.h"

/* The value is ours until it is told: it can be read. */
static INLINE uint8_t *value_copy(uint8_t *to, uint64_t from, uint64_t len)
{
	for (uint64_t i = 0; i < len / 8; i++)
		((uint64_t *)(void *)to)[i] = ((const uint64_t *)from)[i];
	return to + len;
}
#undef RECORD_COPY
#define RECORD_COPY value_copy

#include "engine/inside/gate/above.h"
#include "engine/inside/record/clocks.h"
#include "engine/inside/record/told.h"

/* The number of its event; 0: a clock has ticked, or may have. */
static INLINE uint64_t clock_seq(struct thread *t, const struct clock_call *c,
				 const struct call_desc *d, uint32_t second)
{
	const struct walk asked = { .desc = d, .args = c->arg };
	const uint32_t now = CONSUME(ticks, &ticks);
	uint64_t seq;

	if (!tell_off)
		return ++lead_seq_now;
	if (tick_shows(t, now) || !tick_is_none(t, &asked, d->nr, second))
		return 0;
	t->away = 0;
	t->ticks.goes_on = 0;
	seq = seq_draw();
	/* A number too many is in nobody's way. */
	return now == CONSUME(ticks, &ticks) ? seq : 0;
}

/* `args`: as the program gave them, but for where the value is now. */
static INLINE uint64_t clock_led(const struct clock_call *c, const struct call_desc *d,
			    const uint64_t *args, int64_t result, uint32_t second)
{
	const struct walk w = { .desc = d, .args = args, .result = result };
	struct thread *t = thread_self();
	struct event *e;
	unsigned early;
	uint8_t *end;
	uint64_t seq;

	if (t->tells != LANE_TELLS || tell_off & TELL_NONE || !writer_is_free(&t->writer))
		return CLOCK_LONG;
	seq = clock_seq(t, c, d, second);
	if (__builtin_expect(!seq, 0))
		return CLOCK_LONG;
	e = cell_begin(&t->writer, result, seq);
	end = record_brief(e, 0, writer_end(&t->writer), &w, d, &early);
	if (__builtin_expect(!end, 0))
		return CLOCK_LONG;
	writer_publish(&t->writer, e, cell_head(d, 0), early, end);
	t->counts[TIER_PATCH * SLOT_CALLS + d->nr + 1]++;
	t->counts[COUNT_ANSWERED * SLOT_CALLS + d->nr + 1]++;
	return __builtin_expect(sleepers_differ(t), 0) ? (uint64_t)sleepers_told : 0;
}

static uint64_t clock_gettime_told(struct clock_call *c)
{
	const uint64_t args[CALL_ARGS] = { c->arg[0], (uint64_t)c->value };

	return clock_led(c, &row_clock_gettime, args, 0, (uint32_t)c->value[0]);
}

static uint64_t gettimeofday_told(struct clock_call *c)
{
	const uint64_t args[CALL_ARGS] = { (uint64_t)c->value };

	return clock_led(c, &row_gettimeofday, args, 0, (uint32_t)c->value[0]);
}

static uint64_t time_told(struct clock_call *c)
{
	const uint64_t args[CALL_ARGS] = { 0 };

	return clock_led(c, &row_time, args, (int64_t)c->value[0], (uint32_t)c->value[0]);
}

void clocks_prepare(void)
{
	told_clocks[VDSO_CLOCK_GETTIME] = clock_gettime_told;
	told_clocks[VDSO_GETTIMEOFDAY] = gettimeofday_told;
	told_clocks[VDSO_TIME] = time_told;
}
