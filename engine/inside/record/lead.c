/*
 * The leader: each call that is not a version's own affair becomes an event in
 * the thread's lane, after it was made, with what a follower needs to answer and
 * to compare.  Nothing here waits for a follower unless the ring is full.
 *
 * Signals are held to a boundary that the stream knows: before a call whose event
 * is still to come, or behind one whose event says EVENT_SIGNAL_NEXT (t->told).
 */
#include <asm/unistd.h>
#include <linux/errno.h>
#include <linux/fcntl.h>
#include <linux/mman.h>
#include <linux/time.h>

#include "engine/inside/order/locks.h"
#include "engine/inside/signal/signals.h"
#include "engine/inside/stream.h"

/* What each told call goes through is one stretch of code: half of it would be frames. */
#define INLINE inline __attribute__((always_inline))

#define BIRTH_LOOK_NS	50000
#define BIRTH_LOOKS	400

/* Order across the threads of this process. */
static uint64_t seq_now;

static bool stateless;

/* What else is to be done around a call than to tell of it. */
enum care {
	CARE_CLOSES	= 1 << 0,
	CARE_POLLS	= 1 << 1,	/* what epoll knows is looked after: epoll_led */
	CARE_MAKES	= 1 << 2,	/* inner descriptors */
	CARE_KEPT	= 1 << 3,	/* it changes what kept.c notes */
	CARE_WAITS	= 1 << 4,	/* behind it there may be work after a long rest */
	/* These where the process has more than one thread. */
	CARE_GIVES	= 1 << 5,	/* see seq_before */
	CARE_WRITES	= 1 << 6,	/* to what may be an inner descriptor */
	CARE_READS	= 1 << 7,
	CARE_SENDS	= 1 << 8,	/* a signal */
	CARE_SLEEPS	= 1 << 9,	/* for what others do, perhaps, and looks then */
	CARE_NUMBER	= 1 << 10,	/* it is given a descriptor */
	CARE_CLOCK	= 1 << 11,
	CARE_ALIAS	= 1 << 12,	/* it may be answered where it sends from: sent.c */
	CARE_PLACES	= 1 << 13,	/* on files that have mirrors: places.c */
	CARE_RIGHTS	= 1 << 14,	/* it may change what the process may do */
};

#define CARE_ALONE	(CARE_CLOSES | CARE_POLLS | CARE_MAKES | CARE_KEPT | CARE_WAITS | CARE_PLACES | \
			 CARE_RIGHTS)
#define CARE_BEFORE	(CARE_CLOSES | CARE_POLLS | CARE_GIVES)
#define CARE_MADE	(CARE_NUMBER | CARE_MAKES | CARE_PLACES)
#define CARE_ORDER	(CARE_POLLS | CARE_SLEEPS | CARE_READS)

/* What is the same at each call of a number; rows with variants are looked for. */
static struct plan {
	const struct call_desc *desc;	/* NULL: it has variants, or is unknown */
	struct recipe recipe;
	uint16_t care;			/* enum care */
	uint8_t bare;			/* see lead_bare */
	uint8_t plain;			/* nothing but that */
	uint8_t opens;			/* a private file, perhaps */
	uint8_t seam;			/* a request begins with it */
	struct scope_row scope;
} __attribute__((aligned(32))) plans[SLOT_CALLS];

static uint64_t seq_draw(void)
{
	/* Alone, nobody else draws one. */
	return locks_on ? __atomic_add_fetch(&seq_now, 1, __ATOMIC_RELAXED) : ++seq_now;
}

uint64_t lead_seq(void)
{
	return order_now(seq_draw());
}

/*
 * What a call gives to other threads (bytes for a pipe, a registration) is numbered
 * before it is made, what it takes from them after: so whoever got something has
 * the greater number.  A descriptor that is given out was closed by somebody.
 */
static bool gives(const struct call_desc *d)
{
	return d->class == CLASS_EFFECT && d->result != KIND_FD;
}

/*
 * A number for an event, its own or the last one, and whether that shows a tick: none comes
 * between the two.
 */
static INLINE uint64_t seq_shown(struct thread *t, bool own, uint8_t *flags)
{
	uint64_t seq;
	uint32_t now;

	do {
		/* Acquire: pairs with tick_number. */
		now = __atomic_load_n(&ticks, __ATOMIC_ACQUIRE);
		seq = own ? seq_draw() : __atomic_load_n(&seq_now, __ATOMIC_ACQUIRE);
	} while (now != __atomic_load_n(&ticks, __ATOMIC_ACQUIRE));
	*flags = tick_shown(t, now);
	return seq;
}

static uint64_t seq_before(struct thread *t, bool gives)
{
	if (!gives || !locks_on)
		return 0;
	return seq_shown(t, true, &t->shows);
}

static bool is_one_of(const uint16_t *calls, unsigned n, long nr)
{
	for (unsigned i = 0; i < n; i++)
		if (calls[i] == nr)
			return true;
	return false;
}

#define ONE_OF(nr, ...)									\
	is_one_of((const uint16_t[]){ __VA_ARGS__ },					\
		  sizeof((uint16_t[]){ __VA_ARGS__ }) / sizeof(uint16_t), nr)

/* Behind all that has been told so far, but with no number of its own. */
uint64_t lead_seq_shown(struct thread *t, uint8_t *flags)
{
	return order_now(seq_shown(t, false, flags));
}

/* Told in another form: see stat_form. */
static bool is_old_stat(long nr)
{
	return nr >= __NR_stat && nr <= __NR_lstat;
}

static bool sends(long nr)
{
	return ONE_OF(nr, __NR_kill, __NR_tkill, __NR_tgkill, __NR_rt_sigqueueinfo,
		      __NR_rt_tgsigqueueinfo);
}

static bool is_bare(const struct call_desc *d, const struct recipe *r)
{
	return r->known && d->class != CLASS_LIFE && d->class != CLASS_LOCAL &&
	       !call_is_special(d->nr) && !is_old_stat(d->nr) && !sends(d->nr);
}

/* It may take for ever. */
static bool is_waiting(long nr)
{
	return epoll_is_wait(nr) ||
	       ONE_OF(nr, __NR_poll, __NR_ppoll, __NR_select, __NR_pselect6, __NR_accept,
		      __NR_accept4, __NR_read, __NR_readv, __NR_recvfrom, __NR_recvmsg,
		      __NR_recvmmsg, __NR_nanosleep, __NR_clock_nanosleep, __NR_pause, __NR_wait4,
		      __NR_waitid, __NR_rt_sigsuspend, __NR_rt_sigtimedwait, __NR_flock,
		      __NR_connect);
}

/* Of a number: whatever its variants are. */
static unsigned care_of(long nr)
{
	unsigned care = 0;

	care |= kept_is_noted(nr) ? CARE_KEPT : 0;
	care |= realm_may_change(nr) ? CARE_RIGHTS : 0;
	care |= is_waiting(nr) ? CARE_WAITS : 0;
	care |= inner_makes(nr) ? CARE_MAKES : 0;
	care |= call_has_variants(nr) ? CARE_NUMBER | CARE_ALIAS : 0;
	return care;
}

static unsigned care_of_row(const struct call_desc *d)
{
	long nr = d->nr;
	unsigned care = 0;

	care |= nr == __NR_close ? CARE_CLOSES : 0;
	care |= nr == __NR_close || epoll_is_wait(nr) || nr == __NR_epoll_ctl ? CARE_POLLS : 0;
	care |= gives(d) ? CARE_GIVES : 0;
	care |= d->result == KIND_FD ? CARE_NUMBER : 0;
	care |= step_may_alias(d) ? CARE_ALIAS : 0;
	if (ONE_OF(nr, __NR_clock_gettime, __NR_gettimeofday, __NR_time))
		care |= CARE_CLOCK;
	if (ONE_OF(nr, __NR_write, __NR_writev, __NR_sendto, __NR_sendmsg))
		care |= CARE_WRITES;
	if (ONE_OF(nr, __NR_read, __NR_readv, __NR_recvfrom, __NR_recvmsg))
		care |= CARE_READS;
	if (sends(nr))
		care |= CARE_SENDS;
	if (ONE_OF(nr, __NR_poll, __NR_ppoll, __NR_select, __NR_pselect6, __NR_nanosleep,
		   __NR_clock_nanosleep))
		care |= CARE_SLEEPS;
	return care;
}

/* Once, before the program's first call. */
void lead_prepare(void)
{
	stateless = is_stateless();
	if (stateless)
		scope_prepare();
	for (long nr = 0; nr + 1 < SLOT_CALLS; nr++) {
		struct plan *p = &plans[nr + 1];

		p->care = (uint16_t)care_of(nr);
		if (!call_find(nr) || call_has_variants(nr))
			continue;
		p->desc = call_find(nr);
		p->recipe = step_recipe(p->desc);
		p->bare = is_bare(p->desc, &p->recipe) && !seam_may_open(p->desc);
		p->care |= (uint16_t)care_of_row(p->desc);
		p->seam = seam_is_call(nr);
		p->scope = scope_row(p->desc);
		p->opens = private_may_open(nr);
		p->plain = p->bare && !p->seam && !p->opens && !stateless &&
			   !(p->care & CARE_ALIAS);
	}
}

void lead_looks_at_places(void)
{
	for (long nr = 0; nr + 1 < SLOT_CALLS; nr++) {
		const struct call_desc *d = call_find(nr);

		if (d && (d->result == KIND_FD || nr == __NR_fcntl ||
			  ONE_OF(nr, __NR_write, __NR_writev, __NR_close)))
			plans[nr + 1].care |= CARE_PLACES;
	}
}

/* With the number that was drawn for it, or a new one. */
static INLINE struct event *event_begin_at(struct thread *t, enum event_kind kind, long nr,
				    int64_t result, uint64_t seq)
{
	struct event *e = writer_begin(&t->writer, kind, (uint16_t)nr);

	if (!e)
		e = host_begin(&t->writer, kind, (uint16_t)nr);
	e->seq = order_now(seq ? seq : seq_draw());
	e->result = result;
	return e;
}

static struct event *event_begin(struct thread *t, enum event_kind kind, long nr, int64_t result)
{
	return event_begin_at(t, kind, nr, result, 0);
}

static INLINE void event_end(struct thread *t)
{
	if (t->pending) {
		t->writer.open->flags |= EVENT_SIGNAL_NEXT;
		t->told = 1;
	}
	writer_commit(&t->writer);
}

struct event *lead_event(struct thread *t, enum event_kind kind, long nr, int64_t result)
{
	return event_begin(t, kind, nr, result);
}

void lead_event_end(struct thread *t)
{
	writer_commit(&t->writer);
}

void lead_note(struct thread *t, enum event_kind kind, uint64_t value)
{
	event_begin(t, kind, 0, 0)->arg[0] = value;
	writer_commit(&t->writer);
}

static INLINE void call_tell_at(struct thread *t, const struct walk *w, long nr, uint64_t seq,
			 uint8_t flags)
{
	event_begin_at(t, EVENT_CALL, nr, w->result, seq)->flags = flags;
	record_call(&t->writer, w);
	event_end(t);
}

void call_tell(struct thread *t, const struct walk *w, long nr)
{
	call_tell_at(t, w, nr, 0, 0);
}

void lead_told(struct thread *t, long nr, int64_t result)
{
	uint64_t args[CALL_ARGS];
	struct walk w;

	if (!stream_followed(t) || t->kept)
		return;
	sample_due(t);
	call_walk(t, &w, args, nr);
	w.result = result;
	call_tell(t, &w, nr);
}

/* The payload of an event that has been begun, and is no call's. */
void payload_tell(struct thread *t, const void *bytes, size_t size)
{
	uint64_t seq = t->writer.open->seq;
	size_t done = 0, n;

	for (; done < size; done += n) {
		n = writer_room(&t->writer);
		if (!n) {
			writer_commit(&t->writer);
			host_begin(&t->writer, EVENT_MORE, 0)->seq = seq;
			continue;
		}
		n = n < size - done ? n : size - done;
		bytes_copy(t->writer.at, (const uint8_t *)bytes + done, n);
		t->writer.at += n;
	}
}

/* Another thread of the process may have sent it, and have something ready for it. */
static bool sent_by_us(const struct thread *t, const uint8_t *info)
{
	int32_t pid = info_int(info, INFO_PID);

	return info_int(info, INFO_CODE) <= 0 && (pid == t->pid || pid == t->vpid);
}

/* The program's handler is about to run, at a boundary. */
void lead_signal(struct thread *t, const uint8_t *info, bool more)
{
	struct event *e = event_begin(t, EVENT_SIGNAL, 0, info_int(info, INFO_SIGNO));

	e->flags = (locks_on && sent_by_us(t, info) ? EVENT_AFTER : 0) |
		   (more ? EVENT_SIGNAL_NEXT : 0);
	payload_tell(t, info, SIGINFO_SIZE);
	writer_commit(&t->writer);
	sleepers_wake(t);	/* its twin may be in a call that goes on behind this */
}

/* --- threads, programs, ends --------------------------------------------------------- */

/* The lane of a child to be; CHUNK_NONE: it will not be followed. */
static uint32_t child_lane(struct thread *t)
{
	int lane = host_lane(&t->writer);

	t->child_lane = lane < 0 ? CHUNK_NONE : (uint32_t)lane;
	return t->child_lane;
}

#define FORK_UNDRAWN	1

/*
 * A fork has its number from before it is made.  What other threads do meanwhile is told as
 * behind it: plain variables are among the first of what is copied.
 */
void lead_forks(struct thread *t)
{
	if (!t->fork_seq)
		return;
	t->fork_seq = lead_seq();
	giving_set(t, t->fork_seq);
	order_forked();
}

static long lead_clone(struct thread *t, long nr)
{
	uint32_t lane = child_lane(t), life = 0;
	int64_t pidfd = -1;
	struct event *e;
	long result;

	if (lane != CHUNK_NONE)
		life = streams_section(&streams, streams.self)->lane[lane].life;
	t->fork_seq = FORK_UNDRAWN;
	result = serve_special(t, nr);
	if (result < 0 && lane != CHUNK_NONE)
		lane_cancel(&streams, lane);
	if (result == CALL_RESTART) {
		t->fork_seq = 0;
		giving_end(t);
		return result;
	}
	if (result > 0)
		pidfd = clone_pidfd(t, nr);
	e = event_begin(t, EVENT_CALL, nr, result);
	e->arg[0] = lane;
	e->arg[1] = life;
	e->arg[2] = t->fork_seq != FORK_UNDRAWN;
	if (e->arg[2])
		e->seq = t->fork_seq;
	t->fork_seq = 0;
	e->arg[3] = (uint64_t)pidfd;
	event_end(t);
	giving_end(t);
	t->child_lane = CHUNK_NONE;
	return result;
}

/* An execve is told before it is made; how it ended, afterwards. */
static long lead_exec(struct thread *t, long nr, const struct walk *w)
{
	long result;

	realm_catch_up(t);
	call_tell(t, w, nr);
	result = serve_special(t, nr);
	lead_exec_done(t, result);
	return result;
}

void lead_exec_done(struct thread *t, int64_t outcome)
{
	event_begin(t, EVENT_EXEC, __NR_execve, outcome);
	if (outcome == EXEC_HELD)
		payload_tell(t, &boot.layout, sizeof(boot.layout));
	event_end(t);
}

/* Another thread has made one, and has yet to tell: followers would wait for that. */
static bool is_birth_untold(const struct thread *t)
{
	const struct thread *o;

	for (uint32_t i = 0; (o = block_next(&i)); i++)
		if (o != t && o->pid == t->pid && o->has_lane && o->child_lane != CHUNK_NONE &&
		    __atomic_load_n(&o->busy, __ATOMIC_RELAXED))
			return true;
	return false;
}

static void births_wait(const struct thread *t)
{
	struct __kernel_timespec slice = { 0, BIRTH_LOOK_NS };

	for (unsigned i = 0; i < BIRTH_LOOKS && is_birth_untold(t); i++)
		OWN2(__NR_nanosleep, &slice, 0);
}

static long lead_exit(struct thread *t, long nr, const struct walk *w)
{
	int32_t status = (int32_t)t->frame.rdi;

	if (t->pending)
		return CALL_RESTART;
	if (nr == __NR_exit_group && crash_exits(t))
		return serve_special(t, nr);
	fault_end(t);
	/* Another version may lead from here: then nobody is told of this end. */
	if (nr == __NR_exit_group && status && request_ask(t, REQ_EXIT, (uint64_t)status, 0, 0) > 0)
		t->has_lane = 0;
	if (!t->has_lane)
		return serve_special(t, nr);
	if (nr == __NR_exit_group)
		births_wait(t);
	call_tell(t, w, nr);
	lead_settle(t);
	lane_close(&streams, t->lane);
	t->has_lane = 0;
	return serve_special(t, nr);
}

static long lead_life(struct thread *t, long nr, const struct walk *w)
{
	switch (nr) {
	case __NR_execve:
	case __NR_execveat:
		return lead_exec(t, nr, w);
	case __NR_exit:
	case __NR_exit_group:
		return lead_exit(t, nr, w);
	default:
		return lead_clone(t, nr);
	}
}

/* --- every other call ------------------------------------------------------------------ */

typedef long vdso_fn(uint64_t, uint64_t, uint64_t);

/* A call of our vDSO: the kernel's answers it without a call. */
static bool from_vdso(const struct thread *t)
{
	return !t->frame.site_end;
}

/*
 * Clocks that the kernel's vDSO reads.  For any other it makes a call, which is
 * held as every call is: not from in here.
 */
#define VDSO_CLOCKS	(1u << CLOCK_REALTIME | 1u << CLOCK_MONOTONIC |			\
			 1u << CLOCK_MONOTONIC_RAW | 1u << CLOCK_REALTIME_COARSE |	\
			 1u << CLOCK_MONOTONIC_COARSE | 1u << CLOCK_BOOTTIME | 1u << CLOCK_TAI)

static bool vdso_reads(const struct frame *f, long nr)
{
	bool has_clock = nr == __NR_clock_gettime || nr == __NR_clock_getres;

	return !has_clock || ((uint32_t)f->rdi < 32 && VDSO_CLOCKS >> (uint32_t)f->rdi & 1);
}

#define VDSO_POINTERS	2

/* The bytes that each writes behind its arguments. */
static const uint8_t vdso_writes[VDSO_FUNCTIONS][VDSO_POINTERS] = {
	[VDSO_CLOCK_GETTIME] = { 0, 16 }, [VDSO_GETTIMEOFDAY] = { 16, 8 }, [VDSO_TIME] = { 8 },
	[VDSO_CLOCK_GETRES] = { 0, 16 }, [VDSO_GETCPU] = { 4, 4 },
};

/*
 * The kernel's function writes to memory of ours, for it is no call: an address of the
 * program's that is bad would be a fault in here.
 */
static long vdso_call(const struct frame *f, int which)
{
	uint64_t asked[VDSO_POINTERS] = { f->rdi, f->rsi }, given[VDSO_POINTERS];
	uint64_t room[VDSO_POINTERS][2];
	long result;

	for (int i = 0; i < VDSO_POINTERS; i++)
		given[i] = vdso_writes[which][i] && asked[i] ? (uint64_t)room[i] : asked[i];
	result = ((vdso_fn *)boot.vdso[which])(given[0], given[1], f->rdx);
	for (int i = 0; i < VDSO_POINTERS; i++)
		if (result >= 0 && given[i] != asked[i] &&
		    target_out(asked[i], room[i], vdso_writes[which][i]))
			return -EFAULT;
	return result;
}

static long clock_call(struct thread *t, long nr)
{
	static const int16_t of[VDSO_FUNCTIONS] = {
		[VDSO_CLOCK_GETTIME] = __NR_clock_gettime, [VDSO_GETTIMEOFDAY] = __NR_gettimeofday,
		[VDSO_TIME] = __NR_time, [VDSO_CLOCK_GETRES] = __NR_clock_getres,
		[VDSO_GETCPU] = __NR_getcpu, [VDSO_GETRANDOM] = -1,
	};
	const struct frame *f = &t->frame;

	for (int i = 0; i < VDSO_FUNCTIONS; i++) {
		if (of[i] != nr || !boot.vdso[i] || !vdso_reads(f, nr))
			continue;
		t->answered = 1;
		return vdso_call(f, i);
	}
	return serve_special(t, nr);
}

long call_serve(struct thread *t, long nr)
{
	return from_vdso(t) ? clock_call(t, nr) : serve_special(t, nr);
}

#define SEM_STAT	2	/* IPC_STAT */
#define SEMS_AT		10	/* in words: sem_nsems of a struct semid64_ds */
#define SEMS_MAX	32000	/* SEMMSL's end */

/* All semaphores of a set are asked for: a follower has as much room as its leader. */
static uint64_t sems_room(const struct walk *w)
{
	uint64_t set[16] = { 0 };

	if (thread_self()->following)
		return SEMS_MAX * sizeof(uint16_t);
	OWN4(__NR_semctl, w->args[0], 0, SEM_STAT, set);
	return set[SEMS_AT] * sizeof(uint16_t);
}

static bool has_host_room(const struct walk *w)
{
	return w->desc && w->desc->nr == CALL_semctl && w->desc->nargs == 4 &&
	       w->desc->args[3].len_rule == LEN_RULE_HOST;
}

/* What an argument says before the call of how much room there is. */
uint64_t room_before(struct walk *w)
{
	int arg = w->recipe->known ? w->recipe->room : w->desc ? step_room_arg(w->desc) : -1;
	uint32_t room = 0;

	if (has_host_room(w))
		return sems_room(w);
	if (arg >= 0 && w->args[arg])
		target_in(&room, w->args[arg], sizeof(room));
	return room;
}

/*
 * A descriptor's number is used again as soon as the kernel has closed it, before
 * the thread that closed it has told so.  Who is given the number waits for that:
 * its event stands behind the other's, and a follower's thread waits likewise
 * (order_wait_all_told).
 */
#define CLOSING_FDS	16384
#define CLOSING_YIELDS	1000

static uint8_t closing[CLOSING_FDS];

static void closing_begin(const struct thread *t, const struct walk *w)
{
	take_closing(t, (int32_t)w->args[0]);
	inner_closed((int32_t)w->args[0]);
	/* Release: pairs with closing_wait. */
	if (locks_on && w->args[0] < CLOSING_FDS)
		__atomic_store_n(&closing[w->args[0]], 1, __ATOMIC_RELEASE);
}

static void closing_end(const struct walk *w)
{
	/* Release: pairs with closing_wait; the event is published. */
	if (locks_on && w->args[0] < CLOSING_FDS)
		__atomic_store_n(&closing[w->args[0]], 0, __ATOMIC_RELEASE);
}

static void closing_wait(const struct walk *w)
{
	uint64_t fd = (uint64_t)w->result;

	if (w->desc->result != KIND_FD || fd >= CLOSING_FDS)
		return;
	/* Acquire: pairs with closing_begin. */
	for (int i = 0; __atomic_load_n(&closing[fd], __ATOMIC_ACQUIRE); i++) {
		if (i == CLOSING_YIELDS)	/* its thread stayed behind at a fork */
			closing[fd] = 0;
		OWN0(__NR_sched_yield);
	}
}

/*
 * Threads that register for one another: what one does before its epoll_ctl, the one
 * that waits finds done.  Who waits alone, for what it has registered itself or was
 * given at its beginning, need not look at others.
 */
#define POLLED_FDS	4096
#define STRANGERS	64	/* waits that one registration by another is good for */

static struct polled {
	int32_t owner;		/* the thread that registered or waited first, or waited last */
	uint32_t strangers;
} pollers[POLLED_FDS];

static void polled_by(const struct thread *t, long nr)
{
	uint64_t fd = t->frame.rdi;

	if (nr != __NR_epoll_ctl || !locks_on || fd >= POLLED_FDS)
		return;
	if (!pollers[fd].owner)
		pollers[fd].owner = t->tid;
	if (pollers[fd].owner != t->tid)
		/* Release: pairs with polled; the call is still to be made. */
		__atomic_store_n(&pollers[fd].strangers, STRANGERS, __ATOMIC_RELEASE);
}

/* What the event of a wait says. */
static uint8_t polled(const struct walk *w, long nr)
{
	uint64_t fd = w->args[0];
	int32_t owner;

	if (nr == __NR_epoll_ctl || nr == __NR_close || fd >= POLLED_FDS || w->result < 0)
		return 0;
	if (!w->result)
		return EVENT_AFTER;
	owner = __atomic_exchange_n(&pollers[fd].owner, thread_self()->tid, __ATOMIC_ACQ_REL);
	if (owner && owner != thread_self()->tid)
		__atomic_store_n(&pollers[fd].strangers, STRANGERS, __ATOMIC_RELAXED);
	/* Acquire: pairs with polled_by. */
	if (!__atomic_load_n(&pollers[fd].strangers, __ATOMIC_ACQUIRE))
		return 0;
	pollers[fd].strangers--;
	return EVENT_AFTER;
}

/*
 * Bytes or registrations of another thread: what it was told before comes first.  The
 * same where a thread has slept, to look then at what others may have done.
 */
static uint8_t after_others(const struct walk *w, long nr, unsigned care)
{
	if (care & CARE_POLLS)
		return polled(w, nr);
	return care & CARE_SLEEPS || (care & CARE_READS && inner_is((long)w->args[0])) ?
	       EVENT_AFTER : 0;
}

/* Others may meet what the call gives before it is told. */
static void giving_begin(struct thread *t, long nr, unsigned care, uint64_t seq)
{
	if (seq && (nr == __NR_epoll_ctl || care & CARE_SENDS ||
		    (care & CARE_WRITES && inner_is((long)t->frame.rdi))))
		giving_set(t, seq);
}

/* The slot knows only the low 16 bits of a number: those behind are nobody's. */
static const struct plan *plan_of(long nr)
{
	return &plans[(unsigned long)nr + 1 < SLOT_CALLS ? nr + 1 : 0];
}

/*
 * One function of libc is stat, fstat, lstat or newfstatat, as its version and a
 * sanitizer's interceptor have it: all of them are told as newfstatat.
 */
static long stat_form(uint64_t args[CALL_ARGS], long nr)
{
	static const char none[] = "";
	bool by_fd = nr == __NR_fstat;

	args[2] = args[1];
	args[1] = by_fd ? (uint64_t)none : args[0];
	args[0] = by_fd ? args[0] : (uint64_t)AT_FDCWD;
	args[3] = by_fd ? AT_EMPTY_PATH : nr == __NR_lstat ? AT_SYMLINK_NOFOLLOW : 0;
	return __NR_newfstatat;
}

const struct recipe *lead_recipe(long nr)
{
	return &plan_of(nr)->recipe;
}

bool lead_wakes(long nr)
{
	return plan_of(nr)->care & CARE_WAITS;
}

/*
 * The call in the frame, as it is told; its number there.  Variants are looked for only
 * where there are some.
 */
long call_walk(struct thread *t, struct walk *w, uint64_t args[CALL_ARGS], long nr)
{
	const struct plan *p;

	call_args(&t->frame, args);
	if (is_old_stat(nr))
		nr = stat_form(args, nr);
	p = plan_of(nr);
	w->args = args;
	w->recipe = &p->recipe;
	w->desc = p->desc ? p->desc : call_find_variant(nr, args);
	return nr;
}

/* Nobody follows: only ids and data of a former leader are still to be put right. */
static long lead_alone(struct thread *t, struct walk *w, long nr)
{
	bool ours = ids_are_ours();

	if ((ours && !epoll_inherited()) || !w->desc)
		return call_serve(t, nr);
	w->result = ours ? call_serve(t, nr) : ids_call(t, w->desc, nr);
	epoll_led(t, w, nr);
	epoll_lead_end(t, w->result);
	return w->result;
}

static unsigned care_now(const struct plan *p)
{
	return locks_on ? p->care : p->care & CARE_ALONE;
}

/* The call is about to be made; the number that it has then, or 0. */
static __attribute__((noinline)) uint64_t care_before(struct thread *t, const struct walk *w,
						      long nr, unsigned care)
{
	uint64_t seq = seq_before(t, care & CARE_GIVES);

	if (care & CARE_CLOSES)
		closing_begin(t, w);
	if (care & CARE_POLLS) {
		polled_by(t, nr);
		if (nr == __NR_epoll_ctl)
			epoll_lead(t, (uint64_t *)w->args);
	}
	giving_begin(t, nr, care, seq);
	return seq;
}

/* It was made, and is about to be told. */
static __attribute__((noinline)) void care_made(struct thread *t, const struct walk *w,
						unsigned care, uint64_t seq)
{
	if (care & CARE_PLACES)
		places_made(t, w, seq);
	if (locks_on)
		closing_wait(w);
	if (care & CARE_MAKES)
		inner_made(w);
}

static __attribute__((noinline)) void care_told(struct thread *t, const struct walk *w, long nr,
						unsigned care)
{
	if (care & CARE_POLLS)
		epoll_led(t, w, nr);
	if (care & CARE_KEPT && (!(care & CARE_CLOSES) || kept_locks))
		kept_note(t, nr, w->args, w->result);
	if (care & CARE_RIGHTS && w->result >= 0)
		realm_changed(t, nr);
}

/* The call has been made, unless a signal came first. */
static INLINE void call_told(struct thread *t, struct walk *w, long nr, unsigned care,
			     uint64_t seq)
{
	t->away = 0;
	if (w->result == -EINTR && crash_cuts(t))
		w->result = CALL_RESTART;
	if (w->result != CALL_RESTART) {
		bool tick = care & CARE_CLOCK && tick_begins(t, w, nr);
		bool begins = tick && tick_holder != t;
		uint8_t flags = tick ? EVENT_TICK | EVENT_CLOCK : t->shows;

		t->ticks.goes_on = tick;
		if (care & CARE_MADE)
			care_made(t, w, care, seq);
		if (begins)
			seq = tick_number(t, locks_on && !stateless);
		else if (!tick && !seq)
			seq = seq_shown(t, true, &flags);
		if (care & CARE_ORDER && locks_on)
			flags |= after_others(w, nr, care);
		call_tell_at(t, w, nr, seq, flags);
		if (begins)
			tick_told(t);
		else if (flags & EVENT_TICK)
			tick_stand(t);
		if (care & (CARE_POLLS | CARE_KEPT | CARE_RIGHTS))
			care_told(t, w, nr, care);
		if (care & CARE_WAITS)
			sleepers_look(t);
	}
	if (seq && t->writer.lane->giving)
		giving_end(t);
	if (care & CARE_POLLS)
		epoll_lead_end(t, w->result);
	if (care & CARE_CLOSES)
		closing_end(w);
}

/* To followers it is as if another had been given the connection. */
static void accept_kept(struct thread *t, struct walk *w, long nr)
{
	int64_t fd = w->result;

	w->result = -EAGAIN;
	if (locks_on)
		closing_wait(w);
	event_begin(t, EVENT_CALL, nr, w->result)->flags |= EVENT_PASSED;
	record_call(&t->writer, w);
	event_end(t);
	w->result = fd;
}

/* In a stateless session: what was made is told, or not, or otherwise. */
static void sample_told(struct thread *t, struct walk *w, long form, unsigned care,
			uint64_t seq, struct scope_row row)
{
	enum sample_way way = w->result == CALL_RESTART ? SAMPLE_TOLD : sample_made(t, w, row);

	uint64_t begun;

	if (way == SAMPLE_TOLD) {
		begun = scope_cost_begin(w);
		call_told(t, w, form, care, seq);
		scope_cost_end(begun);
	} else if (way == SAMPLE_PASSED) {
		accept_kept(t, w, form);
	}
}

static uint8_t away_in(unsigned care, uint64_t seq)
{
	return care & CARE_CLOCK ? 0 : seq ? AWAY_NUMBERED : AWAY;
}

/*
 * Most calls: the kernel serves them, the row says what is told, and nobody else has
 * to know.
 */
static long lead_bare(struct thread *t, long nr, const struct plan *p)
{
	struct walk w = { .desc = p->desc, .args = t->frame.arg, .recipe = &p->recipe };
	unsigned care = care_now(p);
	uint64_t seq = care & CARE_BEFORE ? care_before(t, &w, nr, care) : 0;

	if (p->recipe.room >= 0)
		w.room = room_before(&w);
	t->away = away_in(care, seq);
	w.result = from_vdso(t) ? clock_call(t, nr) : call_kernel(t);
	call_told(t, &w, nr, care, seq);
	return w.result;
}

/* The same where followers hear of a part only, or nobody follows. */
static __attribute__((noinline)) long lead_part(struct thread *t, long nr, const struct plan *p)
{
	struct walk w = { .desc = p->desc, .args = t->frame.arg, .recipe = &p->recipe };
	bool told = stream_followed(t) && scope_enter(t, &w, p->scope);
	unsigned care = care_now(p) & (told ? ~0u : CARE_CLOSES | CARE_POLLS);
	uint64_t seq = care & CARE_BEFORE ? care_before(t, &w, nr, care) : 0;

	if (stateless && care & CARE_CLOSES)
		scope_closes(t, &w);
	if (told && p->recipe.room >= 0)
		w.room = room_before(&w);
	w.result = from_vdso(t) ? clock_call(t, nr) : call_kernel(t);
	if (told) {
		sample_told(t, &w, nr, care, seq, p->scope);
		return w.result;
	}
	if (stateless)
		sample_kept(t, &w, p->scope);
	if (care & CARE_CLOSES)
		closing_end(&w);
	return w.result;
}

/* Each version maps for itself, but what stands behind a descriptor is the leader's. */
static long lead_mmap(struct thread *t, const uint64_t args[CALL_ARGS])
{
	bool told = !caller_is_local(t, __NR_mmap);
	long result = call_serve(t, __NR_mmap);

	if (!told || !stream_followed(t) || t->kept)
		return result;
	sample_due(t);
	mirror_tell(t, args, result);
	return result;
}

static bool opens(long nr)
{
	return nr == __NR_open || nr == __NR_openat;
}

/* What the loader opens it closes again, and must have until then: see park.c. */
static void own_files_count(struct thread *t, long nr, int64_t result)
{
	if (opens(nr) && result >= 0 && t->own_files < UINT8_MAX)
		t->own_files++;
	else if (nr == __NR_close && !result && t->own_files && !--t->own_files)
		t->files_waited = 0;
}

static long lead_walked(struct thread *t, long nr, const struct plan *p, struct walk w, long form);

static __attribute__((noinline)) long lead_kept(struct thread *t, long nr, const struct plan *p,
						struct walk w, long form)
{
	struct sent sent;

	step_keep(&w, &sent);
	return lead_walked(t, nr, p, w, form);
}

/* With ids, memory, signals, descriptors or threads that are looked after. */
static __attribute__((noinline)) long lead_full(struct thread *t, long nr, const struct plan *p)
{
	uint64_t args[CALL_ARGS];
	struct walk w;
	long form;

	form = call_walk(t, &w, args, nr);
	w.room = room_before(&w);
	return p->care & CARE_ALIAS && w.desc && step_aliases(&w) ?
	       lead_kept(t, nr, p, w, form) : lead_walked(t, nr, p, w, form);
}

static long lead_walked(struct thread *t, long nr, const struct plan *p, struct walk w, long form)
{
	uint64_t *args = (uint64_t *)w.args, seq;
	struct scope_row row = { 0, 0 };
	unsigned care = care_now(p);
	bool told;

	if (nr == __NR_mmap && !(args[3] & MAP_ANONYMOUS) && (int32_t)args[4] >= 0)
		return lead_mmap(t, args);
	if (!w.desc || w.desc->class == CLASS_LOCAL)
		return call_serve(t, nr);
	if (sends(nr) && stream_followed(t) && crash_call(t, nr, args))
		return ids_call(t, w.desc, nr);
	if (caller_is_local(t, nr)) {
		report_tell(t, nr);
		w.result = ids_call(t, w.desc, nr);
		own_files_count(t, nr, w.result);
		if (opens(nr) && w.result >= 0 && stream_followed(t) && !stateless)
			mirror_tell_loaded(t, nr, w.result);
		return w.result;
	}
	if (seam_opened(t, &w)) {
		seam_pass(t);
		return -ENOENT;
	}
	care_before(t, &w, nr, care & (CARE_CLOSES | CARE_POLLS));
	told = stream_followed(t);
	if (stateless)
		row = scope_row(w.desc);
	if (stateless && told)
		told = scope_enter(t, &w, row);
	if (stateless && care & CARE_CLOSES)
		scope_closes(t, &w);
	if (!told) {
		w.result = lead_alone(t, &w, nr);
		if (stateless)
			sample_kept(t, &w, row);
		if (care & CARE_CLOSES)
			closing_end(&w);
		return w.result;
	}
	if (w.desc->class == CLASS_LIFE) {
		sample_due(t);
		tick_over(t);
		return lead_life(t, nr, &w);
	}
	seq = seq_before(t, gives(w.desc));
	giving_begin(t, nr, care, seq);
	t->away = away_in(care, seq);
	w.result = ids_are_ours() ? call_serve(t, nr) : ids_call(t, w.desc, nr);
	if (stateless)
		sample_told(t, &w, form, care, seq, row);
	else
		call_told(t, &w, form, care, seq);
	return w.result;
}

/* What it sends is to be kept: that takes more room than most calls have. */
static bool bare_aliases(const struct thread *t, const struct plan *p)
{
	struct walk w = { .desc = p->desc, .args = t->frame.arg, .recipe = &p->recipe };

	return p->care & CARE_ALIAS && step_aliases(&w);
}

static __attribute__((noinline)) long lead_other(struct thread *t, long nr, const struct plan *p)
{
	long result;

	lead_settle(t);
	if (t->faulting)
		fault_look(t);
	if ((p->opens || private_count) && private_call(t, nr, &result))
		return result;
	if (p->seam)
		seam_pass(t);
	if (p->bare && ids_are_ours() && !boot.runtimes && !local_site(t) && !bare_aliases(t, p))
		return stateless || !stream_followed(t) ? lead_part(t, nr, p) :
							  lead_bare(t, nr, p);
	return lead_full(t, nr, p);
}

long lead_call(struct thread *t, long nr)
{
	const struct plan *p = plan_of(nr);

	if (p->plain && !private_count && !(t->writer.owes | t->faulting) && !boot.runtimes && ids_are_ours() &&
	    !local_site(t) && stream_followed(t))
		return lead_bare(t, nr, p);
	return lead_other(t, nr, p);
}

/* The thread has followed until now. */
void lead_resume(struct thread *t)
{
	bool owes;

	t->following = 0;
	t->away = 0;
	t->ticks = (struct ticks){ 0 };
	if (!lane_reopen(&streams, t->lane, &owes)) {
		t->has_lane = 0;
		return;
	}
	fault_lead(t);
	writer_attach(&t->writer, &streams, t->lane);
	t->writer.owes = owes;
	t->writer.lane->pid = t->pid;
	/* Release: other followers of the old leader begin the lane when it has one. */
	__atomic_store_n(&t->writer.lane->owner, t->tid, __ATOMIC_RELEASE);
}

/* A program begins: after an execve the stream waits to hear how that ended. */
void lead_begin(struct thread *t)
{
	writer_attach(&t->writer, &streams, t->lane);
	t->writer.lane->owner = t->tid;
	t->writer.lane->pid = t->pid;
	if (t->writer.lane->head)
		lead_exec_done(t, EXEC_HELD);
}
