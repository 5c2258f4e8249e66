/*
 * A function's place has a head that says where the function stands on the thread's own stack.  One
 * that was left by a jump or an exception has not ended its place: the next function that begins
 * stands above it or where it stood, and ends it.  Nothing else need be known of setjmp, of
 * exceptions, of vfork.
 *
 * Who does not stand on the thread's own stack (a handler with one of its own, a coroutine) has no
 * place here, for the order in which it ends is not that of the stack.
 *
 * A handler may come at any point: what is being made is `low` before it is `top`, and a handler's
 * places lie below both, and are ended when it returns.
 */
#include "engine/checkpoint/runtime/stacks.h"
#include <sys/mman.h>
#include "engine/checkpoint/runtime/kernel.h"
#include "engine/checkpoint/runtime/save.h"
#include "engine/checkpoint/runtime/state.h"

#define PAGE	4096ul

struct frame {
	uintptr_t sp;		/* the function's frame; what returned to above it has left it */
	struct frame *before;
	uintptr_t low;		/* what it was before */
	uint64_t pad[5];
};

_Static_assert(sizeof(struct frame) == 64, "arrays are aligned");

/* No top: none is had. */
static __thread struct {
	struct frame *volatile top;
	volatile uintptr_t low;
	uintptr_t begin;
} own __attribute__((tls_model("local-exec")));

static int mapped;

static void map(void)
{
	long got = KERNEL_6(SYS_mmap, FRAMES_AT, FRAMES_END - FRAMES_AT, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE,
			    -1, 0);

	mapped = got == FRAMES_AT ? 1 : -1;
	if (mapped > 0)
		state->reserved += FRAMES_END - FRAMES_AT;
}

void frames_begin(int place)
{
	struct frame *first;

	if (!mapped)
		map();
	if (mapped < 0)
		return;
	own.begin = FRAMES_AT + (uintptr_t)place * FRAMES_ROOM;
	first = (struct frame *)(own.begin + FRAMES_ROOM - REGION);
	first->sp = ~0ul;
	own.low = (uintptr_t)first;
	own.top = first;
}

void frames_end(void)
{
	own.top = NULL;
}

static uintptr_t lowest(void)
{
	return own.low < (uintptr_t)own.top ? own.low : (uintptr_t)own.top;
}

static inline void end(struct frame *frame)
{
	struct frame *before = frame->before;

	own.low = frame->low;
	own.top = before;
}

void *mve_checkpoint_frame(const void *here, size_t size)
{
	uintptr_t sp = (uintptr_t)here, low;
	struct frame *new;

	if (!own.top || sp - own_stack.low >= own_stack.room)
		return NULL;
	while (own.top->sp <= sp)
		end(own.top);
	new = (struct frame *)((lowest() - size - sizeof(*new)) & -REGION);
	if ((uintptr_t)new - own.begin >= FRAMES_ROOM)
		return NULL;
	if (state->epoch && *tag_of((uintptr_t)new) < state->epoch)
		mve_checkpoint_save(new);
	low = own.low;
	own.low = (uintptr_t)new;
	new->sp = sp;
	new->before = own.top;
	new->low = low;
	own.top = new;
	return new + 1;
}

__attribute__((preserve_most)) void mve_checkpoint_frame_end(void *given)
{
	if (given)
		end((struct frame *)given - 1);
}

/* What another thread, who opened the last ones, has here is its own: it is not saved ahead. */
void frames_opener(void)
{
	if (state->frames_place != own.begin)
		state->forgets = 1;
	state->frames_place = own.begin;
}

void frames_save(struct level *level)
{
	level->frames_live = state->frames_live;
	level->frames_top = own.top;
	level->frames_low = own.low;
	if (state->depth == 0 || lowest() < state->frames_live)
		state->frames_live = lowest();
}

void frames_restore(const struct level *level)
{
	own.low = level->frames_low;
	own.top = level->frames_top;
}

void frames_trim(void)
{
	if (own.top)
		KERNEL_3(SYS_madvise, own.begin, (lowest() & -PAGE) - own.begin, MADV_DONTNEED);
}

SAVES int frames_dead(uintptr_t at)
{
	if (at - state->frames_place < FRAMES_ROOM)
		return at < state->frames_live;
	return own.top && at - own.begin < FRAMES_ROOM;
}
