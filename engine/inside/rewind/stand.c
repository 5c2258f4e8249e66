/*
 * Standing for an image: before a follower's process is copied all its threads stand where
 * each can be made anew in the copy.  A thread stands in the handler of a knock, whose frame
 * holds all that the kernel and the processor keep for it there; the rest is its stance.
 *
 * In the program's own code a knock finds it anywhere.  In ours it comes by itself, where it
 * waits for what others do (stand_look), or is found in front of a call that has not begun.
 * Who does neither soon holds up no more than the image, which is given up for this time.
 */
#include <asm/unistd.h>
#include <linux/errno.h>
#include <linux/prctl.h>
#include <linux/signal.h>

#include "engine/abi/knock.h"
#include "engine/abi/waits.h"
#include "engine/core/must.h"
#include "engine/core/pairs.h"
#include "engine/inside/gate/block.h"
#include "engine/inside/gate/gate.h"
#include "engine/inside/gate/memory.h"
#include "engine/inside/gate/request.h"
#include "engine/inside/lanes/host.h"
#include "engine/inside/lanes/sleep.h"
#include "engine/inside/rewind/anew.h"
#include "engine/inside/rewind/image.h"
#include "engine/inside/rewind/stand.h"

struct stance *stances[AREA_THREADS];
static uint8_t comes[AREA_THREADS];	/* by the knock of its own */

bool stand_comes(const struct thread *t)
{
	return comes[t->index];
}

/* A knock of its own, by which the kernel writes down all that it holds. */
bool stand_come(struct thread *t)
{
	uint8_t info[128];

	MUST(t == thread_self() && t->busy && !comes[t->index]);
	bytes_zero(info, sizeof(info));
	*(int32_t *)info = SIGSYS;
	*(int32_t *)(info + 8) = KNOCK_CODE;
	comes[t->index] = 1;
	OWN4(__NR_rt_tgsigqueueinfo, t->pid, t->tid, SIGSYS, info);
	comes[t->index] = 0;
	return true;
}

static void stance_note(struct stance *s)
{
	__asm__ volatile("rdfsbase %0" : "=r"(s->fs));
	OWN3(__NR_get_robust_list, 0, &s->robust, &s->robust_len);
	OWN2(__NR_prctl, PR_GET_TID_ADDRESS, &s->clear_tid);
	OWN2(__NR_prctl, PR_GET_NAME, s->name);
}

/* Of two that come at once one sees the other. */
static bool all_stand(const struct thread *t)
{
	const struct thread *o;

	for (uint32_t i = 0; (o = block_next(&i)); i++)
		if (o->pid != t->pid || !LOOK(stance, &stances[o->index]))
			return false;
	return true;
}

/* Who copies the process: its first thread, by whom the kernel knows it; else any one. */
static bool is_first(const struct thread *t)
{
	const struct thread *o, *any = NULL;

	for (uint32_t i = 0; (o = block_next(&i)); i++) {
		if (o->tid == o->pid)
			return o == t;
		any = any ? any : o;
	}
	return any == t;
}

/* Whoever finds that all stand says so. */
static uint32_t stood;

static void stood_say(const struct thread *t)
{
	if (!all_stand(t))
		return;
	PUBLISH_BY(stood, fetch_add, &stood, 1);
	word_wake(&stood);
}

/*
 * For the end of it, and who copies for all to stand: it alone is woken for that.  One that has
 * ended meanwhile says nothing.
 */
static void stand_step(struct thread *t, uint32_t image)
{
	uint32_t change = change_now(), seen = CONSUME(stood, &stood);
	struct word words[2] = { { &images()->stand, image }, { &stood, seen } };
	bool first = is_first(t);

	if (!first || !all_stand(t) || !image_take(t, image))
		words_sleep(words, 1 + first, change, PAUSE_WOKEN_NS);
}

/* Of a leader, which parks, the monitor says who does not come to this. */
static void stance_announce(struct thread *t, struct stance *s)
{
	if (t->slot->parked)
		PUBLISH(slot_parked, &t->slot->parked, PARKED_WRITTEN);
	ANNOUNCE(stance, &stances[t->index], s);
}

void stand(struct thread *t)
{
	uint32_t image = __atomic_load_n(&images()->stand, __ATOMIC_RELAXED);
	struct stance s = { .anew = false };

	MUST(t == thread_self() && !stances[t->index]);
	if (!image)
		return;
	stance_note(&s);
	if (context_save(&s.context))
		thread_is_anew(thread_self());
	else
		stance_announce(t, &s);
	stood_say(t);
	while (__atomic_load_n(&images()->stand, __ATOMIC_RELAXED) == image && monitor_alive())
		stand_step(t, image);
	ANNOUNCE(stance, &stances[t->index], NULL);
}
