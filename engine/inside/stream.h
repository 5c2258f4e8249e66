/*
 * What the files of a version with company share: host.c (waiting, memory),
 * lead.c (telling), follow.c (being told), follow_life.c (threads and programs
 * of a follower), follow_files.c (mappings), follow_epoll.c (whose data is whose).
 */
#ifndef MVE_INSIDE_STREAM_H
#define MVE_INSIDE_STREAM_H

#include "engine/core/walk.h"
#include "engine/inside/gate/thread.h"

extern struct streams streams;

/* host.c */
void stream_begin(struct thread *t);
void stream_child(struct thread *c, uint32_t lane);
/* What the slot says of the thread's place in the streams. */
void stream_describe(struct thread *t);
/* The thread's lane as the monitor knows it. */
static inline uint32_t lane_known(const struct thread *t)
{
	return boot.realm * LANES + t->lane;
}
int host_lane(struct writer *w);
/* What was told in a spare chunk: waits for another to give for it. */
void host_settle(struct writer *w);
long target_swap(uint64_t at, int32_t was, int32_t now);
void local_add(uint64_t from, uint64_t len);
/* Sleeps until conduct.change is not `seen`, or for ns at most. */
void change_wait(uint32_t seen, uint64_t ns);
uint32_t change_now(void);
/* The same, until a time of CLOCK_MONOTONIC, in a lane where sleepers_wake() wakes, too. */
void lane_wait(uint32_t lane, uint32_t seen, uint64_t end);
/* Wakes all that sleep there, of every version; the page need not be ours. */
void change_wake(void);
void sleepers_wake(const struct thread *t);
uint64_t clock_ns(int clock);

/* Does anybody listen to this thread? */
static inline bool stream_followed(const struct thread *t)
{
	return (streams_followers(&streams, t->writer.section) & t->writer.lane->told) != 0;
}

/*
 * The thread's twins, if one of them sleeps long; one that is just about to may be missed.
 * Once for each sleep: who has been woken may have to wait for a processor.
 */
static inline void sleepers_look(struct thread *t)
{
	uint32_t bits = streams_followers(&streams, t->writer.section);

	for (; bits; bits &= bits - 1) {
		uint32_t v = (uint32_t)__builtin_ctz(bits);
		uint8_t sleep = __atomic_load_n(&streams_section(&streams, v)->asleep[t->lane],
						__ATOMIC_RELAXED);

		if (!(sleep & 1) || sleep == t->roused[v])
			continue;
		t->roused[v] = sleep;
		sleepers_wake(t);
	}
}

/* Code of the loader or of an allocator: each version's own affair. */
static inline bool local_code(uint64_t at)
{
	for (uint32_t i = 0; i < boot.locals; i++)
		if (at > boot.local[i].from && at <= boot.local[i].to)
			return true;
	return false;
}

static inline bool local_site(const struct thread *t)
{
	return local_code(t->frame.site_end);
}

static inline void call_args(const struct frame *f, uint64_t args[CALL_ARGS])
{
	for (unsigned i = 0; i < CALL_ARGS; i++)
		args[i] = f->arg[i];
}

/*
 * callers.c: the call has no twin, for the loader, an allocator or a sanitizer's runtime
 * makes it for itself.
 */
bool caller_is_local(struct thread *t, long nr);
/* A lock that libc takes: whether a runtime made it do so, to look at what is loaded. */
bool caller_in_libc(uint64_t return_address);
bool caller_locks(struct thread *t, uint64_t return_address, uint64_t rsp);
/* The call stands in a sanitizer's runtime itself. */
bool caller_is_runtime(const struct thread *t);
void part_add(uint64_t from, uint64_t len, uint32_t kind, uint64_t unwind);

/* inputs.c: for a follower with a sanitizer. */
void inputs_note(const struct thread *t, const struct walk *w, long nr);
void inputs_born(const struct thread *t);
/* A call that no twin has: its words, if a runtime reports by it, and the end. */
void report_tell(struct thread *t, long nr);

/* Others may meet what the call gives before it is told: it has this number. */
static inline void giving_set(struct thread *t, uint64_t seq)
{
	/* Release: pairs with gives_before; the call is still to be made. */
	__atomic_store_n(&t->writer.lane->giving, (uint32_t)seq | !(uint32_t)seq,
			 __ATOMIC_RELEASE);
}

static inline void giving_end(struct thread *t)
{
	/* Release: pairs with gives_before; the event is published. */
	__atomic_store_n(&t->writer.lane->giving, 0, __ATOMIC_RELEASE);
}

/* tick.c */
extern uint32_t ticks;
extern struct thread *tick_holder;
bool tick_begins(struct thread *t, const struct walk *w, long nr);
uint64_t tick_number(struct thread *t, bool hold);
void tick_told(struct thread *t);
void tick_stand(const struct thread *t);
void tick_end(struct thread *t);
void ticks_prepare(void);
void ticks_child(void);

/* What the thread was told by a clock it has written down. */
static inline void tick_over(struct thread *t)
{
	if (__atomic_load_n(&tick_holder, __ATOMIC_RELAXED) == t)
		tick_end(t);
}

/* Since the last event of this thread a clock has ticked in another: its next one's flag. */
static inline uint8_t tick_shown(struct thread *t, uint32_t now)
{
	tick_over(t);
	if (now == t->ticks.shown)
		return 0;
	/* Release: pairs with is_between. */
	__atomic_store_n(&t->ticks.shown, now, __ATOMIC_RELEASE);
	return EVENT_TICK;
}

/*
 * Before the next thing is told: what was told in a spare chunk is paid for.  The thread may
 * wait for it where it stands, with nothing done that a tick could be on the wrong side of.
 */
static inline void lead_settle(struct thread *t)
{
	if (!t->writer.owes)
		return;
	__atomic_store_n(&t->away, AWAY, __ATOMIC_RELEASE);
	host_settle(&t->writer);
	__atomic_store_n(&t->away, 0, __ATOMIC_RELEASE);
}

/* lead.c */
void lead_forks(struct thread *t);
long call_serve(struct thread *t, long nr);
uint64_t lead_seq(void);
uint64_t lead_seq_shown(struct thread *t, uint8_t *flags);
void lead_prepare(void);
long call_walk(struct thread *t, struct walk *w, uint64_t args[CALL_ARGS], long nr);
uint64_t room_before(struct walk *w);
long lead_call(struct thread *t, long nr);
/* more: another comes at once, before the handler's first instruction. */
void lead_signal(struct thread *t, const uint8_t *info, bool more);
/* An event of a call that was made. */
void call_tell(struct thread *t, const struct walk *w, long nr);
const struct recipe *lead_recipe(long nr);
/* From here on places_made() is asked. */
void lead_looks_at_places(void);
/* Behind such a call a leader's thread wakes its twins. */
bool lead_wakes(long nr);
/* An event of no call. */
void lead_note(struct thread *t, enum event_kind kind, uint64_t value);
/* An event of no call with a payload, piece by piece. */
struct event *lead_event(struct thread *t, enum event_kind kind, long nr, int64_t result);
void payload_tell(struct thread *t, const void *bytes, size_t size);
void lead_event_end(struct thread *t);
/* Tells of something that has no arguments and was done already. */
void lead_told(struct thread *t, long nr, int64_t result);
void lead_exec_done(struct thread *t, int64_t outcome);
void lead_begin(struct thread *t);
void lead_resume(struct thread *t);

/* realm.c */
/* A call of this number may have given or taken rights; a leader's has. */
bool realm_may_change(long nr);
void realm_changed(struct thread *t, long nr);
/* They changed when the process could not leave its sections: if it can now, it does. */
void realm_catch_up(struct thread *t);
/* A follower has come to an EVENT_MOVED. */
void realm_follow(struct thread *t, const struct event *e);

/* crash.c */
/* The leader's call is about to kill this process; true: another leads, let it. */
bool crash_call(struct thread *t, long nr, const uint64_t *args);
/* It is about to exit: the same, if that is in a handler of a deadly signal. */
bool crash_exits(struct thread *t);
/* The monitor was told of this version's end: if another leads, the thread does no more. */
void crash_leave(struct thread *t);
/*
 * The signal that has cut its call short may be its death: true, it is, and to followers
 * there was no call; else they wait in front of it until that is known.
 */
bool crash_cuts(struct thread *t);
/* A follower's call is answered: what its leader sent itself by it, it would have, too. */
void crash_sent(const struct thread *t, long nr, const uint64_t *args);
/* The leader has sent a deadly signal by this event's call. */
bool crash_was_sent(const struct event *e);
/* A thread that is faulting makes a call, perhaps behind its handler. */
void fault_look(struct thread *t);
void fault_end(struct thread *t);
void fault_lead(struct thread *t);
/* The place is behind the fault of the lane's thread; whose version has died. */
bool fault_behind(const struct section *from, uint32_t lane, uint64_t pos);
bool fault_crashed(uint32_t source);
bool fault_stands(const struct thread *o);
void fault_wait(uint32_t seen);

/* inner.c */
bool inner_is(long fd);
bool inner_is_bell(long fd);
/* A call of this number may make inner descriptors; one did. */
bool inner_makes(long nr);
void inner_made(const struct walk *w);
void inner_closed(long fd);

/* private.c */
extern uint32_t private_count;	/* open ones: nothing to ask where it is 0 */
bool private_may_open(long nr);
/* Opens a private file, or works on one: the stream is not told. */
bool private_call(struct thread *t, long nr, long *result);
/* A follower's own descriptor goes where no number of the stream will be. */
long number_high(long fd);

/* seam.c */
bool seam_is_call(long nr);
/* A call of this row may open the path of a seam. */
bool seam_may_open(const struct call_desc *d);
/* A request begins here: told, and counted. */
void seam_pass(struct thread *t);
/* The lane is told to who keeps the start. */
bool seam_in_start(const struct thread *t);
/* The first connections have come and gone. */
bool scope_start_over(void);
/* A follower has read what the start told: goes on in the leader's stream; false: not yet. */
bool seam_join(struct thread *t);
/* The call is the opening of a path that only says so. */
bool seam_opened(struct thread *t, const struct walk *w);

/* scope.c: a stateless server, whose followers hear of some connections only */
void scope_prepare(void);
static inline bool is_stateless(void)
{
	return streams.conduct->sampling.stateless;
}
/* What a wait has brought of which followers know: nothing, connections to accept, or more. */
enum brings { BRINGS_NOTHING, BRINGS_CLIENTS, BRINGS_KNOWN };
/* Followers know this descriptor, and whether connections come from it. */
bool scope_knows(int32_t fd, bool *listens);
/* What of a call matters here, the same at each call of a row. */
struct scope_row {
	uint8_t fds;		/* arguments that are descriptors, as bits */
	uint8_t what;		/* enum scope_what */
};
enum scope_what {
	SCOPE_ACCEPTS	= 1 << 0,
	SCOPE_WAITS	= 1 << 1,	/* for any connection */
	SCOPE_POLLS	= 1 << 2,	/* by epoll */
	SCOPE_SETS	= 1 << 3,	/* what epoll waits for */
	SCOPE_BEARS	= 1 << 4,	/* descriptors come, go or change */
	SCOPE_EVERYBODYS = 1 << 5,	/* told whatever is going on */
};
struct scope_row scope_row(const struct call_desc *d);
/* sample.c: what a stateless leader tells of a call. */
enum sample_way {
	SAMPLE_KEPT,
	SAMPLE_TOLD,
	SAMPLE_PASSED,		/* as an accept whose connection followers do not hear of */
};
/* It was made in a scope that is told. */
enum sample_way sample_made(struct thread *t, const struct walk *w, struct scope_row row);
/* It was made, and is kept. */
void sample_kept(struct thread *t, const struct walk *w, struct scope_row row);
/* What was put off is told now, before something else is. */
void sample_due(struct thread *t);
/* The call is about to be made: do followers hear of it? */
bool scope_enter(struct thread *t, const struct walk *w, struct scope_row row);
/* It was made; false: of an accept, whose connection they do not hear of. */
bool scope_leave(struct thread *t, const struct walk *w, bool told, struct scope_row row);
/* A close is about to be made. */
void scope_closes(struct thread *t, const struct walk *w);
/* A call that is not told may be about a connection that is: then who follows is dropped. */
void scope_stray(const struct thread *t, const uint64_t *args, uint8_t fds);
/* A follower is told from here on: it knows what there was at the start, and what comes. */
void scope_renew(bool from_start, bool alone);
/* What telling of a call costs: when that is begun, if it is worth a look; and what it was. */
uint64_t scope_cost_begin(const struct walk *w);
void scope_cost_end(uint64_t begun);
/* No descriptor is open that only those know who follow now; `wanted`: see to it. */
bool scope_between(bool wanted);

#define AHEAD_EVENTS	64	/* that may be answered before their turn */

/* follow.c */
/* Nobody will ever ask for the follower again. */
bool follow_is_orphan(const struct thread *t);
long follow_call(struct thread *t, long nr);
/* What the leader got from the same soft call, if it made one here. */
bool follow_told_value(struct thread *t, long nr, int64_t *value);
/* The next event; NULL when there is none left and this thread leads now. */
const struct event *follow_event(struct thread *t);
/* The same; NULL also, after a look or two, where over(what) says so. */
const struct event *follow_event_or(struct thread *t, bool (*over)(void *), void *what);
/* Takes an EVENT_SIGNAL: the program's handler runs at the end of this call. */
long follow_futex(struct thread *t);
void follow_ended(struct thread *t);
void follow_signal(struct thread *t, const struct event *e);
uint8_t follow_take(struct thread *t);
bool follow_payload(struct reader *r, void *to, size_t size);
bool follow_behind(struct thread *t, unsigned n, bool (*over)(void *), void *what);
void place_note(struct thread *t, uint64_t place, uint64_t stack, const uint64_t kept[KEPT]);
void follow_begin(struct thread *t);

#define PASSED	(-513L)		/* the event was not for us, another is; no result of a call */

/* follow_life.c */
long follow_life(struct thread *t, long nr, const struct event *e);
void follow_reaped(struct thread *t, int32_t vpid, int32_t status);
void child_ids(struct thread *c);
/* The descriptor that a clone has given for the child; -1: it was asked for none. */
int64_t clone_pidfd(const struct thread *t, long nr);

/* follow_files.c */
void files_opened(struct thread *t, const struct call_desc *d, const uint64_t *args, long fd);
void files_closed(long fd);
/* It was opened by a path. */
bool file_known(long fd);
/* A connection has come. */
void file_accepted(long listening, long fd);
void files_join(void);
/* What the process has open, before it gives that up. */
void files_learn(void);
/* A call on a connection of the start, after it: answered here. */
bool file_left(const struct call_desc *d, const uint64_t *args, long *result);
bool file_listens(long fd);
/* It is a connection that came by an accept. */
bool file_is_client(long fd);
/* To the folder that the leader has opened under this number. */
long files_chdir(long fd);
/* Both were opened by the same path. */
bool files_same(long fd, long other);
void files_copied(long from, long to);
long follow_mmap(struct thread *t);

/* segments.c: what the leader got by shmget, shmctl and shmat; and shmdt, of any version. */
void shm_made(const uint64_t *args, long id);
void shm_changed(const uint64_t *args);
long shm_attach(struct thread *t, uint64_t leaders);
long shm_detach(struct thread *t);

/* A name that libc has drawn is the leader's now: the call is to be compared again. */
bool files_drawn(struct thread *t, const struct walk *w, long nr);
/* Our own descriptor of the file under this number, for an execve by it. */
void files_lend(long fd);
/* A call that gives a path to another file, or takes it away. */
void files_moved(const struct call_desc *d, const uint64_t *args);

/* mirror.c: a leader's mapping of a descriptor; and what a call does to a mapped file. */
void mirror_tell(struct thread *t, const uint64_t args[CALL_ARGS], int64_t result);
void mirror_note(struct thread *t, const struct walk *w);
void mirror_placed(const struct event *e);
/* places.c: behind a leader's calls on descriptors, once it has told a file that it writes. */
void places_made(struct thread *t, const struct walk *w, uint64_t seq);
/* What the loader opens for itself, and a follower's loader does not find any more. */
void mirror_tell_loaded(struct thread *t, long nr, int64_t fd);
long mirror_loaded(struct thread *t, long nr);
/* The leader's descriptors are here: memfds among them become their mirrors. */
void mirrors_take(void);

/* follow_epoll.c */
void epoll_changed(const struct walk *call, const uint8_t leaders[12]);
void epoll_closed(long fd);
void epoll_answered(const struct walk *call);
/* A stateless leader's: who is registered with which data. */
void epoll_noted(const struct walk *call);
enum brings epoll_brings(const struct walk *call);
/* Takes what this version never registered out of an answer; what is left. */
int64_t epoll_known(const struct walk *call);
/* Where a peer sends no more there is something to read, also if the leader did not wait for it. */
void epoll_ends(const struct walk *call);
/* The descriptor is registered somewhere. */
bool epoll_has(int32_t fd);
/* The leader's data are those of a registration of the descriptor. */
bool epoll_is_of(int32_t epfd, uint64_t leaders, int32_t fd);
/* One event of a descriptor, for a wait that no event answers; how many. */
int64_t epoll_make(const struct walk *call, int32_t fd, uint32_t events);
/* Our own registration has changed, and the leader's has not. */
void epoll_own(const struct walk *call);
bool epoll_is_wait(long nr);
void epoll_led(struct thread *t, const struct walk *call, long nr);
/* Before and behind a leader's epoll_ctl. */
void epoll_lead(struct thread *t, uint64_t args[CALL_ARGS]);
void epoll_lead_end(struct thread *t, long result);
bool epoll_inherited(void);
/* A follower's: no registration found its table full. */
bool epoll_all_known(void);

/* own_query.c: a query or a clock that the leader did not make. */
long own_query(struct thread *t, long nr);

/* follow_clock.c */
void clock_note(const struct walk *call, long nr);
/* A reading that the leader did not make by this call; false: of no such clock. */
bool clock_own(struct thread *t, long nr, long *result);

/* What is got here another thread has given: it must have come so far. */
static inline bool comes_after(const struct call_desc *d, const struct event *e)
{
	return e->flags & EVENT_AFTER || (d && d->result == KIND_FD && e->result >= 0);
}

/* apart.c: connections have a sequence of calls each. */
#define APART_NONE	(-1)	/* no connection's */
#define APART_ALL	(-2)	/* whosever */
enum apart { APART_GO_ON, APART_ANSWERED };
bool apart_given(const struct thread *t);
/* Whose the event is: a connection, or APART_NONE. */
int32_t apart_of(const struct event *e);
bool apart_passes(const struct thread *t, const struct event *e);
/* Before a call meets an event: which one it is, if it is not the front. */
enum apart apart_meet(struct thread *t, const struct walk *w, long nr, const struct event **e,
		      long *result);
void apart_restore(struct thread *t);
/* The event so many behind the front was met before its turn. */
bool apart_is_taken(const struct thread *t, unsigned i);
void apart_shift(struct thread *t);
void apart_forget(struct thread *t);
/* Takes the looked-at event, which is not the front. */
uint8_t apart_take(struct thread *t);
bool apart_is_behind(const struct thread *t);

/* For its neighbours: what follow.c does with a call. */
enum step_result { STEP_DONE, STEP_OWN, STEP_AGAIN, STEP_NO_RULE };
long follow_told(struct thread *t, struct walk *w, long nr, uint8_t flags);
bool event_passable(const struct event *e);
long follow_diverged(struct thread *t, struct walk *w, long nr, uint32_t what,
		     const struct mismatch *m);
/*
 * What other threads may go by as soon as the event is taken: the data of a registration,
 * and that a descriptor is free for the next.
 */
void follow_note_first(struct thread *t, struct walk *w, long nr, int64_t result);
void lock_passed(struct thread *t, const struct event *e);

/* ignore.c: the call differs from the event, and nobody is to mind. */
enum step_result ignore_difference(struct thread *t, const struct event *e, struct walk *w,
				   long nr, long *result);

/* follow_rules.c: nothing of it is called unless rules_given(). */
enum step_result rules_meet(struct thread *t, struct walk *w, long nr, long *result);
/* Whatever the next event is, and before there is one. */
enum step_result rules_meet_first(struct thread *t, struct walk *w, long nr, long *result);
/* The call is not the next event's. */
enum step_result rules_meet_unexpected(struct thread *t, struct walk *w, long nr, long *result);
enum step_result rules_meet_local(struct thread *t, struct walk *w, long nr, long *result);
/* A lock is no call: what rules drop from the stream's front, whatever is called next. */
bool rules_drop_front(struct thread *t);
/* A call of a rule opened it: it is really there. */
bool rules_opened(uint64_t fd);
/* For a report: the nearest rule goes into the slot. */
void rules_note_nearest(struct thread *t, struct walk *w, long nr);
void rules_forget(struct thread *t);

static inline bool rules_given(void)
{
	return __builtin_expect(brief()->rules != 0, 0);
}

/* overdue.c */
bool overdue_begin(struct thread *t);
bool overdue_again(struct thread *t);
void overdue_end(struct thread *t);
void overdue_forget(struct thread *t);

/* park.c */
struct ucontext_raw;
bool park_wanted(void);
void park_show(struct thread *t);

/* standing.c: the thread comes to stand, and goes on. */
void standing_begin(struct thread *t);
void standing_end(struct thread *t);
void park_come(struct thread *t, struct ucontext_raw *uc);
bool park_at_exit(struct thread *t);
void park_reset(void);

/* take.c */
bool follow_promoted(struct thread *t);
void take_reset(void);
/* A follower's process begins; a descriptor has been given to its leader's. */
void take_begin(void);
void take_opened(int64_t fd);
/* This process leads, whatever this thread has still to read. */
bool take_is_done(void);
/* A leader's program is about to close a descriptor. */
void take_closing(const struct thread *t, int32_t fd);

/* early.c: signals for a version that leads, at a thread that does not yet. */
bool early_may_come(void);
void early_note(const struct thread *t, const uint8_t *info);
/* One that had come to the twin; for this thread, or the process (0). */
void early_take(int32_t tid, const uint8_t *info);
void early_come(const struct thread *t);
void early_begin(void);
void early_forget(void);

/* kept.c: timers and record locks.  A call of either kind has been made. */
extern uint32_t kept_locks;
void kept_note(struct thread *t, long nr, const uint64_t *args, int64_t result);
bool kept_is_noted(long nr);
/* The stream tells a signal. */
void kept_signal(const uint8_t *info);
void kept_start(struct thread *t);
void kept_stop(void);
void kept_locks_make(struct thread *t);
void kept_child(void);
long kept_timer_create(struct thread *t);

/* order.c */
extern uint32_t forks;		/* of this process, modulo 2^16 */

/* A number of the stream: how often the process has forked is above it. */
static inline uint64_t order_now(uint64_t seq)
{
	return (uint64_t)(uint16_t)forks << ORDER_BITS | (seq & ORDER_MASK);
}

void order_forked(void);
void order_child(void);
/* The thread has no event: others that wait for what it does may go on. */
void order_rests(void);
void order_wait(struct thread *t, uint64_t seq);
void order_wait_fork(struct thread *t, uint64_t seq);
/* Neither would wait. */
bool order_is_clear(const struct thread *t, uint64_t seq);
void order_wait_all(struct thread *t, uint64_t seq);
/* An EVENT_TICK is the thread's next; and it has come to what is behind. */
void order_tick(struct thread *t, const struct event *e);
void order_tick_over(struct thread *t);
/* All that the leader told before has been taken, by whichever thread. */
void order_wait_all_told(struct thread *t, uint64_t seq);
/* No other thread of the process will go on by itself. */
bool order_all_stand(const struct thread *t);
bool order_others_able(struct thread *t);
/* Nothing but queries and clocks is left in the thread's lane. */
bool order_only_looks(const struct thread *o);
/* A thread has sent one of the process a signal; and it comes: what was before is done. */
void order_sent(const struct thread *t, int32_t vtid);
void order_wait_sent(struct thread *t, const uint8_t *info);
/* All threads of the process have read the thread's stream to its end. */
void order_wait_ended(struct thread *t);

/* ids.c, and what it needs of follow_life.c */
/* No version but this one has made any that its programs know. */
static inline bool ids_are_ours(void)
{
	return !((const struct area *)boot.area)->ids;
}
long ids_call(struct thread *t, const struct call_desc *d, long nr);
long ids_both(struct thread *t, const struct call_desc *d, long nr);
int32_t id_seen(int32_t id);
void ids_begin(void);
void ids_info(uint8_t *info);
int32_t child_real(int32_t vpid);
int32_t child_seen(int32_t pid);
void child_gone(int32_t vpid);
/* Those of whose end the program knows, and that are there, are not: it leads now. */
void children_settle(void);

#endif
