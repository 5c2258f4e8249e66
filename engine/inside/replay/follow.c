/*
 * The follower: each call is matched with the next event of the thread's lane
 * and answered from it.  Nothing of what the follower does reaches the world.
 *
 * The match is elastic by class: queries and clocks of the leader that this
 * version does not make are passed over, those that only this version makes are
 * served here.  Everything else must be the same call with the same arguments
 * and the same content, or it is a divergence: the thread says so and waits for
 * the verdict.
 *
 * Real signals from outside are dropped (signals.c): the stream brings those that
 * the leader's handlers saw, at the same place between two calls.
 */
#include <asm/unistd.h>
#include <linux/errno.h>
#include <linux/fcntl.h>
#include <linux/signal.h>
#include <linux/stat.h>
#include <linux/wait.h>
#include <linux/time.h>

#include "engine/inside/order/locks.h"
#include "engine/inside/signal/signals.h"

#define WORDS_MAX	20000
#define LOOKS		4	/* before the first sleep: each look takes the line from the leader */
#define SLEEP_FIRST_NS	50000
#define SLEEP_GROWS	4
#define SLEEP_LAST_NS	100000000	/* a full ring wakes us before */
#define SLEEP_LONG_NS	3000000		/* so does the leader when it begins to work again */
#define SLEEP_REST_NS	500000000	/* where nothing else can be waited for */

/* --- waiting ----------------------------------------------------------------------- */

/* What is to be done where a stream has no more events. */
enum at_end { END_WAIT, END_SWITCHED, END_LEADS };

static bool lane_begun(const struct thread *t, uint32_t version)
{
	/* Acquire: pairs with lead_resume; the twin has begun its lane. */
	return __atomic_load_n(&streams_section(&streams, version)->lane[t->lane].owner,
			       __ATOMIC_ACQUIRE) != 0;
}

/* Whose stream goes on here: one that failed before it told anything is passed over. */
static uint32_t next_of(const struct thread *t, uint32_t source)
{
	const struct conduct *c = streams.conduct;
	uint32_t next = c->next[source];

	for (int hops = 0; hops < VERSIONS && next != streams.self; hops++) {
		if (!(c->ended >> next & 1) || lane_begun(t, next))
			break;
		next = c->next[next];
	}
	return next < VERSIONS ? next : source;
}

static enum at_end stream_ended(struct thread *t)
{
	const struct conduct *c = streams.conduct;
	uint32_t source = t->reader.cursor->source, next;

	/* Acquire: pairs with the monitor's release when a stream ends. */
	if (!(__atomic_load_n(&c->ended, __ATOMIC_ACQUIRE) >> source & 1) ||
	    !reader_at_end(&t->reader))
		return END_WAIT;
	if (is_stateless() && source == ROW_START) {
		if (!seam_join(t))
			return END_WAIT;
		t->ordered = 0;
		apart_forget(t);
		return END_SWITCHED;
	}
	next = next_of(t, source);
	if (next == streams.self)
		return follow_promoted(t) ? END_LEADS : END_WAIT;
	if (!lane_begun(t, next))
		return END_WAIT;
	order_wait_ended(t);
	reader_switch(&t->reader, next);
	t->ordered = 0;
	apart_forget(t);
	return END_SWITCHED;
}

/* In a call that is no event: the thread may lead from here on, or follow another. */
void follow_ended(struct thread *t)
{
	stream_ended(t);
}

static void broken(struct thread *t)
{
	request_ask(t, REQ_VERDICT, VERDICT_BROKEN, 0, 0);
	for (;;)
		change_wait(change_now(), SLEEP_LAST_NS);
}

/*
 * Without a monitor it can neither lead nor be heard.  But while versions are changed, one
 * that has its descriptors may still have to become the leader: it stays as long as its twin.
 */
bool follow_is_orphan(const struct thread *t)
{
	uint32_t source = t->reader.cursor->source;
	int32_t pid = t->reader.from->lane[t->lane].pid;

	if (monitor_alive() || take_is_done())
		return false;
	/* Acquire: as in stream_ended. */
	if (!(__atomic_load_n(&streams.conduct->ended, __ATOMIC_ACQUIRE) >> source & 1))
		return true;
	return pid > 0 && OWN2(__NR_kill, pid, 0) == -ESRCH;
}

static void lane_skip(struct thread *t)
{
	const struct event *e;

	while ((e = reader_peek(&t->reader))) {
		lock_passed(t, e);
		follow_take(t);
	}
}

/* The others lead already, and what is left here would be yesterday's answers. */
static bool is_left_behind(const struct thread *t)
{
	return take_is_done() && order_only_looks(t);
}

/*
 * An event that comes soon needs no wake-up; who misses one only sleeps to the end.
 * True: it was a long time.
 */
static bool sleep_wait(struct thread *t, uint32_t seen, uint64_t ns)
{
	uint8_t *asleep = &streams_section(&streams, streams.self)->asleep[t->lane], sleep;
	uint64_t since;

	since = clock_ns(CLOCK_MONOTONIC);
	if (ns < SLEEP_LONG_NS) {
		lane_wait(t->lane, seen, since + ns);
		return false;
	}
	sleep = (uint8_t)((*asleep + 1) | 1);
	__atomic_store_n(asleep, sleep, __ATOMIC_RELAXED);
	if (!reader_peek(&t->reader))
		lane_wait(t->lane, seen, since + ns);
	__atomic_store_n(asleep, sleep + 1, __ATOMIC_RELAXED);
	return clock_ns(CLOCK_MONOTONIC) - since >= SLEEP_LONG_NS;
}

static uint64_t sleep_longer(uint64_t ns)
{
	return ns * SLEEP_GROWS < SLEEP_LAST_NS ? ns * SLEEP_GROWS : SLEEP_LAST_NS;
}

/* The leader wakes when this call is over, or this lock is had: a rest. */
static bool may_rest(const struct thread *t)
{
	return lock_asked(t) || lead_wakes((long)t->frame.rax);
}

/* One who rested in this call the last time is likely to do it again. */
static uint64_t sleep_first(const struct thread *t)
{
	return t->rest == t->frame.rax + 1 && may_rest(t) ? SLEEP_REST_NS : SLEEP_FIRST_NS;
}

static uint64_t sleep_next(const struct thread *t, uint64_t ns)
{
	ns = sleep_longer(ns);
	return ns >= SLEEP_LONG_NS && may_rest(t) ? SLEEP_REST_NS : ns;
}

static void rest_note(struct thread *t, bool rested)
{
	if (rested)
		t->rest = t->frame.rax + 1;
	else if (t->rest == t->frame.rax + 1)
		t->rest = 0;
}

/*
 * Takes the looked-at event, and those behind it that were answered out of order;
 * the flags of the first.
 */
static uint8_t event_take(struct thread *t)
{
	uint8_t flags;

	if (apart_is_behind(t))
		return apart_take(t);
	flags = reader_take(&t->reader);
	for (apart_shift(t); t->ahead & 1; apart_shift(t))
		if (reader_peek(&t->reader))
			reader_take(&t->reader);
	return flags;
}

static bool is_clock_call(const struct thread *t)
{
	long nr = (int32_t)t->frame.rax;

	return !lock_asked(t) &&
	       (nr == __NR_clock_gettime || nr == __NR_gettimeofday || nr == __NR_time);
}

/* What the leader does behind a fault is met when it is known whether it dies of it. */
static bool fault_passed(struct thread *t)
{
	uint32_t seen = change_now();

	if (fault_crashed(t->reader.cursor->source % VERSIONS)) {
		lane_skip(t);
		return true;
	}
	if (follow_is_orphan(t))
		OWN1(__NR_exit_group, 1);
	fault_wait(seen);
	return false;
}

static const struct event *event_wait(struct thread *t, bool (*over)(void *), void *what)
{
	uint64_t sleep = over ? SLEEP_FIRST_NS : sleep_first(t);

	for (uint32_t looks = 0;; looks++) {
		const struct event *e = reader_peek(&t->reader);
		uint32_t seen;

		if (!is_clock_call(t))
			order_tick_over(t);
		if (e && is_left_behind(t)) {
			lane_skip(t);
			continue;
		}
		if (e && fault_stands(t)) {
			if (fault_passed(t))
				continue;
			if (over && over(what))
				return NULL;
			continue;
		}
		if (e && e->kind == EVENT_MOVED) {
			realm_follow(t, e);
			continue;
		}
		if (e && e->kind != EVENT_SEAM) {
			order_wait_fork(t, e->seq);
			order_wait(t, e->seq);
			if (e->flags & EVENT_TICK)
				order_tick(t, e);
			return e;
		}
		if (e) {
			t->slot->seams++;
			event_take(t);
			continue;
		}
		if (t->reader.broken)
			broken(t);
		if (looks < LOOKS) {
			__builtin_ia32_pause();
			continue;
		}
		seen = change_now();
		if (stream_ended(t) == END_LEADS || (over && over(what)))
			return NULL;
		if (reader_peek(&t->reader))
			continue;
		if (sleep >= SLEEP_LAST_NS && follow_is_orphan(t))
			OWN1(__NR_exit_group, 1);
		order_rests();
		rest_note(t, sleep_wait(t, seen, sleep));
		sleep = over ? sleep_longer(sleep) : sleep_next(t, sleep);
	}
}

const struct event *follow_event_or(struct thread *t, bool (*over)(void *), void *what)
{
	const struct event *e;

	/* Release: a thread that forks sees all that was done before (order.c). */
	__atomic_store_n(&t->waits, 1, __ATOMIC_RELEASE);
	e = event_wait(t, over, what);
	__atomic_store_n(&t->waits, 0, __ATOMIC_RELAXED);
	return e;
}

const struct event *follow_event(struct thread *t)
{
	return follow_event_or(t, NULL, NULL);
}

/* Waits until more than `n` events are there; false: there will be no more, or it is over. */
bool follow_behind(struct thread *t, unsigned n, bool (*over)(void *), void *what)
{
	for (uint64_t sleep = SLEEP_FIRST_NS;;) {
		struct reader ahead = t->reader;
		const struct event *e = reader_peek(&ahead);
		uint32_t seen = change_now();

		for (unsigned i = 0; e && i < n; i++)
			e = reader_next(&ahead);
		if (e)
			return true;
		if (ahead.broken || streams.conduct->ended >> t->reader.cursor->source & 1 ||
		    (over && over(what)))
			return false;
		change_wait(seen, sleep);
		sleep = sleep_longer(sleep);
	}
}

/* The core waits for the rest of an event: the leader is still at it. */
bool host_more(struct reader *r)
{
	const struct conduct *c = streams.conduct;
	uint32_t seen = change_now();
	/* Acquire: what was published before the end is seen by the next look. */
	bool ended = __atomic_load_n(&c->ended, __ATOMIC_ACQUIRE) >> r->cursor->source & 1;

	if (r->broken || r->complete || (ended && r->waited_out))
		return false;
	r->waited_out = ended;
	/* The leader may wait for the room that the read part takes. */
	reader_release(r);
	if (!ended)
		change_wait(seen, SLEEP_FIRST_NS);
	return true;
}

uint8_t follow_take(struct thread *t)
{
	t->slot->taken++;
	return event_take(t);
}

/* --- the window, for reports ---------------------------------------------------------- */

/* Where the program is, for its stack to be read from. */
void place_note(struct thread *t, uint64_t place, uint64_t stack, const uint64_t kept[KEPT])
{
	t->slot->place = place;
	t->slot->stack = stack;
	for (int i = 0; i < KEPT; i++)
		t->slot->kept[i] = kept[i];
}

static struct window_row *window_note(struct thread *t, const uint64_t *args, long nr)
{
	struct window_row *w = &t->slot->window[t->slot->calls % WINDOW];
	const struct frame *f = &t->frame;

	w->call = (uint32_t)nr;
	w->result = 0;
	w->end = ROW_OPEN;
	w->event.kind = EVENT_NONE;
	for (int i = 0; i < CALL_ARGS; i++)
		w->args[i] = args[i];
	t->slot->calls++;
	place_note(t, f->site_end, f->rsp,
		   (uint64_t[KEPT]){ f->rbx, f->rbp, f->r12, f->r13, f->r14, f->r15 });
	return w;
}

static void window_event(struct thread *t, struct window_row *w, const struct event *e)
{
	uint32_t n = t->reader.left < sizeof(w->payload) ? t->reader.left : sizeof(w->payload);

	w->event = *e;
	w->version = (uint16_t)t->reader.cursor->source;
	for (uint32_t i = 0; i < n; i++)
		w->payload[i] = t->reader.piece[i];
}

static void window_end(struct window_row *w, int64_t result, enum row_end end)
{
	w->result = result;
	w->end = (uint16_t)end;
}

/* So much of the looked-at event's payload; false: it has not so much. */
bool follow_payload(struct reader *r, void *to, size_t size)
{
	const uint8_t *at;
	size_t done = 0, n;

	for (; done < size; done += n) {
		n = reader_piece(r, size - done, &at);
		if (!n && !host_more(r))
			return false;
		bytes_copy((uint8_t *)to + done, at, n);
	}
	return true;
}

/* --- signals of the stream ---------------------------------------------------------------- */

/* Its siginfo; true: another came with it. */
static bool signal_take(struct thread *t, const struct event *e, uint8_t *info)
{
	bool more = e->flags & EVENT_SIGNAL_NEXT;

	if (e->flags & EVENT_AFTER)
		order_wait_all_told(t, e->seq);
	follow_payload(&t->reader, info, SIGINFO_SIZE);
	follow_take(t);
	order_wait_sent(t, info);
	kept_signal(info);
	return more;
}

/* Readies the program's handler, and those of what came with it, to run at the call's end. */
void follow_signal(struct thread *t, const struct event *e)
{
	uint64_t all = ALL_SIGNALS & ~HIDDEN_SIGNALS;
	bool more = signal_take(t, e, t->held_info);

	for (t->nexts = 0; more && t->nexts < SIGNALS_NEXT; t->nexts++) {
		uint8_t info[SIGINFO_SIZE] = { 0 };

		e = follow_event(t);
		if (!e || e->kind != EVENT_SIGNAL)
			break;
		more = signal_take(t, e, info);
		bytes_copy(t->next_info[t->nexts], info, SIGINFO_USED);
	}
	OWN4(__NR_rt_sigprocmask, SIG_SETMASK, &all, &t->held_mask, 8);
	t->pending = 1;
	t->told = 1;
}

/* The mask that a handler runs under when it cut such a call short. */
static void masked_note(struct thread *t, long nr)
{
	const struct frame *f = &t->frame;
	uint64_t at = nr == __NR_rt_sigsuspend ? f->rdi : nr == __NR_ppoll ? f->r10
		    : nr == __NR_epoll_pwait || nr == __NR_epoll_pwait2 ? f->r8 : 0;

	if (nr == __NR_pselect6 && f->r9)
		target_in(&at, f->r9, sizeof(at));
	t->has_temp_mask = at && !target_in(&t->temp_mask, at, 8);
}

/* The leader's handler ran before it went on: so does ours. */
static void signal_next(struct thread *t, long nr, long result)
{
	const struct event *e = follow_event(t);

	if (!e || e->kind != EVENT_SIGNAL)
		return;
	follow_signal(t, e);
	if (result == -EINTR)
		masked_note(t, nr);
}

/* --- answering ------------------------------------------------------------------------------ */

static bool is_strict(void)
{
	return brief()->strict;
}

static bool is_elastic(const struct call_desc *d)
{
	return d && (d->class == CLASS_SOFT || (d->class == CLASS_QUERY && !is_strict()));
}

/* Clocks have no variants: their row is that of the number. */
static bool event_elastic(const struct event *e)
{
	return event_looks(e) && (!is_strict() || is_elastic(call_find(e->call)));
}

/* Words for people, in files; nothing that a client has seen or sent. */
static bool is_words(const struct event *e)
{
	int64_t fd = (int64_t)e->arg[0];

	if (e->kind != EVENT_CALL)
		return event_aside(e) ||
		       (e->kind == EVENT_SIGNAL && crash_signal((int)e->result));
	if (event_elastic(e))
		return true;
	switch (e->call) {
	case __NR_write:
	case __NR_writev:
	case __NR_read:
	case __NR_close:
		return (fd >= 0 && fd <= 2) || file_known(fd);
	case __NR_open:
	case __NR_openat:
	case __NR_lseek:
	case __NR_fsync:
	case __NR_unlink:
	case __NR_rt_sigaction:
	case __NR_rt_sigprocmask:
	case __NR_kill:
	case __NR_tkill:
	case __NR_tgkill:
	case __NR_rt_sigqueueinfo:
	case __NR_rt_tgsigqueueinfo:
		return true;
	default:
		return false;
	}
}

static bool only_words_left(struct thread *t)
{
	struct reader ahead = t->reader;
	const struct event *e = reader_peek(&ahead);

	ahead.ahead = true;
	for (int n = 0; e; n++, e = reader_next(&ahead)) {
		if (n == WORDS_MAX ||
		    !(fault_behind(ahead.from, t->lane, ahead.pos) || is_words(e)))
			return false;
	}
	return true;
}

/* What a version that crashed did last need not be done again. */
static bool last_words(struct thread *t)
{
	const struct event *e;

	if (!fault_crashed(t->reader.cursor->source % VERSIONS))
		return false;
	if (only_words_left(t)) {
		lane_skip(t);
		return true;
	}
	/* Another thread has died of it, and this one has gone on. */
	e = reader_peek(&t->reader);
	if (!e || !crash_was_sent(e))
		return false;
	follow_take(t);
	return true;
}

long follow_diverged(struct thread *t, struct walk *w, long nr, uint32_t what,
		     const struct mismatch *m)
{
	if (last_words(t))
		return ANSWER_RETRY;
	if (rules_given())
		rules_note_nearest(t, w, nr);
	return request_ask(t, REQ_VERDICT, VERDICT_DIVERGED, what,
			   m ? (uint64_t)m->arg << 56 | m->offset : 0);
}

static void epoll_note(struct thread *t, struct walk *w)
{
	struct reader r = t->reader;	/* only looks: the walk follows */
	uint8_t bytes[16] = { 0 };	/* the section: its length, the epoll_event */

	r.ahead = true;
	/* A removal has none. */
	if (step_kind(w, 3) == STEP_BYTES && !follow_payload(&r, bytes, sizeof(bytes)))
		return;
	epoll_changed(w, bytes + 4);
}

static void closed_note(struct thread *t, const struct walk *w)
{
	long fd = (long)w->args[0];

	kept_note(t, __NR_close, w->args, w->result);
	files_closed(fd);
	inner_closed(fd);
	epoll_closed(fd);
}

void follow_note_first(struct thread *t, struct walk *w, long nr, int64_t result)
{
	if (result < 0)
		return;
	w->result = result;
	if (nr == __NR_epoll_ctl)
		epoll_note(t, w);
	else if (nr == __NR_close)
		closed_note(t, w);
}

/* A child's end, as waitid tells it; with WNOWAIT it will be told again. */
static void waited(struct thread *t, const struct walk *w)
{
	uint8_t info[SIGINFO_SIZE] = { 0 };
	int32_t status;

	if (!w->args[2] && w->args[0] == P_PID && !w->result)
		follow_reaped(t, (int32_t)w->args[1], 0);
	if (!w->args[2] || w->args[3] & WNOWAIT || target_in(info, w->args[2], sizeof(info)))
		return;
	status = info_int(info, INFO_STATUS);
	switch (info_int(info, INFO_CODE)) {
	case CLD_EXITED:
		follow_reaped(t, info_int(info, INFO_PID), (status & 0xff) << 8);
		break;
	case CLD_KILLED:
	case CLD_DUMPED:
		follow_reaped(t, info_int(info, INFO_PID), status & 0x7f);
		break;
	}
}

/* What the follower must remember of a call that it did not make. */
static void answer_note(struct thread *t, const struct walk *w, long nr)
{
	int32_t status = 0;

	if (w->result < 0)
		return;
	if (inner_makes(nr))
		inner_made(w);
	mirror_note(t, w);
	files_moved(w->desc, w->args);
	if (w->desc->result == KIND_FD) {
		take_opened(w->result);
		files_opened(t, w->desc, w->args, w->result);
	}
	switch (nr) {
	case __NR_epoll_wait:
	case __NR_epoll_pwait:
	case __NR_epoll_pwait2:
		epoll_answered(w);
		break;
	case __NR_clock_gettime:
	case __NR_gettimeofday:
	case __NR_time:
		clock_note(w, nr);
		break;
	case __NR_accept:
	case __NR_accept4:
		file_accepted((long)w->args[0], w->result);
		break;
	case __NR_kill:
	case __NR_rt_sigqueueinfo:
	case __NR_rt_tgsigqueueinfo:
		crash_sent(t, nr, w->args);
		break;
	case __NR_tkill:
		order_sent(t, (int32_t)w->args[0]);
		crash_sent(t, nr, w->args);
		break;
	case __NR_tgkill:
		order_sent(t, (int32_t)w->args[1]);
		crash_sent(t, nr, w->args);
		break;
	case __NR_shmget:
		shm_made(w->args, w->result);
		break;
	case __NR_shmctl:
		shm_changed(w->args);
		break;
	case __NR_alarm:
	case __NR_setitimer:
	case __NR_timer_create:
	case __NR_timer_settime:
	case __NR_timer_delete:
	case __NR_fcntl:
		kept_note(t, nr, w->args, w->result);
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

/* Both versions make the call; what the leader got counts. */
static long both(struct thread *t, const struct call_desc *d, long nr, int64_t leaders)
{
	long own;

	if (nr == __NR_shmat)
		return shm_attach(t, (uint64_t)leaders);
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
static long answered(struct thread *t, const struct walk *w, long nr)
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

	answered(t, w, nr);
	if (boot.runtimes)
		inputs_note(t, w, nr);
	if (w->desc->class == CLASS_BOTH && (result >= 0 || took_effect(result))) {
		t->answered = 0;
		result = both(t, w->desc, nr, result);
	}
	if (flags & EVENT_SIGNAL_NEXT)
		signal_next(t, nr, result);
	return result;
}

/* --- connections that this version does not know: see scope.c -------------------------- */


/*
 * What the leader's wait brought is about other connections alone.  So is the end of
 * a time that this version would not have waited for.
 */
static bool wait_is_others(struct walk *w, const struct event *e)
{
	bool none = !e->result;

	if (e->result > 0)
		w->result = epoll_known(w);
	return !w->result && !(e->flags & EVENT_SIGNAL_NEXT) &&
	       (!none || (w->desc->nr != __NR_epoll_pwait2 && (int32_t)w->args[3] < 0));
}

/*
 * How a server watches a listening socket may go by how many it has accepted: nginx
 * registers it anew after every sixteenth.
 */
static bool is_rearming(long nr, uint64_t fd)
{
	return is_stateless() && nr == __NR_epoll_ctl && file_listens((int32_t)fd);
}

static long wait_passed(struct thread *t)
{
	follow_take(t);
	return PASSED;
}

/* The event behind this one that a call answers; NULL: there will be none. */
static const struct event *call_behind(struct thread *t)
{
	for (unsigned n = 1; n < AHEAD_EVENTS && follow_behind(t, n, NULL, NULL); n++) {
		struct reader ahead = t->reader;
		const struct event *e = reader_peek(&ahead);

		for (unsigned i = 0; e && i < n; i++)
			e = reader_next(&ahead);
		if (e && !event_aside(e))
			return e;
	}
	return NULL;
}

/*
 * The leader has accepted a connection that we do not hear of.  If it goes on to
 * accept, so do we; else there was none.
 */
static bool accept_is_over(struct thread *t, const struct event *e)
{
	const struct event *next;

	if (e->flags & EVENT_SIGNAL_NEXT)
		return true;
	next = call_behind(t);
	return !next || next->kind != EVENT_CALL || next->call != e->call ||
	       next->arg[0] != e->arg[0];
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

static long answer(struct thread *t, struct walk *w, const struct event *e, long nr)
{
	int64_t result = e->result;
	struct reader ahead = t->reader;
	struct mismatch m;
	uint8_t flags;

	follow_note_first(t, w, nr, result);
	if (comes_after(w->desc, e))
		order_wait_all_told(t, e->seq);
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

/* --- matching --------------------------------------------------------------------------------- */

/*
 * How much a program has room for may go by malloc_usable_size, which a sanitizer
 * answers otherwise: it has room for what came.
 */
static bool room_is_enough(const struct event *e, const struct walk *w, long nr)
{
	return boot.runtimes && (nr == __NR_read || nr == __NR_recvfrom) && e->call == nr &&
	       e->result <= (int64_t)w->args[2];
}

/* Does the event tell of this very call, as far as its values say? */
static bool event_is(const struct event *e, struct walk *w, long nr, struct mismatch *m)
{
	uint64_t args[CALL_ARGS];
	struct walk as = *w;

	w->result = as.result = e->result;
	if (e->kind == EVENT_CALL && w->desc && room_is_enough(e, w, nr)) {
		bytes_copy(args, w->args, sizeof(args));
		args[2] = e->arg[1];
		as.args = args;
	}
	return e->kind == EVENT_CALL && e->call == nr && w->desc && match_values(&as, e, m);
}

/* Locks have an order of their own: see locks.c. */
bool event_passable(const struct event *e)
{
	return event_is_plain(e) && (event_aside(e) || event_elastic(e));
}

/*
 * Answers a query or a clock from the events up to the next one that is neither:
 * in what order such calls are made means nothing, and either version may make
 * some that the other does not.  The answered event stays in its place with a bit
 * in t->ahead.  False: the leader made no such call here.  *signal: its handler ran
 * behind it.
 */
static bool answer_elastic(struct thread *t, struct walk *w, long nr, long *result, bool *signal)
{
	struct reader ahead = t->reader;
	const struct event *e = reader_peek(&ahead);
	struct mismatch m;
	bool passed = false;	/* something of a connection: what is missing need not come */

	for (unsigned i = 0; i < AHEAD_EVENTS; i++) {
		struct reader copy;

		while (!e) {
			ahead = t->reader;
			if (passed || !follow_behind(t, i, NULL, NULL))
				return false;
			e = reader_peek(&ahead);
			for (unsigned n = 0; e && n < i; n++)
				e = reader_next(&ahead);
		}
		copy = ahead;
		copy.ahead = true;	/* others before it are still to be taken */
		if (!(t->ahead >> i & 1) && event_is(e, w, nr, &m) &&
		    match_memory(&copy, w, true, &m)) {
			t->ahead |= 1ull << i;
			*signal = reader_flags(&copy) & EVENT_SIGNAL_NEXT;
			*result = answered(t, w, nr);
			return true;
		}
		passed |= apart_passes(t, e);
		if (!event_passable(e) && !apart_passes(t, e))
			return false;
		e = reader_next(&ahead);
	}
	return false;
}

bool follow_told_value(struct thread *t, long nr, int64_t *value)
{
	uint64_t args[CALL_ARGS];
	struct walk w;
	bool told, signal = false;
	long result = 0;

	call_walk(t, &w, args, nr);
	/* Release: as in follow_event_or. */
	__atomic_store_n(&t->waits, 1, __ATOMIC_RELEASE);
	told = answer_elastic(t, &w, nr, &result, &signal);
	__atomic_store_n(&t->waits, 0, __ATOMIC_RELAXED);
	if (t->ahead & 1 && reader_peek(&t->reader))
		follow_take(t);
	*value = result;
	return told;
}

/* So many were answered behind this one that nobody will ask for it any more. */
static bool ahead_full(const struct thread *t, const struct event *e)
{
	return t->ahead >> (AHEAD_EVENTS - 1) && event_elastic(e);
}

/* Is the call the leader's next one, behind queries that this version may not make? */
static bool comes_next(struct thread *t, struct walk *w, long nr)
{
	struct mismatch m;

	for (unsigned i = 0; i < AHEAD_EVENTS && follow_behind(t, i, NULL, NULL); i++) {
		struct reader ahead = t->reader;
		const struct event *e = reader_peek(&ahead);

		for (unsigned n = 0; e && n < i; n++)
			e = reader_next(&ahead);
		if (!e || !event_passable(e))
			return !e || e->kind == EVENT_SIGNAL || event_is(e, w, nr, &m);
	}
	return true;
}

/*
 * Whether a thread rings an eventfd again depends on whether the one that it wakes
 * has been there: it is asked by bare atomics.  What is said of it is not compared.
 */
static bool is_ring(const struct event *e)
{
	return !is_strict() && e->kind == EVENT_CALL && e->call == __NR_write &&
	       inner_is_bell((long)e->arg[0]) && !(e->flags & EVENT_SIGNAL_NEXT);
}

static bool own_ring(const struct walk *w, long nr)
{
	return !is_strict() && nr == __NR_write && inner_is_bell((long)w->args[0]) &&
	       w->args[2] == sizeof(uint64_t);
}

/* The event is another call's, or has another content. */
static enum step_result differs(struct thread *t, const struct event *e, struct walk *w, long nr,
				const struct mismatch *m, long *result)
{
	bool elastic = event_elastic(e) || is_ring(e) ||
		       (e->kind == EVENT_CALL && is_rearming(e->call, e->arg[2]));
	long reply;

	if (e->kind == EVENT_CALL && e->call == nr && files_drawn(t, w, nr))
		return STEP_AGAIN;
	if (is_rearming(nr, w->args[2])) {
		t->answered = 1;
		*result = 0;
		return STEP_OWN;
	}
	/* A query may be for what comes behind a call that a rule adds. */
	if (rules_given() && !(elastic && comes_next(t, w, nr))) {
		enum step_result step = rules_meet_unexpected(t, w, nr, result);

		if (step != STEP_NO_RULE)
			return step;
	}
	if (elastic) {
		follow_take(t);
		return STEP_AGAIN;
	}
	if (own_ring(w, nr)) {
		t->answered = 1;
		*result = sizeof(uint64_t);
		return STEP_OWN;
	}
	reply = follow_diverged(t, w, nr, m->what, m);
	if (reply == ANSWER_IGNORE)
		return ignore_difference(t, e, w, nr, result);
	if (reply != ANSWER_RETRY)
		OWN1(__NR_exit_group, 1);
	return STEP_AGAIN;
}

/* Takes what was answered out of order, and all before it: nobody will ask for that any more. */
static void ahead_take(struct thread *t)
{
	const struct event *e;

	while (t->ahead && (e = reader_peek(&t->reader))) {
		if (!(t->ahead & 1))
			lock_passed(t, e);
		follow_take(t);
	}
}

/* Meets one event; STEP_AGAIN: the next one is to be looked at. */
static enum step_result meet(struct thread *t, const struct event *e, struct walk *w, long nr,
			     long *result)
{
	struct mismatch m = { DIFFERS_CALL, 0, 0 };

	if (e->kind == EVENT_SIGNAL) {
		follow_signal(t, e);
		*result = CALL_RESTART;
		return STEP_DONE;
	}
	if (e->kind != EVENT_CALL && !(event_aside(e) && is_elastic(w->desc))) {
		lock_passed(t, e);
		if (e->kind == EVENT_FILE)
			mirror_placed(e);
		follow_take(t);
		return STEP_AGAIN;
	}
	if (is_elastic(w->desc)) {
		bool signal = false, told = answer_elastic(t, w, nr, result, &signal);

		if (signal) {
			ahead_take(t);
			signal_next(t, nr, *result);
		}
		if (t->ahead & 1)
			follow_take(t);
		if (!told && ahead_full(t, e)) {
			follow_take(t);
			return STEP_AGAIN;
		}
		if (!told && rules_given()) {
			enum step_result step = rules_meet_unexpected(t, w, nr, result);

			if (step != STEP_NO_RULE)
				return step;
		}
		if (!told)
			*result = own_query(t, nr);
		return told ? STEP_DONE : STEP_OWN;
	}
	if (e->flags & EVENT_PASSED && !(event_is(e, w, nr, &m) && accept_is_over(t, e))) {
		follow_take(t);
		return STEP_AGAIN;
	}
	if (event_is(e, w, nr, &m)) {
		*result = answer(t, w, e, nr);
		if (*result == PASSED)
			return STEP_AGAIN;
		if (*result != -ENOTUNIQ)
			return STEP_DONE;
		m = t->mismatch;
	}
	return differs(t, e, w, nr, &m, result);
}

static long stream_meet(struct thread *t, struct walk *w, long nr)
{
	struct window_row *row = window_note(t, w->args, nr);
	enum step_result step;
	long result = 0;

	for (;;) {
		const struct event *e;

		if (rules_given())
			apart_restore(t);
		step = rules_given() ? rules_meet_first(t, w, nr, &result) : STEP_NO_RULE;
		if (step == STEP_DONE || step == STEP_OWN) {
			window_end(row, result, ROW_OWN);
			return result;
		}
		e = follow_event(t);
		if (e && apart_given(t) &&
		    apart_meet(t, w, nr, &e, &result) == APART_ANSWERED) {
			t->answered = 1;
			window_end(row, result, ROW_OWN);
			return result;
		}
		if (!e) {
			rules_forget(t);
			return lead_call(t, (int32_t)t->frame.rax);
		}
		window_event(t, row, e);
		if (w->desc && w->desc->class == CLASS_LIFE && e->kind == EVENT_CALL &&
		    e->call == nr) {
			window_end(row, e->result, ROW_ANSWERED);
			result = follow_life(t, nr, e);
			if (result == PASSED)
				continue;
			return result;
		}
		step = rules_given() && e->kind == EVENT_CALL ? rules_meet(t, w, nr, &result)
							      : STEP_NO_RULE;
		if (step == STEP_NO_RULE)
			step = meet(t, e, w, nr, &result);
		if (step == STEP_AGAIN)
			continue;
		window_end(row, result, step == STEP_OWN ? ROW_OWN : ROW_ANSWERED);
		return result;
	}
}

static long follow_stream(struct thread *t, struct walk *w, long nr)
{
	long result = stream_meet(t, w, nr);

	if (rules_given())
		apart_restore(t);
	return result;
}

/*
 * A call that no twin has.  Masks stay the program's: a runtime that blocks signals
 * for a while would be seen by the program's own calls, and there are none to block.
 */
static long untold_call(struct thread *t, long nr)
{
	const struct call_desc *d = call_find(nr);
	long result;

	if (nr == __NR_rt_sigprocmask && boot.runtimes)
		t->frame.rsi = 0;
	report_tell(t, nr);
	result = d ? ids_call(t, d, nr) : call_serve(t, nr);
	if (result == -ENOENT && (nr == __NR_open || nr == __NR_openat))
		result = mirror_loaded(t, nr);
	return result;
}

static long follow_walked(struct thread *t, struct walk w, long nr);

static __attribute__((noinline)) long follow_kept(struct thread *t, struct walk w, long nr)
{
	struct sent sent;

	step_keep(&w, &sent);
	return follow_walked(t, w, nr);
}

long follow_call(struct thread *t, long nr)
{
	uint64_t args[CALL_ARGS];
	struct walk w;

	if (t->faulting)
		fault_look(t);
	nr = call_walk(t, &w, args, nr);
	w.room = room_before(&w);
	return w.desc && step_aliases(&w) ? follow_kept(t, w, nr) : follow_walked(t, w, nr);
}

static long follow_walked(struct thread *t, struct walk w, long nr)
{
	const uint64_t *args = w.args;
	long result = 0;

	if (seam_opened(t, &w))
		return -ENOENT;
	if (signal_asks(t, nr, &result))
		return result;
	if (file_left(w.desc, args, &result)) {
		t->answered = 1;
		return result;
	}
	if (nr == __NR_set_tid_address) {	/* ld.so's, too: libc keeps the id */
		call_serve(t, nr);
		return t->vtid;
	}
	if (w.desc && (w.desc->class != CLASS_LOCAL || nr == __NR_mmap) ? caller_is_local(t, nr) :
									  local_site(t))
		return untold_call(t, nr);
	if ((private_count || private_may_open(nr)) && private_call(t, nr, &result))
		return result;
	if (rules_given() && w.desc && w.desc->class == CLASS_LOCAL &&
	    rules_meet_local(t, &w, nr, &result) != STEP_NO_RULE)
		return result;
	if (nr == __NR_mmap)
		return follow_mmap(t);
	if (!w.desc || w.desc->class == CLASS_LOCAL)	/* none: the kernel has none either */
		return nr == __NR_futex ? follow_futex(t) : call_serve(t, nr);
	return follow_stream(t, &w, nr);
}

/* The stream's word on how the execve ended that brought us here. */
void follow_begin(struct thread *t)
{
	const struct event *e;

	reader_attach(&t->reader, &streams, t->lane);
	t->reader.cursor->owner = t->tid;
	t->reader.cursor->pid = t->pid;
	if (boot.vpid)
		t->vpid = t->vtid = boot.vpid;
	if (!t->reader.pos)
		return;
	e = follow_event(t);
	if (e && e->kind == EVENT_EXEC)
		follow_take(t);
}
