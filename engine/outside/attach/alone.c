/*
 * From company back to being alone, so that a server can be left that has had followers (the way
 * there: late/company.c).  What it has got for them is of two kinds.  Jumps in its lock functions
 * and clocks, the streams and the restartable sequence are put back by detach.c and the inside's
 * steps, as all else is.  But a thread may be in a lock function that the lock gate has called, and
 * would come back to it: for hours, if it waits for work.
 *
 * A leader that nobody follows is quiet (inside/record/quiet.c): its lock gate is two jumps, and
 * leaves nothing on a stack.  So all threads are made to stand once, as for a takeover; each
 * process is quiet from there on, and who sleeps in a condition comes out of it as if woken by
 * chance, and goes to its next wait by itself (inside/roles/park.c).  Who waits for a mutex or a
 * semaphore since before that stays: the server is not left then, and all is as it was.  Who that
 * is each process says of its threads as they stand, by libc's tables: on a stack there are words
 * that lock functions have left behind.
 *
 * One that was led by another meanwhile is not left: what leads is a copy, with other ids than it
 * believes in, or has been given its descriptors by one.
 */
#include <string.h>

#include "engine/abi/area.h"
#include "engine/abi/brief.h"
#include "engine/abi/locks.h"
#include "engine/outside/attach/alone.h"
#include "engine/outside/foam/foam_task.h"
#include "engine/outside/kernel/process.h"
#include "engine/outside/late/rows.h"
#include "engine/outside/monitor/say.h"
#include "engine/outside/monitor/versions.h"
#include "engine/outside/patch/hook.h"
#include "engine/outside/session/memory.h"
#include "engine/outside/start/image.h"
#include "engine/outside/takeover/takeover.h"
#include "engine/outside/takeover/takeover_parts.h"

#define STAND_US	20000	/* of the leader's time, for its threads to come to stand */
#define JUMP_NEAR	0xe9

static bool is_followed(const struct monitor *m)
{
	for (unsigned i = 0; i < m->versions; i++)
		if (i != m->leader && m->version[i].state != VERSION_ENDED)
			return true;
	return m->logs || foam_task_any();
}

const char *alone_barred(struct monitor *m, const char **hint)
{
	*hint = "mve stop ends it";
	if (m->past.pause[PAUSE_takeover].times)
		return "another has led in its place";
	if (m->failed)
		return "mve has failed in it";
	*hint = "try again";
	if (takeover_any(m))
		return "a takeover is under way";
	*hint = "mve drop ends a follower, mve record --stop a recording";
	return is_followed(m) ? "it has followers, or is recorded" : NULL;
}

bool alone_begin(struct monitor *m)
{
	struct version *leader = leading(m);
	char why[WHY_MAX] = "its threads have stood";
	struct straggler late;
	bool stands;

	leader->loud_ms = 0;
	__atomic_store_n(&leader->brief->loud, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&leader->brief->leave, 1, __ATOMIC_RELAXED);
	/* Who does not stand is seen where it is, and all of it is done again. */
	stands = leader_stands(m, leader, STAND_US, &late);
	unpark(m, leader->index);
	if (!stands)
		straggler_say(&late, leader, why, sizeof(why));
	say_log("attach", "%s: to be alone: %s", m->session.name, why);
	return stands;
}

void alone_end(struct monitor *m)
{
	__atomic_store_n(&leading(m)->brief->leave, 0, __ATOMIC_RELAXED);
}

static bool any_led(const struct guest *g)
{
	int32_t tid[AREA_THREADS];
	bool led = memory_read(g->memory, g->base + inside_image()->led_tids, tid, sizeof(tid));

	for (unsigned i = 0; i < AREA_THREADS && !led; i++)
		for (unsigned k = 0; tid[i] && k < g->crowd.n; k++)
			led |= tid[i] == g->crowd.stander[k].tid;
	return led;
}

bool alone_is_led(const struct guest *g)
{
	uint8_t led = 1;

	return memory_read(g->memory, g->base + inside_image()->locks_led, &led, 1) || led ||
	       any_led(g);
}

/* Where a function's first instructions are, on its board, as the lock gate is told it. */
static bool is_original(const struct guest *g, uint64_t word)
{
	static const uint8_t head[] = { 0xb8 }, lea[] = { 0x4c, 0x8d, 0x1d };
	uint8_t board[HOOK_ORIGINAL];

	_Static_assert(HOOK_ORIGINAL >= 8, "what a board begins with (abi/locks.h)");
	return !memory_read(g->memory, word - sizeof(board), board, sizeof(board)) &&
	       !memcmp(board, head, sizeof(head)) && !memcmp(board + 5, lea, sizeof(lea));
}

bool alone_is_stale(const struct guest *g, uint64_t word)
{
	const struct inside_image *im = inside_image();

	return (word - (g->base + im->stack_from) < im->stack_to - im->stack_from &&
		word != g->base + im->lock_once) || is_original(g, word);
}

/* It is about to jump to a board, perhaps from between two functions. */
static bool at_jump(const struct guest *g, uint64_t rip)
{
	uint8_t is = 0;

	return !memory_read(g->memory, rip, &is, 1) && is == JUMP_NEAR;
}

bool alone_passes(const struct guest *g, uint64_t rip)
{
	const struct inside_image *im = inside_image();

	return rip - (g->base + im->own_from) < im->own_to - im->own_from || at_jump(g, rip);
}
