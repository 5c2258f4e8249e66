/*
 * The image of a follower's process: a copy by fork, which sleeps until the monitor says
 * that it is to go on in the place of the process that it is of, or kills it.
 *
 * A follower holds nothing in the kernel, so that its memory and its threads are all of it;
 * where it has read the streams up to the monitor keeps while all stand.  An image that goes
 * on is first copied once more, for what has differed may differ again; then each thread
 * is made anew of its stance (anew.c).
 */
#include <asm/unistd.h>
#include <linux/errno.h>
#include <linux/futex.h>
#include <linux/signal.h>
#include <linux/time.h>
#include <linux/time_types.h>
#include <linux/wait.h>

#include "engine/abi/waits.h"
#include "engine/core/must.h"
#include "engine/core/pairs.h"
#include "engine/inside/gate/above.h"
#include "engine/inside/gate/gate.h"
#include "engine/inside/gate/memory.h"
#include "engine/inside/gate/request.h"
#include "engine/inside/gate/thread.h"
#include "engine/inside/lanes/host.h"
#include "engine/inside/rewind/anew.h"
#include "engine/inside/rewind/image.h"
#include "engine/inside/rewind/shared.h"
#include "engine/inside/rewind/stand.h"

#define REFUSED_MOST	12	/* 4096 events between two */
#define OWN_COPIES	4	/* kept, killed before, and two that the kernel may be late with */
#define SLEEP_S		1	/* then it looks whether there is a monitor */

static uint32_t tried;		/* the last image that this process was asked for */
static uint32_t events_left;	/* before it is asked again, for it was refused */

/*
 * Those that are our children, each until it is collected: the one that is kept when another is
 * made is killed behind that, and collected when there is to be a third.
 */
static int32_t own_copies[OWN_COPIES];
static int32_t parent;		/* that the process had when its image was taken */

/* Collects those that have ended, or are none of ours; room for another, or NULL. */
static int32_t *own_room(void)
{
	int32_t *room = NULL;

	for (int i = 0; i < OWN_COPIES; i++) {
		int32_t *own = &own_copies[i];

		if (*own && OWN4(__NR_wait4, *own, 0, WNOHANG | __WALL, 0))
			*own = 0;
		room = *own ? room : own;
	}
	return room;
}

/* They are another's; each page that is written is copied. */
static void own_forget(void)
{
	for (int i = 0; i < OWN_COPIES; i++)
		if (own_copies[i])
			own_copies[i] = 0;
}

/*
 * The monitor is the parent of its child's copy; of others it is the process itself, whose
 * program hears nothing of that: no signal, and its calls wait for children of another kind.
 */
static long image_copy(void)
{
	int32_t *own;
	long pid;

	if (OWN0(__NR_getppid) == images()->monitor)
		return process_copy(0);
	own = own_room();
	if (!own)
		return -EAGAIN;
	pid = OWN2(__NR_clone, 0, 0);
	if (pid > 0)
		*own = (int32_t)pid;
	else if (!pid)
		own_forget();
	return pid;
}

/* Its own children of that kind are none of the program's. */
void images_lead(struct thread *t)
{
	(void)t;
	for (int i = 0; i < OWN_COPIES; i++) {
		if (!own_copies[i])
			continue;
		OWN2(__NR_kill, own_copies[i], SIGKILL);
		OWN4(__NR_wait4, own_copies[i], 0, __WALL, 0);
		own_copies[i] = 0;
	}
}

/* The copies are its parent's. */
void images_fork(struct thread *t)
{
	(void)t;
	own_forget();
	if (parent)
		parent = 0;
}

/* --- going on ------------------------------------------------------------------------ */

void image_moved(struct thread *t, int32_t was)
{
	int32_t is = above.moved(t, was);

	/* Of a twin whoever the kernel says is its parent may be none of its version. */
	parent = is != was || parent ? is : 0;
}

/* Here it is again where it was, and the monitor knows who it is now. */
static void image_go_on(struct thread *t, long copy)
{
	threads_anew(t);
	image_moved(t, parent);
	if (!shared_put_back())
		OWN1(__NR_exit_group, 1);
	if (request_ask(t, REQ_IMAGE, IMAGE_WOKE, copy > 0 ? (uint64_t)copy : 0, 0))
		OWN1(__NR_exit_group, 1);
	threads_go();
}

/* Returns in the copy that goes on. */
static void image_sleep(struct thread *t, uint32_t image)
{
	struct __kernel_timespec sleep = { SLEEP_S, 0 };

	for (;;) {
		uint32_t seen = CONSUME(image_wake, &images()->wake);
		uint32_t copy = images()->copy;
		long pid;

		if (!monitor_alive())
			OWN1(__NR_exit_group, 0);
		if (seen != image) {
			OWN4(__NR_futex, &images()->wake, FUTEX_WAIT, seen, &sleep);
			continue;
		}
		pid = image_copy();
		if (pid) {
			image_go_on(t, pid);
			return;
		}
		image = copy;
	}
}

/* --- is lost -------------------------------------------------------------------------- */

void image_lost(struct thread *t, enum image_loss loss, uint64_t lock)
{
	static bool refused[IMAGE_LOSSES];

	MUST(t->following);
	if (!images()->chunks || __atomic_load_n(&refused[loss], __ATOMIC_RELAXED))
		return;
	if (request_ask(t, REQ_IMAGE, IMAGE_LOST, lock, loss) == -EPERM)
		__atomic_store_n(&refused[loss], true, __ATOMIC_RELAXED);
}

/* --- taking it ----------------------------------------------------------------------- */

bool image_take(struct thread *t, uint32_t image)
{
	long pid;

	MUST(stances[t->index] && image);
	if (tried == image)
		return false;
	tried = image;
	if (!t->following)
		return above.copy(t, image);
	/* Nobody of the version changes what its processes share, from here on. */
	if (request_ask(t, REQ_IMAGE, IMAGE_STANDS, 0, image))
		return true;
	parent = parent ? parent : (int32_t)OWN0(__NR_getppid);
	pid = shared_keep() ? image_copy() : -ENOMEM;
	if (!pid) {
		image_sleep(t, image);
		return true;
	}
	shared_drop();
	if (request_ask(t, REQ_IMAGE, IMAGE_MADE, pid > 0 ? (uint64_t)pid : 0, image) && pid > 0)
		OWN2(__NR_kill, pid, SIGKILL);
	leads_own();
	return true;
}

/* What is against it may be over soon: after some events it is asked again. */
static bool put_off(struct thread *t)
{
	uint32_t left = __atomic_load_n(&events_left, __ATOMIC_RELAXED);

	if (left)
		__atomic_store_n(&events_left, left - 1, __ATOMIC_RELAXED);
	t->reader.cursor->counted = 0;
	return left;
}

/* Of all its processes: the image that they have together holds the ring for all. */
static uint32_t *chunks_left(void)
{
	return &((struct area *)boot.area)->image_chunks;
}

static void image_ask(struct thread *t, uint32_t chunks)
{
	static uint32_t refused;
	bool again = request_ask(t, REQ_IMAGE, IMAGE_DUE, 0, 0) == -EAGAIN;

	MUST(chunks);
	refused = again ? refused + (refused < REFUSED_MOST) : 0;
	events_left = refused ? 1u << refused : 0;
	__atomic_store_n(chunks_left(), again ? 0 : chunks, __ATOMIC_RELAXED);
}

void image_read(struct thread *t)
{
	uint32_t chunks = images()->chunks, left = __atomic_load_n(chunks_left(), __ATOMIC_RELAXED);

	if (chunks && left - 1 >= chunks && put_off(t))
		return;
	t->reader.cursor->counted = t->reader.chunk + 1;
	if (!chunks)
		return;
	/* Two may count the last one: it is due then, too. */
	if (left - 1 < chunks)
		__atomic_fetch_sub(chunks_left(), 1, __ATOMIC_RELAXED);
	else
		image_ask(t, chunks);
	if (!__atomic_load_n(chunks_left(), __ATOMIC_RELAXED))
		t->reader.cursor->counted = 0;
}
