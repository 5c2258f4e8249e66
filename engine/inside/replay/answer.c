/*
 * A call is answered from its event: result, memory, and what the kernel would have
 * done besides.
 */
#include <asm/unistd.h>
#include <linux/errno.h>
#include <linux/fcntl.h>
#include <linux/signal.h>
#include <linux/stat.h>
#include <linux/wait.h>
#include <linux/time.h>

#include "engine/core/must.h"
#include "engine/core/ring.h"
#include "engine/core/walk.h"
#include "engine/inside/calls/ids_call.h"
#include "engine/inside/calls/landlock.h"
#include "engine/inside/calls/segments.h"
#include "engine/inside/crash/crash.h"
#include "engine/inside/fd/files.h"
#include "engine/inside/fd/follow_epoll.h"
#include "engine/inside/fd/inner.h"
#include "engine/inside/fd/mirror.h"
#include "engine/inside/fd/numbers.h"
#include "engine/inside/fd/table.h"
#include "engine/inside/gate/request.h"
#include "engine/inside/gate/thread.h"
#include "engine/inside/order/baton.h"
#include "engine/inside/order/edges.h"
#include "engine/inside/order/follow_signal.h"
#include "engine/inside/order/order.h"
#include "engine/inside/order/wait.h"
#include "engine/inside/replay/answer.h"
#include "engine/inside/replay/elastic.h"
#include "engine/inside/replay/follow_clock.h"
#include "engine/inside/rules/apart_meet.h"
#include "engine/inside/sample/inputs.h"
#include "engine/inside/sample/scope.h"
#include "engine/inside/signal/sigcalls.h"
#include "engine/inside/signal/ucontext.h"
#include "engine/inside/state/children.h"
#include "engine/inside/state/ids.h"
#include "engine/inside/state/limits.h"
#include "engine/inside/state/state.h"
#include "engine/inside/state/take.h"

static void epoll_note(struct thread *t, struct walk *w)
{
	struct reader r = t->reader;	/* only looks: the walk follows */
	uint8_t bytes[16] = { 0 };	/* the section: its length, the epoll_event */

	_Static_assert(sizeof(bytes) == sizeof(uint32_t) + 12, "follow_epoll.c's EVENT_SIZE");

	r.ahead = true;
	/* A removal has none. */
	if (step_kind(w, 3) == STEP_BYTES && !follow_payload(&r, bytes, sizeof(bytes)))
		return;
	epoll_changed(w, bytes + 4);
}

static void follower_gone(struct thread *t, struct numbers n)
{
#define KEPT(name, leader, follower, ...) follower(t, n);
#include "engine/inside/fd/kept.def"
}

static void follower_copied(int64_t from, int64_t to)
{
#define KEPT(name, gone, follower_gone, leader, follower) follower(from, to);
#include "engine/inside/fd/kept.def"
}

void follow_gone(struct thread *t, const struct walk *w)
{
	struct numbers n;

	MUST(t->following);
	if (call_has(w->desc, TRAITS_GONE) && numbers_gone(w, &n))
		follower_gone(t, n);
}

static void given(void *what, int32_t fd)
{
	const struct walk *const *w = what;

	take_opened(fd);
	files_opened((*w)->desc, (*w)->args, fd);
}

/* Descriptors that the call has given: what they are, as far as it is known. */
static void given_note(const struct walk *w)
{
	numbers_given(w, given, &w);
	if (call_has(w->desc, TRAIT_GATHERS))
		set_made(w->result);
	if (numbers_copied(w))
		follower_copied((int32_t)w->args[0], w->result);
	if (call_has(w->desc, TRAIT_INNER))
		inner_made(w);
	if (call_has(w->desc, TRAIT_ACCEPTS))
		file_accepted((long)w->args[0], w->result);
}

void follow_note_first(struct thread *t, struct walk *w, int64_t result)
{
	if (result < 0)
		return;
	w->result = result;
	if (call_has(w->desc, TRAIT_REGISTERS))
		epoll_note(t, w);
	follow_gone(t, w);
}

/* A child's end, as waitid tells it; with WNOWAIT it will be told again. */
static void waited(struct thread *t, const struct walk *w)
{
	void (*ended)(struct thread *t, int32_t vpid, int32_t status) =
		w->args[3] & WNOWAIT ? follow_peeked : follow_reaped;
	uint8_t info[SIGINFO_SIZE] = { 0 };
	int32_t status;

	if (!w->args[2] && w->args[0] == P_PID && !w->result)
		ended(t, (int32_t)w->args[1], 0);
	if (!w->args[2] || target_in(info, w->args[2], sizeof(info)))
		return;
	status = info_int(info, INFO_STATUS);
	switch (info_int(info, INFO_CODE)) {
	case CLD_EXITED:
		ended(t, info_int(info, INFO_PID), (status & 0xff) << 8);
		break;
	case CLD_KILLED:
	case CLD_DUMPED:
		ended(t, info_int(info, INFO_PID), status & 0x7f);
		break;
	}
}

/* What the follower must remember of a call that it did not make. */
static void answer_note(struct thread *t, const struct walk *w, long nr)
{
	int32_t status = 0;

	if (w->result < 0)
		return;
	mirror_note(t, w);
	files_moved(w->desc, w->args);
	given_note(w);
	if (call_has(w->desc, TRAIT_SIGNALS)) {
		crash_sent(t, nr, w->args);
		signal_owe(t, w);
	}
	if (call_has(w->desc, TRAIT_KEPT))
		state_note(t, nr, w->args, w->result);
	if (call_has(w->desc, TRAIT_EPOLL) && !baton_applies(t))
		epoll_answered(w);
	if (call_has(w->desc, TRAIT_CONFINES))
		landlock_note(t, w);
	if (call_has(w->desc, TRAIT_CLOCK))
		clock_note(w, nr);
	switch (nr) {
	case __NR_shmget:
		shm_made(w->args, w->result);
		break;
	case __NR_shmctl:
		shm_changed(w->args);
		break;
	case __NR_waitid:
		waited(t, w);
		break;
	case __NR_wait4:
		if (w->args[1])
			target_in(&status, w->args[1], sizeof(status));
		if (w->result > 0)
			follow_reaped(t, (int32_t)w->result, status);
		break;
	}
}

void answer_turn(struct thread *t, const struct call_desc *d, long result)
{
	struct walk w = { .desc = d, .args = t->frame.arg, .result = result };

	if (t->answered && call_has(d, TRAIT_EPOLL))
		epoll_answered(&w);
}

/* Both versions make the call; what the leader got counts. */
static long both(struct thread *t, const struct call_desc *d, long nr, int64_t leaders)
{
	long own;

	MUST(d->class == CLASS_BOTH && t->following);

	if (nr == __NR_shmat)
		return shm_attach(t, (uint64_t)leaders);
	if (limits_keep(t, nr) || call_has(d, TRAIT_CONFINES))
		return leaders;
	own = nr == __NR_fchdir ? files_chdir((long)t->frame.rdi) : ids_both(t, d, nr);
	if (own == CALL_RESTART)
		own = 0;
	if (leaders < 0 || own < 0 || d->result == KIND_PID)
		return leaders;
	return own;
}

/* What the leader's call wrote is not in the event: the user should know, once. */
static void untold_note(struct thread *t, const struct walk *w)
{
	static uint32_t said;

	if (step_untold(w) && !__atomic_exchange_n(&said, 1, __ATOMIC_RELAXED))
		request_ask(t, REQ_NOTE, NOTE_UNTOLD, (uint64_t)w->desc->nr, w->args[1]);
}

/* The call has its answer. */
long answer_done(struct thread *t, const struct walk *w, long nr)
{
	t->answered = 1;
	answer_note(t, w, nr);
	untold_note(t, w);
	return w->result;
}

/* It could not say what there was before, but has set what there is. */
static bool took_effect(int64_t result)
{
	return result == -EFAULT;
}

/* The event has been taken: what is left to do, and the program's result. */
long follow_told(struct thread *t, struct walk *w, long nr, uint8_t flags)
{
	int64_t result = w->result;

	answer_done(t, w, nr);
	if (boot.runtimes)
		inputs_note(t, w, nr);
	if (w->desc->class == CLASS_BOTH && (result >= 0 || took_effect(result))) {
		t->answered = 0;
		result = both(t, w->desc, nr, result);
	}
	if (flags & EVENT_SIGNAL_NEXT)
		follow_signal_next(t, nr, result);
	return result;
}

/*
 * A runtime's interceptor puts a handler of its own before the program's.  A leader with
 * a runtime restores masks that its runtime has changed.
 */
static uint8_t compared_of(const struct thread *t, long nr)
{
	if (nr == __NR_rt_sigaction && t->intercepted)
		return 0;
	return nr == __NR_rt_sigprocmask && boot.runtimes ? 0 : 0xff;
}

long answer_call(struct thread *t, struct walk *w, const struct event *e, long nr)
{
	int64_t result = e->result;
	struct reader ahead = t->reader;
	struct mismatch m;
	uint8_t flags;

	edge_meet(t, e);
	order_wait_slept(t, e);
	follow_note_first(t, w, result);
	if (!match_memory_but(&t->reader, w, true, compared_of(t, nr), 0, &m)) {
		t->reader = ahead;
		t->mismatch = m;
		return -ENOTUNIQ;
	}
	if (is_stateless() && epoll_is_wait(nr) && wait_is_others(w, e))
		return wait_passed(t);
	/* What this version has closed before. */
	if (epoll_is_wait(nr) && result > 0 && apart_given(t)) {
		if (epoll_all_known())
			w->result = epoll_known(w);
		epoll_ends(w);
	}
	flags = follow_take(t);
	return follow_told(t, w, nr, flags);
}

/*
 * How much a program has room for may go by malloc_usable_size, which a sanitizer
 * answers otherwise: it has room for what came.
 */
bool answer_has_room(const struct event *e, const struct walk *w, long nr)
{
	return boot.runtimes && (nr == __NR_read || nr == __NR_recvfrom) && e->call == nr &&
	       e->result <= (int64_t)w->args[2];
}
