/*
 * Updates of a prepared server (engine/update/), as its process sees them.
 *
 * One thread of the program's is there for them alone.  It says so before there is company, and
 * has no lane: what it does is told to nobody.  By UPDATE_CALL it tells the monitor how far its
 * threads are.
 *
 * A twin that is to become another build is *off-line* first: none of its threads reads its lane,
 * calls are its own.  It holds no descriptor, and gets none but of files that it reads; what would
 * act on the world is refused.  When all threads stand in the new build they follow from where
 * their lanes were at the copy, and what they have opened meanwhile is closed.
 */
#include <asm/unistd.h>
#include <linux/errno.h>
#include <linux/fcntl.h>
#include <linux/futex.h>
#include <linux/time_types.h>

#include "engine/abi/table.h"
#include "engine/abi/brief.h"
#include "engine/core/must.h"
#include "engine/core/pairs.h"
#include "engine/core/walk.h"
#include "engine/inside/calls/ids_call.h"
#include "engine/inside/calls/special.h"
#include "engine/inside/crash/crash.h"
#include "engine/inside/fd/files.h"
#include "engine/inside/fd/follow_epoll.h"
#include "engine/inside/gate/block.h"
#include "engine/inside/gate/gate.h"
#include "engine/inside/gate/memory.h"
#include "engine/inside/gate/request.h"
#include "engine/inside/lanes/host.h"
#include "engine/inside/lanes/sleep.h"
#include "engine/inside/lanes/window.h"
#include "engine/inside/record/form.h"
#include "engine/inside/update/offline.h"

static bool process_is_offline(void)
{
	return streams.conduct &&
	       update_order_of(__atomic_load_n(&brief()->update.order, __ATOMIC_RELAXED)) ==
	       UPDATE_CHANGE;
}

static uint32_t changing;	/* the order by which this process is off-line, or was */
static uint32_t changed;	/* futex: the one after which all follow */

/* A library's thread: it goes on where its leader's did, once all the others do. */
static void wait_for_others(uint32_t order)
{
	struct __kernel_timespec look = { 0, PAUSE_WOKEN_NS };
	uint32_t seen;

	while ((seen = CONSUME(update_changed, &changed)) != order && monitor_alive())
		OWN4(__NR_futex, &changed, FUTEX_WAIT_PRIVATE, seen, &look);
}

void offline_begin(struct thread *t)
{
	uint32_t order;

	if (!t->has_lane || !process_is_offline())
		return;
	MUST(t == thread_self() && t->lane < LANES);
	order = __atomic_load_n(&brief()->update.order, __ATOMIC_RELAXED);
	__atomic_store_n(&changing, order, __ATOMIC_RELAXED);
	if (t->update != UPDATE_THREAD_POINT) {
		wait_for_others(order);
		return;
	}
	t->update = UPDATE_THREAD_OFFLINE;
	t->has_lane = t->following = 0;
}

/* By the thread that serves updates, while all the others stand in the new build. */
static void follow_all(const struct thread *t)
{
	struct thread *o;

	OWN3(__NR_close_range, 0, ~0u, 0);
	for (uint32_t i = 0; (o = block_next(&i)); i++) {
		if (o->pid != t->pid || o->update != UPDATE_THREAD_OFFLINE)
			continue;
		o->update = UPDATE_THREAD_NOT;
		o->following = 1;
		PUBLISH(thread_has_lane, &o->has_lane, 1);
	}
	PUBLISH(update_changed, &changed, __atomic_load_n(&changing, __ATOMIC_RELAXED));
	OWN3(__NR_futex, &changed, FUTEX_WAKE_PRIVATE, 1 << 30);
}

/* --- what is asked ------------------------------------------------------------------- */

static long hello(struct thread *t)
{
	long result;

	if (t->has_lane || boot.role != ROLE_SOLO)
		return -EBUSY;	/* it was begun with followers: its threads are known to them */
	result = request_ask(t, REQ_UPDATE, UPDATE_HELLO, t->frame.rsi, t->frame.rdx);
	if (result)
		return result;
	t->update = UPDATE_THREAD_OURS;
	return (long)&brief()->update;
}

static long is_new(struct thread *t)
{
	long result;

	if (!process_is_offline())
		return -EINVAL;
	result = request_ask(t, REQ_UPDATE, UPDATE_IS_NEW, 0, 0);
	if (!result)
		follow_all(t);
	return result;
}

/* What the new build reads of a registration that was made by the old one. */
static long registration(struct thread *t, uint64_t what)
{
	uint64_t at = t->frame.rsi;
	struct update_epoll e;

	if (target_in(&e, at, sizeof(e)))
		return -EFAULT;
	if (what == UPDATE_EPOLL_OWN) {
		e.own = epoll_data_own(e.set, e.kernels);
		return target_out(at, &e, sizeof(e)) ? -EFAULT : 0;
	}
	if (!process_is_offline())
		return -EINVAL;
	return epoll_data_is(e.set, e.fd, e.kernels, e.own) ? 0 : -ENOMEM;
}

/* The last call that was, by its name: mostly why what comes next does. */
static const struct call_desc *refused;

static long refused_tell(uint64_t to)
{
	char name[UPDATE_NAME] = "";

	if (!refused || !process_is_offline())
		return -ENOENT;
	_Static_assert(sizeof(refused->name) <= sizeof(name), "a name fits");
	bytes_copy(name, refused->name, sizeof(refused->name));
	return target_out(to, name, sizeof(name)) ? -EFAULT : 0;
}

static long asked(struct thread *t)
{
	uint64_t what = t->frame.rdi;

	if (!request_may(t))
		return -ENOSYS;
	if (what == UPDATE_POINT && t->update != UPDATE_THREAD_OURS) {
		t->update = t->update ? t->update : UPDATE_THREAD_POINT;
		return 0;
	}
	if (what == UPDATE_HELLO)
		return hello(t);
	if (t->update != UPDATE_THREAD_OURS || what >= UPDATE_ASKS)
		return -EPERM;
	if (what == UPDATE_EPOLL_OWN || what == UPDATE_EPOLL_IS)
		return registration(t, what);
	if (what == UPDATE_REFUSED_IS)
		return refused_tell(t->frame.rsi);
	return what == UPDATE_IS_NEW ? is_new(t)
				     : request_ask(t, REQ_UPDATE, what, t->frame.rsi,
						   t->frame.rdx);
}

/* --- off-line ------------------------------------------------------------------------ */

/* It touches nothing but what is the process' own, or only looks. */
static bool is_own(const struct call_desc *d, const uint64_t *args)
{
	if (call_has(d, TRAIT_OPENS))
		return !(files_flags(d, args) & (O_ACCMODE | O_CREAT | O_TRUNC));
	return class_is_harmless(d->class) || call_has(d, TRAIT_RULE_FREE | TRAIT_RULE_PRIVATE);
}

/* What its set-up prints its leader has printed. */
static bool is_words(const struct call_desc *d, const uint64_t *args)
{
	return call_has(d, TRAIT_WRITES) && d->args[2].kind == KIND_SIZE &&
	       (args[0] == 1 || args[0] == 2);
}

static long ended(struct thread *t, long nr)
{
	static const char what[] = "a thread of the new build ended before it came to its point; "
				   "refused there: ";
	char why[sizeof(what) + sizeof(refused->name)];

	bytes_copy(why, what, sizeof(what));
	if (refused)
		bytes_copy(why + sizeof(what) - 1, refused->name, sizeof(refused->name));
	else
		why[sizeof(what) - 1 - (sizeof("; refused there: ") - 1)] = 0;
	place_note_call(t);
	request_ask(t, REQ_UPDATE, UPDATE_FAILS, (uint64_t)why, UPDATE_HERE);
	return serve_special(t, nr);
}

static long call_offline(struct thread *t, long nr)
{
	uint64_t args[CALL_ARGS];
	struct walk w;

	call_walk(t, &w, args, nr);
	if (!w.desc)
		return -ENOSYS;
	if (call_ends(w.desc))
		return ended(t, nr);
	if (is_words(w.desc, args))
		return (long)args[2];
	place_note_call(t);	/* where it is, if it comes to no point */
	crash_offline(t, nr, args);
	if (is_own(w.desc, args))
		return ids_call(t, w.desc, nr);
	refused = w.desc;
	return -EPERM;
}

bool offline_is(const struct thread *t)
{
	return t->update == UPDATE_THREAD_OFFLINE ||
	       (t->update == UPDATE_THREAD_OURS && process_is_offline());
}

long offline_call(struct thread *t, long nr)
{
	return nr == UPDATE_CALL ? asked(t) : call_offline(t, nr);
}
