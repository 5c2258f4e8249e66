/*
 * Standing still.  Before another version takes over, every thread of the leader
 * stops where no call is half told: in the program's own code, or at a call that
 * has not been made.  The monitor asks by a bit in conduct and a SIGSYS to each
 * thread.
 *
 * What comes then is the monitor's to say: the process is killed, or goes on as
 * the follower of its successor, or (the other was not ready) goes on leading.
 * Without a monitor a thread that was not replaced goes on, and so does one whose
 * successor cannot lead any more (heir.c): the server comes first.
 */
#include <asm/unistd.h>
#include <linux/errno.h>
#include <linux/futex.h>
#include <linux/signal.h>
#include <linux/time_types.h>

#include "engine/abi/waits.h"
#include "engine/core/must.h"
#include "engine/core/pairs.h"
#include "engine/core/ring.h"
#include "engine/inside/gate/block.h"
#include "engine/inside/gate/gate.h"
#include "engine/inside/gate/memory.h"
#include "engine/inside/gate/request.h"
#include "engine/inside/gate/thread.h"
#include "engine/inside/lanes/host.h"
#include "engine/inside/lanes/rest.h"
#include "engine/inside/lanes/sleep.h"
#include "engine/inside/locks/before.h"
#include "engine/inside/locks/conditions.h"
#include "engine/inside/locks/locks.h"
#include "engine/inside/order/apart.h"
#include "engine/inside/order/baton.h"
#include "engine/inside/record/quiet.h"
#include "engine/inside/rewind/stand.h"
#include "engine/inside/roles/modules.h"
#include "engine/inside/update/offline.h"
#include "engine/inside/roles/park.h"
#include "engine/inside/roles/twin.h"
#include "engine/inside/rules/overdue.h"
#include "engine/inside/signal/leave.h"
#include "engine/inside/signal/ucontext.h"
#include "engine/inside/state/early.h"
#include "engine/inside/takeover/heir.h"
#include "engine/inside/takeover/standing.h"

#define CONDITION_SIZE	48	/* of a pthread_cond_t */
#define PUT_OFF_MAX	3	/* the monitor asks again */
#define FILES_WAITED	100	/* who has them open so long keeps them */

enum demoted { DEMOTED_NOT, DEMOTED_BUSY, DEMOTED_DONE };

LEADS static uint32_t demoted;	/* enum demoted: this process has given its descriptors up */

/*
 * A thread that still followed what was led before is told what all the others are told.
 * One that an allocator has made has no twin.
 */
static void thread_demote(struct thread *t)
{
	apart_forget(t);
	if (t->has_lane) {
		MUST(t->lane < LANES);
		reader_attach(&t->reader, &streams, t->lane);
		t->reader.cursor->owner = t->tid;
		t->reader.cursor->pid = t->pid;
	}
	t->following = t->has_lane;
}

/* All stand: whoever goes on first must find that the others have yet to follow. */
void threads_demote(struct thread *t)
{
	struct thread *o;

	for (uint32_t i = 0; (o = block_next(&i)); i++)
		/* The parent of a vfork stands elsewhere. */
		if (o->pid == t->pid && o->slot && !o->in_vfork &&
		    CONSUME(slot_parked, &o->slot->parked))
			thread_demote(o);
}

/* From leader to follower: the successor has our descriptors. */
static void demote(struct thread *t)
{
	struct __kernel_timespec look = { 0, PAUSE_WOKEN_NS };
	uint32_t was = DEMOTED_NOT;
	bool first = BOTH_IF(demoted, &demoted, &was, DEMOTED_BUSY);

	if (first) {
		modules_follow(t);
		/* Nobody goes on, and perhaps leads, before all that is done. */
		PUBLISH(demoted, &demoted, DEMOTED_DONE);
		word_wake(&demoted);
	}
	/* Milliseconds, where the kernel's table of descriptors grows; and others want to run. */
	while (CONSUME(demoted, &demoted) == DEMOTED_BUSY)
		OWN4(__NR_futex, &demoted, FUTEX_WAIT, DEMOTED_BUSY, &look);
	if (!t->following)
		thread_demote(t);
	early_drain();
}

/* The process leads (again): the next demotion gives up what it has then. */
void park_reset(struct thread *t)
{
	(void)t;
	PUBLISH(demoted, &demoted, DEMOTED_NOT);
}

/*
 * A twin of this process is wanted.  It is made of what the kernel writes down where a thread
 * is in the handler of a knock.
 */
static void stand_more(struct thread *t)
{
	if (t->busy)
		stand_come(t);
	else
		stand(t);
}

/* `call`: what it is to make again, as a slot number; 0: it is in the program's own code. */
static void park(struct thread *t, uint32_t call)
{
	t->slot->parked_at = call;
	standing_begin(t);
	/* All that this thread has told is published. */
	PUBLISH(slot_parked, &t->slot->parked, 1);
	company_come(t);
	while (standing_wanted() && (monitor_alive() || !heir_fails(t))) {
		uint32_t seen = change_now();

		if (stand_wanted())
			stand_more(t);
		else
			change_wait(seen, PAUSE_WOKEN_NS);
		/* The same, once more, for a worker may have written there. */
		PUBLISH(slot_parked, &t->slot->parked, 1);
	}
	standing_end(t);
	if (streams.conduct && (heir_is() || twin_is_new()))
		demote(t);
	bytes_zero(t->slot->untold, sizeof(t->slot->untold));
	/* It follows now, if it does. */
	PUBLISH(slot_parked, &t->slot->parked, 0);
}

/*
 * The loader is reading a file.  A version that gives its descriptors up would take that
 * away, and the program end; a successor would have one too many.  It is done soon, and we
 * are asked again.
 */
static bool loader_reads(struct thread *t)
{
	if (!t->own_files || t->following)
		return false;
	if (++t->files_waited <= FILES_WAITED)
		return true;
	t->own_files = t->files_waited = 0;
	return false;
}

/* One of its words; 0 is no condition. */
static bool is_of_condition(uint64_t futex, uint64_t condition)
{
	return condition && futex >= condition && futex < condition + CONDITION_SIZE;
}

/* What it asks of the futex; a wake must be made. */
static bool is_wait(uint64_t op)
{
	uint32_t command = (uint32_t)op & (uint32_t)FUTEX_CMD_MASK;

	return command == FUTEX_WAIT || command == FUTEX_WAIT_BITSET;
}

/* As if the instruction that comes next were a call: that is how frames are walked. */
static struct caller_place caller_at(const struct thread *t, const struct gregs *r)
{
	return (struct caller_place){ gate_place(t, r) + 1, r->rsp, r->rbp };
}

/*
 * The lock gate's frame would be in the way when the monitor leaves the program: who sleeps in a
 * condition comes out as if woken by chance (locks.c), and its next wait is the program's own.
 */
static bool wait_ends(const struct thread *t, bool sleeps)
{
	return sleeps && (t->following || brief()->leave);
}

/* A leader that is about to be left is one that nobody follows. */
static void leave_begin(struct thread *t, struct caller_place at)
{
	if (!brief()->leave || !t->has_lane || t->following || stream_followed(t))
		return;
	quiet_begin(t);
	before_left(t, at);
}

static bool is_until(uint64_t op)
{
	return ((uint32_t)op & (uint32_t)FUTEX_CMD_MASK) == FUTEX_WAIT_BITSET;
}

static bool is_alone(void)
{
	return !streams.conduct || quiet_is();
}

/* Who is in a hooked function since before that was hooked comes back to the lock gate. */
static void late_note(struct thread *t, struct caller_place at, uint64_t futex)
{
	if (before_awaited(t) && !t->following && !brief()->leave)
		before_note(t, at, futex);
}

/* A call that time ends, on the short way: the rest of its time is due to it. */
static bool call_is_timed(struct thread *t, const struct gregs *r)
{
	const uint64_t args[CALL_ARGS] = { r->rdi, r->rsi, r->rdx, r->r10, r->r8, r->r9 };
	long nr = call_pending(t, r);

	if (nr < 0 || !rest_is(nr, args))
		return false;
	rest_cut(t, nr, args);
	return true;
}

/*
 * A thread that waits for a condition may follow when it goes on: then nobody will
 * wake it, since followers do not wait for conditions (lock_gate.S).  It is found in
 * the futex call that it sleeps in, or soon will be; that call then times out.
 */
static void park_in_program(struct thread *t, struct ucontext_raw *uc)
{
	uint64_t wait = lock_wait_within(uc->regs.rsp);
	long cut = call_cut(t, &uc->regs);
	bool alone = is_alone();
	bool waits = call_pending(t, &uc->regs) == __NR_futex && is_wait(uc->regs.rsi);
	bool sleeps = waits && is_of_condition(uc->regs.rdi, wait);
	bool earnest = wait && !t->following;
	bool timed;

	if (wait && !sleeps && t->put_off < PUT_OFF_MAX) {
		t->put_off++;
		return;
	}
	t->put_off = 0;
	if (loader_reads(t))
		return;
	company_note(t, uc->regs.rip, caller_at(t, &uc->regs));
	timed = call_is_timed(t, &uc->regs);
	/* Before any of the others goes on, and may wake this one; a follower has its mark. */
	if (earnest)
		lock_wait_goes_on(t, wait, !sleeps);
	park(t, (uint32_t)(cut + 1));
	leave_begin(t, caller_at(t, &uc->regs));
	if (earnest && !t->following && !wait_ends(t, sleeps))
		lock_wait_is_out(t);
	late_note(t, caller_at(t, &uc->regs), waits ? uc->regs.rdi : 0);
	/* A follower hears of signals from the stream: this one was never told. */
	if (t->following && t->deferred) {
		t->deferred = 0;
		uc->mask = t->held_mask;
	}
	/* Locks sleep by FUTEX_WAIT, and bear no time-out. */
	if (wait_ends(t, sleeps) || (waits && before_sleeps(t) && is_until(uc->regs.rsi))) {
		call_end(&uc->regs, -ETIMEDOUT);
	} else if (timed && !brief()->leave) {
		call_again_timed(t, &uc->regs);
	} else {
		call_again(t, &uc->regs);
		/* It sleeps as followers do; or is told of, and was on a way that tells nothing. */
		if (t->following || alone != is_alone())
			gate_leave(t, &uc->regs);
	}
	offline_begin(t);
}

/* The monitor's signal has come. */
void park_come(struct thread *t, struct ucontext_raw *uc)
{
	/*
	 * The signal that it held is about to come, by what is noted of it; or one of which
	 * followers are told that it comes with the last: we are asked again.
	 */
	if (t->at_boundary || (t->entered && uc->regs.rip == t->entered))
		return;
	MUST(!(t->deferred && t->pending));
	if (!t->busy) {
		park_in_program(t, uc);
		return;
	}
	t->park = 1;
	if (t->deferred) {
		t->deferred = 0;
		overdue_end(t);
		t->pending = 1;
	} else if (!t->pending) {	/* no signal of the program's waits: none may come now */
		boundary_ask(t, uc);
	}
}

/*
 * The same in the inside: a version that has followed before sleeps on the long way (ways_follow),
 * one that is alone where a call has trapped.
 */
static void park_led(struct thread *t, struct caller_place at)
{
	struct frame *f = &t->frame;
	uint64_t wait = lock_wait_within(f->rsp);
	bool waits = t->call_slot == __NR_futex + 1 && (t->restart || f->rax == (uint64_t)-EINTR) &&
		     is_wait(f->rsi);
	bool sleeps = waits && is_of_condition(f->rdi, wait);

	if (wait)
		lock_wait_goes_on(t, wait, !sleeps);
	park(t, t->restart ? t->call_slot : 0);
	leave_begin(t, at);
	late_note(t, at, waits ? f->rdi : 0);
	if (t->following)
		bytes_zero(t->held_info, SIGINFO_SIZE);
	else if (wait && !wait_ends(t, sleeps))
		lock_wait_is_out(t);
	if (wait_ends(t, sleeps) || (waits && before_sleeps(t) && is_until(f->rsi))) {
		f->rax = (uint64_t)-ETIMEDOUT;
		t->restart = 0;
	}
	offline_begin(t);
}

/* At the boundary; true: there was nothing but this. */
bool park_at_exit(struct thread *t)
{
	struct caller_place at = { t->frame.site_end, t->frame.rsp, t->frame.rbp };
	bool led = !t->following;

	/* Followers have been told that a signal comes here: first it does.  We are asked again. */
	if (t->park && led && t->announced && info_int(t->held_info, INFO_SIGNO)) {
		t->park = 0;
		return false;
	}
	if (t->park && loader_reads(t))
		t->park = 0;
	if (t->park) {
		t->park = 0;
		company_note(t, t->frame.resume, at);
		if (led)
			park_led(t, at);
		else
			park(t, t->restart ? t->call_slot : 0);
	}
	if (info_int(t->held_info, INFO_SIGNO))
		return false;
	turn_begin(t);
	t->pending = 0;
	OWN4(__NR_rt_sigprocmask, SIG_SETMASK, &t->held_mask, 0, 8);
	turn_end(t);
	baton_resume(t);
	return true;
}
