/*
 * Asking the monitor.  The thread writes its request into its slot, rings the
 * session's doorbell (a futex that the monitor waits on) and sleeps on its own
 * slot until the answer is there.  A monitor that has died holds nobody: the
 * kernel marks its robust futex, and every question is answered with -ENOSYS.
 */
#include <asm/unistd.h>
#include <linux/errno.h>
#include <linux/futex.h>
#include <linux/time_types.h>

#include "engine/inside/thread.h"

#define ANSWER_LOOK_NS	50000000	/* look after the monitor this often */

static struct area *area(void)
{
	return (struct area *)boot.area;
}

bool monitor_alive(void)
{
	uint32_t word = __atomic_load_n(&area()->alive.word, __ATOMIC_ACQUIRE);

	return word && !(word & FUTEX_OWNER_DIED);
}

void request_ring(void)
{
	__atomic_fetch_add(&area()->doorbell, 1, __ATOMIC_RELEASE);
	OWN3(__NR_futex, &area()->doorbell, FUTEX_WAKE, 1);
}

void request_post(struct thread *t, uint32_t kind, uint64_t a, uint64_t b,
			 uint64_t c)
{
	struct request *r = &t->slot->request;

	r->kind = kind;
	r->args[0] = a;
	r->args[1] = b;
	r->args[2] = c;
	r->args[3] = boot.boards;
	r->args[4] = boot.image;
	r->args[5] = t->has_lane ? t->lane : LANES;
	/* Release: the monitor reads the fields after it sees RS_ASKED. */
	__atomic_store_n(&r->state, RS_ASKED, __ATOMIC_RELEASE);
	request_ring();
}

/* Waits until the request has left RS_ASKED; false when the monitor is dead. */
static bool request_wait(struct request *r)
{
	struct __kernel_timespec look = { 0, ANSWER_LOOK_NS };

	/* Acquire: pairs with the monitor's release when it answers. */
	while (__atomic_load_n(&r->state, __ATOMIC_ACQUIRE) == RS_ASKED) {
		if (!monitor_alive())
			return false;
		OWN4(__NR_futex, &r->state, FUTEX_WAIT, RS_ASKED, &look);
	}
	return true;
}

/* After request_post: waits for the answer. */
long request_end(struct thread *t)
{
	struct request *r = &t->slot->request;
	long reply = -ENOSYS;

	if (request_wait(r))
		reply = r->reply;
	__atomic_store_n(&r->state, RS_IDLE, __ATOMIC_RELAXED);
	return reply;
}

/* Asks and waits for the answer; -ENOSYS when there is no monitor. */
long request_ask(struct thread *t, uint32_t kind, uint64_t a, uint64_t b,
		 uint64_t c)
{
	if (!monitor_alive() || t->slot->request.tid != t->tid)
		return -ENOSYS;
	request_post(t, kind, a, b, c);
	return request_end(t);
}

/* Tells, and goes on as soon as the monitor has heard. */
void request_tell(struct thread *t, uint32_t kind, uint64_t a, uint64_t b)
{
	request_ask(t, kind, a, b, 0);
}
