/*
 * Opening, dropping and restoring.  A checkpoint is an epoch greater than all tags, a mark in
 * the log, and a copy of the stack that stands.  Those that lie within it have greater epochs
 * and later marks; dropping one leaves its entries to the one around it.
 *
 * An epoch is a byte.  When they run over, the tags are given back to the kernel and those
 * that are open are numbered anew: each region is then saved once more, which is no loss but of
 * room, for the log is undone from its end.
 */
#include <errno.h>
#include <sys/mman.h>
#include "engine/checkpoint/runtime/heap.h"
#include "engine/checkpoint/runtime/stacks.h"
#include "engine/checkpoint/runtime/maps.h"
#include "engine/checkpoint/ways/pages.h"
#include "engine/checkpoint/ways/ways.h"

union own_pages checkpoint_own __attribute__((aligned(4096))) = {
	{ .rollback = { .sign = ROLLBACK_SIGN, .version = ROLLBACK_VERSION } }
};
union tables_pages checkpoint_tables __attribute__((aligned(4096)));

_Static_assert(ROLLBACK_OFFSET == 2048 && SEAM_OFFSET == 2560 && sizeof(struct rollback) <= 512,
	       "their names");
__asm__(".globl	checkpoint_state, checkpoint_seam, mve_checkpoint_epoch, mve_checkpoint_rollback\n"
	".hidden checkpoint_state, checkpoint_seam\n"
	".set	checkpoint_state, checkpoint_own\n"
	".set	mve_checkpoint_epoch, checkpoint_own\n"
	".set	mve_checkpoint_rollback, checkpoint_own + 2048\n"
	".set	checkpoint_seam, checkpoint_own + 2560\n"
	".type	mve_checkpoint_epoch, @object\n"
	".size	mve_checkpoint_epoch, 1\n"
	".type	mve_checkpoint_rollback, @object\n"
	".size	mve_checkpoint_rollback, 512");

static void epochs_renew(void)
{
	tags_wipe();
	state->counts.wipes++;
	state->last = 0;
	for (int i = 0; i < state->depth; i++)
		state_tables->levels[i].epoch = ++state->last;
}

static uint8_t epoch_next(void)
{
	if (state->last == EPOCH_LAST)
		epochs_renew();
	MUST(state->last < EPOCH_LAST);
	return ++state->last;
}

/* The stack of who opened the outermost one is saved at each; another's would not be. */
static int other_thread(const struct jump *jump)
{
	if (state->depth && jump->rsp - state->stack_low >= state->stack_room)
		return fail(EPERM, "another thread has opened the checkpoint around it");
	return 0;
}

/* What is refused before anything has changed. */
static int may_open(const struct jump *jump)
{
	int error = setup();

	if (error)
		return error;
	if (state->depth == MVE_CHECKPOINT_DEPTH)
		return fail(EMFILE, "as many checkpoints are open as can be");
	if (state->shared > SHARED_MAX)
		return fail(E2BIG, "it shares more mappings with processes than can be known");
	if (state->lost)
		return fail(state->lost, "the checkpoint around it is lost");
	return other_thread(jump);
}

/* What one request has needed, as a login does, others need not keep: at times all goes back, and
 * comes again for who needs it. */
static void trim(void)
{
	MUST(state->hot == 0);
	log_trim();
	frames_trim();
}

static void outermost(const struct jump *jump)
{
	uintptr_t end = stack_end(jump->rsp, &state->stack_low);

	state->stack_room = end - state->stack_low;
	state->stacks = 0;
	frames_opener();
	log_begin();
	if (state->last == EPOCH_LAST)
		trim();
}

/* It is the newest: nobody needs what is in memory that has come since. */
static void newest(const struct level *level)
{
	state->changed_old = level->changed;
	state->heap_new = level->heap_new;
	state->heap_room = level->heap_room;
}

int checkpoint_open(const struct jump *jump)
{
	struct level *level = &state_tables->levels[state->depth];
	int error = may_open(jump);

	if (error)
		return error;
	if (state->depth == 0)
		outermost(jump);
	level->jump = *jump;
	level->mark = state->depth ? state->head : 0;
	state->turn++;
	level->changed = state->changed;
	level->heap_new = heap_used();
	level->heap_room = heap_room();
	level->error = errno;
	level->looked = 1;
	frames_save(level);
	error = stack_save(level);
	if (!error)
		error = way->open(level);
	if (error)
		return error;
	level->epoch = epoch_next();
	newest(level);
	state->epoch = level->epoch;
	if (state->depth++ == 0)
		ahead_save();
	log_stack(state->stack_low, level->stack, level->stack + level->stack_size);
	state->counts.opened++;
	state->why = "";
	return 0;
}

/* The newest is closed; what is around it is the newest. */
static struct level *level_pop(void)
{
	struct level *level = &state_tables->levels[--state->depth];

	MUST(state->depth >= 0 && state->depth < MVE_CHECKPOINT_DEPTH);
	state->stacks = level->stack_mark;
	state->frames_live = level->frames_live;
	state->epoch = state->depth && !state->lost ? level[-1].epoch : 0;
	state->watch = state->epoch && !level[-1].looked;
	if (state->depth == 0)
		state->lost = 0;
	else
		newest(level - 1);
	return level;
}

/* The newest is not restored; with the outermost, what was put off is done. */
static void level_end(void)
{
	way->drop(level_pop());
	if (state->depth)
		return;
	maps_commit();
	heap_trim(0);
}

int mve_checkpoint_drop(void)
{
	if (state->depth == 0)
		return fail(ENOENT, "no checkpoint is open");
	level_end();
	state->counts.dropped++;
	return 0;
}

static int may_restore(void)
{
	int error;

	if (state->depth == 0)
		return fail(ENOENT, "no checkpoint is open");
	pages_own();
	error = state->lost;
	if (error == 0)
		return 0;
	level_end();
	state->counts.lost++;
	return fail(error, state->lost_why);
}

/* On a stack of its own (jump.S). */
int checkpoint_restore(void)
{
	struct level *level;
	uintptr_t used = heap_used();
	int error = may_restore();

	if (error)
		return error;
	level = level_pop();
	way->restore(level);
	if (state->depth == 0)
		heap_trim(used);
	maps_undo(level->changed);
	stack_restore(level);
	frames_restore(level);
	state->counts.restored++;
	errno = level->error;
	checkpoint_jump(&level->jump, 1);
}

int mve_checkpoint_depth(void)
{
	return state->depth;
}

const char *mve_checkpoint_why(void)
{
	return state->why ? state->why : "";
}

void mve_checkpoint_counts(struct mve_checkpoint_counts *counts)
{
	*counts = state->counts;
	counts->regions += state->head;
}
