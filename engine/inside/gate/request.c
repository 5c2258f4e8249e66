/*
 * Asking the monitor.  The thread writes its request into its block, says in its slot
 * that somebody asks, rings the session's doorbell (a futex that the monitor waits on)
 * and sleeps until the monitor has written the answer into the request.  It sleeps on
 * a word of the brief, which nobody but the monitor can change.  A monitor that has
 * died holds nobody: the kernel marks its robust futex, and every question is answered
 * with -ENOSYS.
 */
#include <asm/unistd.h>
#include <linux/errno.h>
#include <linux/futex.h>
#include <linux/time_types.h>

#include "engine/abi/waits.h"
#include "engine/core/must.h"
#include "engine/core/pairs.h"
#include "engine/inside/gate/block.h"
#include "engine/inside/gate/gate.h"
#include "engine/inside/gate/request.h"
#include "engine/inside/gate/thread.h"
#include "engine/inside/lanes/host.h"


static struct area *area(void)
{
	return (struct area *)boot.area;
}

const struct brief *brief(void)
{
	return (const struct brief *)boot.brief;
}

bool monitor_alive(void)
{
	uint32_t word = CONSUME(monitor_alive, &brief()->alive.word);

	return word && !(word & FUTEX_OWNER_DIED);
}

/* All that wait hear it: the bell's thread, and the loop in the middle of a takeover. */
void request_ring(void)
{
	PUBLISH_BY(area_doorbell, fetch_add, &area()->doorbell, 1);
	OWN3(__NR_futex, &area()->doorbell, FUTEX_WAKE, EVERYBODY);
}

/* Where the slot's answers are counted; NULL: the thread has no slot. */
static const uint32_t *answers(const struct thread *t)
{
	uint64_t n = (uint64_t)(t->slot - area()->slot);

	return n < AREA_THREADS ? &brief()->answer[n] : NULL;
}

/* Says that somebody asks here; again and again, for others may write there. */
static void slot_ask(struct thread *t)
{
	uint64_t n = (uint64_t)(t->slot - area()->slot);

	slot_mend(t);
	PUBLISH(slot_asked, &t->slot->asked, RS_ASKED);
	/* The monitor, which takes the bit away before it looks, finds `asked`. */
	PUBLISH_BY(area_asking, fetch_or, &area()->asking[n / 64], 1ull << n % 64);
	request_ring();
}

void request_post(struct thread *t, uint32_t kind, uint64_t a, uint64_t b,
			 uint64_t c)
{
	struct request *r = request_of(t);

	/* A thread asks for one thing at a time. */
	MUST(r->state != RS_ASKED && kind);
	/* Who asks is who sleeps; and its answer is counted somewhere. */
	MUST(t == thread_self() && answers(t));
	r->kind = kind;
	r->args[0] = a;
	r->args[1] = b;
	r->args[2] = c;
	r->args[3] = boot.boards;
	r->args[4] = boot.image;
	r->args[5] = t->has_lane ? lane_known(t) : LANES_ALL;
	r->key = boot.key;
	r->slot = (uint32_t)(t->slot - area()->slot);
	r->seen = __atomic_load_n(answers(t), __ATOMIC_RELAXED);
	r->serial++;
	PUBLISH(request_asked, &r->state, RS_ASKED);
	slot_ask(t);
}

/* The monitor has said that it cannot answer. */
static bool is_refused(const struct request *r, uint32_t word)
{
	return word != r->seen && word & ANSWER_NONE;
}

bool request_over(struct thread *t)
{
	const struct request *r = request_of(t);

	return is_refused(r, CONSUME(brief_answer, answers(t))) ||
	       CONSUME(request_state, &r->state) != RS_ASKED;
}

/* Waits until the request has an answer; false when it gets none. */
static bool request_wait(struct thread *t)
{
	struct __kernel_timespec look = { 0, PAUSE_WOKEN_NS };
	const uint32_t *answer = answers(t);
	struct request *r = request_of(t);

	for (;;) {
		uint32_t word = CONSUME(brief_answer, answer);

		if (CONSUME(request_state, &r->state) != RS_ASKED)
			return true;
		if (is_refused(r, word) || !monitor_alive())
			return false;
		if (request_sleep(__NR_futex, (long)answer, FUTEX_WAIT, word, (long)&look, 0, r) ==
		    -ETIMEDOUT)
			slot_ask(t);
	}
}

void request_drop(struct thread *t)
{
	struct request *r = request_of(t);

	MUST(r->state != RS_IDLE);
	r->state = RS_IDLE;
	__atomic_store_n(&t->slot->asked, RS_IDLE, __ATOMIC_RELAXED);
}

/* After request_post: waits for the answer. */
long request_end(struct thread *t)
{
	struct request *r = request_of(t);
	long reply = request_wait(t) ? r->reply : -ENOSYS;

	r->answered += r->kind != REQ_RUNS;
	request_drop(t);
	return reply;
}

bool request_may(const struct thread *t)
{
	return monitor_alive() && answers(t);
}

bool request_is_free(const struct thread *t)
{
	return request_may(t) && request_of(t)->state == RS_IDLE;
}

/* Asks and waits for the answer; -ENOSYS when there is no monitor. */
long request_ask(struct thread *t, uint32_t kind, uint64_t a, uint64_t b,
		 uint64_t c)
{
	if (!request_may(t))
		return -ENOSYS;
	request_post(t, kind, a, b, c);
	return request_end(t);
}

/*
 * A monitor without a processor looks late: it may find asleep who has come to ask it meanwhile,
 * and has its own answer first.
 */
long request_runs(struct thread *t, const struct thread *o)
{
	const struct request *r = request_of(o);
	uint32_t before = __atomic_load_n(&r->answered, __ATOMIC_RELAXED);
	long runs = request_ask(t, REQ_RUNS, (uint64_t)o->tid, 0, 0);

	return request_awaited(o) || before != __atomic_load_n(&r->answered, __ATOMIC_RELAXED) ?
	       RUNS_CPU : runs;
}

/* Tells, and goes on as soon as the monitor has heard. */
void request_tell(struct thread *t, uint32_t kind, uint64_t a, uint64_t b)
{
	request_ask(t, kind, a, b, 0);
}

void request_room(struct thread *t, enum room what, uint64_t limit)
{
	static uint32_t said;
	uint32_t bit = 1u << what;

	_Static_assert(ROOMS <= 32, "a bit for each room");

	if (!(__atomic_fetch_or(&said, bit, __ATOMIC_RELAXED) & bit))
		request_ask(t, REQ_NOTE, NOTE_ROOM, what, limit);
}
