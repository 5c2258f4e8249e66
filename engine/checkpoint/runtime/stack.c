/*
 * The standing stack of whoever opens a checkpoint, from the frame that opened it to its upper
 * end, is copied whole: mostly it is less than a page.  So nothing that the program stores
 * into its own frames needs a check.
 *
 * Other threads do not go back, so what a thread writes to its own stack is never saved.  Where
 * that is, a thread asks of libc when it begins (pass/known.def: pthread_create).  A stack that
 * libc does not know (makecontext's, a signal's own) is refused: nobody could say where it ends.
 */
#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/resource.h>
#include "engine/checkpoint/runtime/heap.h"
#include "engine/checkpoint/runtime/library.h"
#include "engine/checkpoint/runtime/stacks.h"
#include "engine/checkpoint/runtime/state.h"

/* What the kernel leaves between the first stack and the rest, at least. */
#define STACK_GAP	(128ul << 20)

extern void *__libc_stack_end;

__thread struct own_stack own_stack;
__thread unsigned heap_place;

static void own_known(uintptr_t low, uintptr_t end)
{
	own_stack.room = end - low;
	own_stack.low = low;
}

/* The first thread's: as far down as its limit lets it grow, and never to what is mapped. */
void own_first(void)
{
	uintptr_t end = (uintptr_t)__libc_stack_end;
	struct rlimit limit;

	if (getrlimit(RLIMIT_STACK, &limit) || limit.rlim_cur > STACK_GAP)
		limit.rlim_cur = STACK_GAP;
	own_known(end - limit.rlim_cur, end);
	heap_place = 1;
	frames_begin(0);
}

static void own_ask(void)
{
	pthread_attr_t attr;
	void *low;
	size_t size;

	if (pthread_getattr_np(pthread_self(), &attr))
		return;
	if (pthread_attr_getstack(&attr, &low, &size) == 0)
		own_known((uintptr_t)low, (uintptr_t)low + size);
	pthread_attr_destroy(&attr);
}

struct start {
	void *(*function)(void *);
	void *argument;
};

/* A place among the stacks; which one, when it has ended or there is none, -1. */
static int stack_enter(void)
{
	for (int n = 0; n < THREADS_MAX; n++) {
		uintptr_t none = 0;

		if (!__atomic_compare_exchange_n(&state_tables->stack[n].begin, &none,
						 own_stack.low, 0, __ATOMIC_RELAXED,
						 __ATOMIC_RELAXED))
			continue;
		state_tables->stack[n].end = own_stack.low + own_stack.room;
		state_tables->stack[n].calls = &library_calls;
		if (n >= state->stacks_most)
			state->stacks_most = n + 1;
		return n;
	}
	return -1;
}

/* libc ends the thread. */
static void stack_leave(void *place)
{
	library_called();
	heap_place = 0;
	frames_end();
	state_tables->stack[(intptr_t)place].begin = 0;
	__atomic_fetch_sub(&state->stacks_known, 1, __ATOMIC_RELAXED);
}

int stack_within(uintptr_t begin, uintptr_t end)
{
	for (int n = 0; n < THREADS_MAX; n++) {
		uintptr_t low = state_tables->stack[n].begin;

		if (low && low < end && state_tables->stack[n].end > begin)
			return 1;
	}
	return 0;
}

static void *started(void *told)
{
	struct start start = *(struct start *)told;
	void *got = NULL;
	intptr_t place;

	__libc_free(told);
	own_ask();
	place = stack_enter();
	MUST(place >= 0);
	heap_place = (unsigned)place + 2;
	frames_begin((int)place + 1);
	pthread_cleanup_push(stack_leave, (void *)place);
	got = start.function(start.argument);
	pthread_cleanup_pop(1);
	return got;
}

int mve_thread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*function)(void *),
		      void *argument)
{
	struct start *start = __libc_malloc(sizeof(*start));
	int error;

	if (!start || __atomic_fetch_add(&state->stacks_known, 1, __ATOMIC_RELAXED) >= THREADS_MAX)
		return EAGAIN;
	*start = (struct start){ function, argument };
	error = thread_create(thread, attr, started, start);
	if (error) {
		__atomic_fetch_sub(&state->stacks_known, 1, __ATOMIC_RELAXED);
		__libc_free(start);
	}
	return error;
}

uintptr_t stack_end(uintptr_t sp, uintptr_t *low)
{
	if (!own_stack.room)
		own_ask();
	if (sp - own_stack.low >= own_stack.room)
		return *low = 0;
	*low = own_stack.low;
	return own_stack.low + own_stack.room;
}

int stack_save(struct level *level)
{
	uintptr_t low, end = stack_end(level->jump.rsp, &low);

	if (!end)
		return fail(ENOTSUP, "it is opened on a stack that libc does not know");
	level->stack = level->jump.rsp;
	level->stack_size = end - level->stack;
	level->stack_mark = state->stacks;
	if (level->stack_size > STACKS_MAX - state->stacks)
		return fail(ENOSPC, "the stacks that stand are too large");
	memcpy((char *)STACKS_AT + state->stacks, (void *)level->stack, level->stack_size);
	state->stacks += level->stack_size;
	return 0;
}

void stack_restore(const struct level *level)
{
	memcpy((void *)level->stack, (char *)STACKS_AT + level->stack_mark, level->stack_size);
}
