/*
 * Which way a call takes.  A role is a table: for every call and tier the address that the
 * gate jumps to.  On the short way the call is made in place; on the told way, a leader's,
 * then written down (record/tell.c), and on the asked way looked at before that; the long way
 * comes to dispatch().  Which call takes
 * which is the role's affair: roles/long_way.c.
 */
#include <asm/unistd.h>

#include "engine/abi/locks.h"
#include "engine/abi/table.h"
#include "engine/core/must.h"
#include "engine/inside/gate/above.h"
#include "engine/inside/gate/memory.h"
#include "engine/inside/gate/thread.h"
#include "engine/inside/gate/ways.h"
#include "engine/inside/locks/lock_gate.h"

/* Index: the low 16 bits of a call's number; 0 is "unknown". */
uint16_t slot_map[65536];
LEADS void *role_handlers[TIER_COUNT][SLOT_CALLS];
/* Behind the note of when it came (gate.S). */
LEADS void *way_handlers[TIER_COUNT][SLOT_CALLS];
static bool lasting[SLOT_CALLS];
LEADS static uint8_t ways[SLOT_CALLS];	/* enum way: those that each takes, unless it is hushed */
LEADS static bool hushable[SLOT_CALLS], hushed;
LEADS uint8_t quiet_on;
struct row_calls row_calls;
LEADS row_told **told_calls;
told_clock *told_clocks[3];
struct above above;

static const uint16_t known_calls[] = {
#define SYSCALL(nr, ...) nr,
#include "engine/abi/syscalls.def"
#undef SYSCALL
};

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

_Static_assert(sizeof(role_handlers[0]) == 4096 && sizeof(way_handlers[0]) == 4096,
	       "gate.S: the net's table stands behind");
_Static_assert(offsetof(struct row_calls, ask) == 8192, "gate.S: ROW_ASK");
_Static_assert(COUNT(known_calls) < SLOT_CALLS, "each call has a slot");
_Static_assert(SLOT_CALLS <= UINT16_MAX, "slots fit slot_map");
_Static_assert(SEAM_HERE + 1 < SLOT_CALLS, "what the lock gate asks has a slot");

void slots_fill(void)
{
	for (unsigned i = 0; i < COUNT(known_calls); i++) {
		/* No number has two rows, or is one that the lock gate calls by. */
		MUST(!slot_map[known_calls[i]] && (known_calls[i] < LOCK_CALLS ||
						   known_calls[i] > SEAM_HERE));
		if (known_calls[i] + 1 < SLOT_CALLS)
			slot_map[known_calls[i]] = (uint16_t)(known_calls[i] + 1);
	}
}

void way_lasting(unsigned slot)
{
	MUST(slot < SLOT_CALLS);
	lasting[slot] = true;
}

static void handlers_set(unsigned slot, char *patch, char *net)
{
	extern char time_patch[], time_net[];

	MUST(slot < SLOT_CALLS);
	way_handlers[TIER_PATCH][slot] = patch;
	way_handlers[TIER_NET][slot] = net;
	role_handlers[TIER_PATCH][slot] = lasting[slot] ? time_patch : patch;
	role_handlers[TIER_NET][slot] = lasting[slot] ? time_net : net;
}

static void handlers_choose(unsigned slot, enum way way)
{
	extern char pass_patch[], pass_net[], slow_patch[], slow_net[], tell_patch[], tell_net[];
	extern char ask_patch[], ask_net[];

	switch (way) {
	case WAY_SHORT:
		handlers_set(slot, pass_patch, pass_net);
		break;
	case WAY_LONG:
		handlers_set(slot, slow_patch, slow_net);
		break;
	case WAY_TOLD:
		handlers_set(slot, tell_patch, tell_net);
		break;
	case WAY_ASKED:
		handlers_set(slot, ask_patch, ask_net);
		break;
	}
}

static void way_take(unsigned slot)
{
	handlers_choose(slot, hushed && hushable[slot] ? WAY_SHORT : (enum way)ways[slot]);
}

void way_set(unsigned slot, enum way way)
{
	MUST(slot < SLOT_CALLS);
	ways[slot] = (uint8_t)way;
	way_take(slot);
}

void way_hushable(unsigned slot, bool may)
{
	MUST(slot < SLOT_CALLS);
	hushable[slot] = may;
}

void ways_hush(bool hush)
{
	hushed = hush;
	for (unsigned slot = 0; slot < SLOT_CALLS; slot++)
		if (hushable[slot])
			way_take(slot);
}

bool ways_are_hushed(void)
{
	return hushed;
}

void way_calls(unsigned slot, row_told *told, row_told *asked, row_ask *ask, bool threads)
{
	MUST(slot < SLOT_CALLS && slot);
	row_calls.told[slot] = told;
	row_calls.asked[slot] = asked;
	row_calls.ask[slot] = ask;
	row_calls.threads[slot] = threads;
}

/* Rows whose calls are looked at where there are threads, and only then. */
static void ways_threads(enum way way)
{
	enum way was = way == WAY_ASKED ? WAY_TOLD : WAY_ASKED;

	for (unsigned slot = 0; slot < SLOT_CALLS; slot++)
		if (row_calls.threads[slot] && ways[slot] == was)
			way_set(slot, way);
}

void ways_untold(void)
{
	for (unsigned slot = 0; slot < SLOT_CALLS; slot++)
		if (ways[slot] == WAY_TOLD || ways[slot] == WAY_ASKED)
			way_set(slot, WAY_LONG);
}

LEADS uint32_t tell_off;

void tell_begin(void)
{
	told_calls = tell_off ? row_calls.asked : row_calls.told;
}

void tell_stop(enum tell_off why)
{
	__atomic_fetch_or(&tell_off, why, __ATOMIC_RELAXED);
	__atomic_store_n(&told_calls, row_calls.asked, __ATOMIC_RELAXED);
	if (why == TELL_THREADS)
		ways_threads(WAY_ASKED);
}

void tell_go(enum tell_off why)
{
	/* Where there are threads, that bit stays. */
	if (!__atomic_and_fetch(&tell_off, ~(uint32_t)why, __ATOMIC_RELAXED))
		__atomic_store_n(&told_calls, row_calls.told, __ATOMIC_RELAXED);
	if (why == TELL_THREADS)
		ways_threads(WAY_TOLD);
}

bool in_short_call(uint64_t rip)
{
	extern char gate_patch_saved[], gate_patch_after[], gate_net_saved[], gate_net_after[];

	return (rip >= (uint64_t)gate_patch_saved && rip <= (uint64_t)gate_patch_after) ||
	       (rip >= (uint64_t)gate_net_saved && rip <= (uint64_t)gate_net_after);
}
