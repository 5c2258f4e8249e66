/*
 * Taking over.  A follower whose stream has ended and whose turn it is gets the
 * old leader's descriptors from the monitor, under the same numbers, and the true
 * signal actions, timers and locks (state.def); from then on its calls are made for real, the one
 * that it was waiting to be answered first.
 *
 * One thread of a process does it, when every lane of the process has been followed
 * to its end (order_wait_ended); the others wait for it (takers.c).
 *
 * It is done in two steps.  What comes is put under its number, and counted: that is this
 * process's own affair, and goes with it.  Then the monitor is told how many have come, and
 * answers when all processes have said so: from there on there is no way back, and what others
 * can see of it is done (epoll sets are the old leader's, too).  Where nobody is waited for the
 * answer comes with the last message (TAKEN_LEAD), and the monitor is told no number.
 */
#include <asm/unistd.h>
#include <linux/errno.h>
#include <linux/eventpoll.h>
#include <linux/fcntl.h>
#include <linux/futex.h>
#include <linux/poll.h>
#include <linux/sched.h>
#include <linux/signal.h>
#include <linux/socket.h>
#include <linux/time.h>
#include <linux/time_types.h>

#include "engine/abi/state.h"
#include "engine/core/must.h"
#include "engine/core/pairs.h"
#include "engine/core/walk.h"
#include "engine/inside/actions/actions.h"
#include "engine/inside/fd/description.h"
#include "engine/inside/fd/table.h"
#include "engine/inside/gate/block.h"
#include "engine/inside/gate/gate.h"
#include "engine/inside/gate/latch.h"
#include "engine/inside/gate/memory.h"
#include "engine/inside/gate/request.h"
#include "engine/inside/gate/thread.h"
#include "engine/inside/lanes/host.h"
#include "engine/inside/rollback/rollback.h"
#include "engine/inside/state/early.h"
#include "engine/inside/state/limits.h"
#include "engine/inside/state/record_locks.h"
#include "engine/inside/state/take.h"
#include "engine/inside/state/timers.h"
#include "engine/inside/takeover/heir.h"
#include "engine/inside/takeover/takers.h"
#include "engine/inside/takeover/wire.h"

#define EPOLLS		65536
#define OLD_STAYS_S	10	/* the old leader has gone by then */
#define LIMIT_NOFILE	7
#define TABLE_FIRST	1024	/* descriptors */
/*
 * Limit (takeovers): descriptors for which a follower has room before it takes over.
 * Beyond: the room is made while clients wait.
 */
#define TABLE_LAST	(1u << 20)
#define TABLE_OURS	8	/* at its end: for our sockets, out of the program's way */
#define ANSWER_SPINS	2000	/* the monitor's answer comes right behind the last message */
#define UNASKED_LOOKS	100	/* before it sleeps: what is sent unasked is on its way */
#define AF_UNIX_	1
#define SEQPACKET	5
#define MSG_DONTWAIT_	0x40
#define MSG_CLOEXEC	0x40000000
#define MSG_NOSIGNAL_	0x4000
#define RIGHTS		1

/* What comes of the old leader's state; one thread at a time. */
LEADS static struct taken_message message;
LEADS static struct {
	uint64_t len;
	int32_t level, type;
	int32_t fd[TAKEN_ROWS];
} control;

_Static_assert(sizeof(message.signal[0].info) == SIGINFO_USED, "what early.c keeps of one");
_Static_assert(!(EPOLLS & (EPOLLS - 1)) && EPOLLS >= ROWS_PAGES, "ROWS_OF");
_Static_assert(!(TABLE_LAST & (TABLE_LAST - 1)) && !(TABLE_FIRST & (TABLE_FIRST - 1)),
	       "room is doubled");

/* The epoll instances among what was taken, for a while. */
static struct rows epolls = ROWS_OF(int32_t, EPOLLS);
/* What is done when the monitor has answered; of the thread that receives, on its stack. */
LEADS static struct later {
	uint32_t watches, pidfds;
	struct taken_watch watch[TAKEN_WATCHES];
	struct taken_descriptor pidfd[TAKEN_WATCHES];
	int32_t got[TAKEN_WATCHES];	/* the pidfds, out of the way */
} *later;

LEADS static int64_t taken_at;
LEADS static int32_t taken_by;	/* the process; a child has a copy of this, or shares it */

static int32_t epoll_at(uint32_t i)
{
	return *(const int32_t *)rows_at(&epolls, i);
}

static void epoll_note(int32_t fd)
{
	int32_t *row = rows_more(&epolls);

	if (row)
		*row = fd;
}

/* --- descriptors ----------------------------------------------------------------- */

/* Whoever else was received under this number goes elsewhere first. */
static void number_free(int32_t *fds, uint32_t from, uint32_t n, int32_t number)
{
	MUST(from <= n && n <= TAKEN_ROWS && number >= 0);
	for (uint32_t i = from; i < n; i++)
		if (fds[i] == number)
			fds[i] = (int32_t)OWN3(__NR_fcntl, number, F_DUPFD, 0);
}

/* False: it is not there. */
static bool fd_place(int32_t *fds, uint32_t i, uint32_t n, const struct taken_descriptor *to)
{
	bool cloexec = to->flags & TAKEN_CLOEXEC;
	int32_t got = fds[i];
	long is;

	MUST(i < n);
	if (rollback_keeps(to->fd))	/* the old leader's looks at its memory */
		return OWN1(__NR_close, got) == 0;
	if (got == to->fd)
		return OWN3(__NR_fcntl, got, F_SETFD, cloexec ? FD_CLOEXEC : 0) >= 0;
	number_free(fds, i + 1, n, to->fd);
	is = OWN3(__NR_dup3, got, to->fd, cloexec ? O_CLOEXEC : 0);
	OWN1(__NR_close, got);
	return is >= 0;
}

static inline void nothing_placed(const struct thread *t, int32_t fd)
{
	(void)t, (void)fd;
}

static void epoll_placed(const struct thread *t, int32_t fd)
{
	if (!is_guest(t))
		epoll_note(fd);
}

/* What there is to do for one of its kind, now that it is there. */
static void placed(const struct thread *t, const struct taken_descriptor *d)
{
	switch (d->kind) {
#define HANDED(name, known_as, look, place, ...) case STATE_##name: place(t, d->fd); break;
#include "engine/abi/state.def"
	}
}

/* --- room ------------------------------------------------------------------------------ */

/*
 * Where a process has threads the kernel waits until every CPU has passed before its
 * table of descriptors grows: some ten milliseconds.  So a follower, which has none,
 * has a table that the leader's descriptors fit into, long before it is to lead.
 */
static uint32_t table_room;

static uint32_t numbers_allowed(void)
{
	uint64_t limit[2] = { TABLE_FIRST, 0 };

	OWN4(__NR_prlimit64, 0, LIMIT_NOFILE, 0, limit);
	return limit[0] > TABLE_LAST ? TABLE_LAST : (uint32_t)limit[0];
}

static int32_t moved_up(int32_t fd)
{
	uint32_t allowed = numbers_allowed();
	uint32_t room = table_room && table_room < allowed ? table_room : allowed;
	long at = OWN3(__NR_fcntl, fd, F_DUPFD_CLOEXEC, room - TABLE_OURS);

	if (at < 0)
		return fd;
	OWN1(__NR_close, fd);
	return (int32_t)at;
}

/* --- what each message has ----------------------------------------------------------------- */

LEADS static uint32_t came;		/* descriptors that are under their numbers */
LEADS static long lacking;		/* why some are not; 0: all that came are */
LEADS static bool at_once;		/* nobody was waited for: the monitor looks by itself */

static void numbers_receive(struct thread *t, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		came += fd_place(control.fd, i, n, &message.descriptor[i]);
		placed(t, &message.descriptor[i]);
	}
}

/* What stands under this number is the old leader's: a pidfd, which is about to say so. */
static void watch_forget(int32_t fd)
{
	for (uint32_t i = 0; i < epolls.used; i++)
		OWN4(__NR_epoll_ctl, epoll_at(i), EPOLL_CTL_DEL, fd, 0);
}

/* They go in the place of others that are in epoll sets: later. */
static void pidfds_receive(struct thread *t, uint32_t n)
{
	(void)t;
	for (uint32_t i = 0; i < n && later->pidfds < TAKEN_WATCHES; i++) {
		later->pidfd[later->pidfds] = message.descriptor[i];
		later->got[later->pidfds++] = moved_up(control.fd[i]);
	}
}

static void pidfds_place(const struct thread *t, struct later *l)
{
	for (uint32_t i = 0; i < l->pidfds; i++)
		watch_forget(l->pidfd[i].fd);
	for (uint32_t i = 0; i < l->pidfds; i++) {
		fd_place(l->got, i, l->pidfds, &l->pidfd[i]);
		placed(t, &l->pidfd[i]);
	}
}

static void directory_receive(struct thread *t, uint32_t n)
{
	(void)t;
	for (uint32_t i = 0; i < n; i++) {
		OWN1(__NR_fchdir, control.fd[i]);
		OWN1(__NR_close, control.fd[i]);
	}
}

/* The thread of this lane; or 0. */
static int32_t lane_thread(const struct thread *t, int32_t lane)
{
	const struct thread *o;

	for (uint32_t i = 0; lane >= 0 && (o = block_next(&i)); i++)
		if (o->pid == t->pid && o->has_lane && o->lane == (uint32_t)lane % LANES)
			return o->tid;
	return 0;
}

static void signals_receive(struct thread *t, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		const struct taken_signal *s = &message.signal[i];

		timers_signal(s->info);
		early_take(lane_thread(t, s->lane), s->info);
	}
}

static void watches_receive(struct thread *t, uint32_t n)
{
	(void)t;
	for (uint32_t i = 0; i < n && later->watches < TAKEN_WATCHES; i++)
		later->watch[later->watches++] = message.watch[i];
}

/*
 * Whose signals wake an epoll instance is decided when a signalfd is added to it: the
 * old leader's, until it is added anew, with the data that it had.
 */
static void watches_make(const struct later *l)
{
	for (uint32_t i = 0; i < l->watches; i++) {
		const struct taken_watch *w = &l->watch[i];
		struct epoll_event e = { w->events, w->data };

		OWN4(__NR_epoll_ctl, w->epfd, EPOLL_CTL_DEL, w->fd, 0);
		OWN4(__NR_epoll_ctl, w->epfd, EPOLL_CTL_ADD, w->fd, &e);
	}
}

static void locks_receive(struct thread *t, uint32_t n)
{
	MUST(n <= TAKEN_LOCKS && latch_is_held(LATCH_take));
	for (uint32_t i = 0; !is_guest(t) && i < n; i++)
		record_lock_held(t, &message.lock[i]);
}

/* The monitor has done it. */
static inline void nothing_received(struct thread *t, uint32_t n)
{
	(void)t, (void)n;
}

static uint64_t row_size(uint32_t kind)
{
	switch (kind) {
#define SENT(name, rows, ...) case STATE_##name: return sizeof(message.rows[0]);
#include "engine/abi/state.def"
	}
	return 0;
}

/* All of its rows have come, each with its descriptor where they are of such. */
static bool message_whole(uint64_t got, uint64_t control_len)
{
	uint64_t size = row_size(message.kind);
	uint64_t fds = control_len < 16 ? 0 : (control.len - 16) / sizeof(control.fd[0]);

	return message.n <= (got - TAKEN_HEAD) / (size ? size : 1) &&
	       (size != sizeof(message.descriptor[0]) || message.n <= fds);
}

/* That was all: 0, or what is lacking. */
static long all_came(void)
{
	return lacking ? lacking : came == message.n ? 0 : -ENFILE;
}

/*
 * One message; 0 after the last, by which all are there, or -errno.  Where one lacks something
 * the last is read all the same, for it says whether another one is waited for.
 */
static long message_receive(struct thread *t, int socket)
{
	struct span iov = { (uint64_t)&message, sizeof(message) };
	struct message m = { .iov = (uint64_t)&iov, .iov_n = 1,
			     .control = (uint64_t)&control, .control_len = sizeof(control) };
	long got = OWN3(__NR_recvmsg, socket, &m, MSG_DONTWAIT_ | MSG_CLOEXEC);

	MUST(latch_is_held(LATCH_take));
	if (got < (long)TAKEN_HEAD)
		return got < 0 ? got : -EPIPE;
	if (message.kind == TAKEN_END || message.kind == TAKEN_LEAD)
		return all_came();
	if (!message_whole((uint64_t)got, m.control_len)) {
		lacking = -EMFILE;	/* the kernel had no number for one that came */
		return 1;
	}
	switch (message.kind) {
#define SENT(name, rows, send, receive, ...) \
	case STATE_##name: \
		receive(t, message.n); \
		return 1;
#include "engine/abi/state.def"
	}
	lacking = -EPROTO;
	return 1;
}

/* It was asked for, and nothing comes of it any more. */
static bool asked_over(struct thread *t)
{
	return request_over(t) || !monitor_alive();
}

static bool unasked_over(struct thread *t)
{
	(void)t;
	return !wire_sends();
}

/* 0: all has come; -EAGAIN: it will not, for nobody is there to send it; or what fails. */
static long all_receive(struct thread *t, int socket, bool (*is_over)(struct thread *t))
{
	unsigned looks = is_over == unasked_over && wire_soon() ? UNASKED_LOOKS : 0;

	came = 0;
	lacking = 0;
	message.kind = 0;
	for (;;) {
		struct __kernel_timespec look = { 0, 5000000 };		/* ppoll changes it */
		struct pollfd p = { socket, POLLIN, 0 };
		bool over = is_over(t);
		long n = message_receive(t, socket);

		if (n == -EAGAIN && looks && !over)
			looks--;
		else if (n == -EAGAIN && !over)
			request_sleep(__NR_ppoll, (long)&p, 1, (long)&look, 0, 0,
				      request_of(t));
		else if (n <= 0)
			return n;
	}
}

static void table_grow(uint32_t room)
{
	uint32_t allowed = numbers_allowed();
	long fd = OWN2(__NR_eventfd2, 0, O_CLOEXEC), last;

	if (fd < 0)
		return;
	last = OWN3(__NR_fcntl, fd, F_DUPFD_CLOEXEC, (room < allowed ? room : allowed) - 1);
	if (last >= 0)
		OWN1(__NR_close, last);
	OWN1(__NR_close, fd);
	__atomic_store_n(&table_room, room, __ATOMIC_RELAXED);
}

void room_make(struct thread *t)
{
	(void)t;
	table_grow(table_room > TABLE_FIRST ? table_room : TABLE_FIRST);
	rows_ready(&epolls);
}

/* Of its first process's memory, too: what it will write then, and where it will tell. */
void room_ready(struct thread *t)
{
	struct section *own = streams_section(&streams, streams.self);

	MUST(t->following && t->lane < LANES);
	room_make(t);
	takers_ready();
	leads_also(&epolls.used);
	if (epolls.page[0])	/* else there was no memory */
		leads_also(epolls.page[0]);
	leads_own();
	pages_own(&own->faulted[t->lane], 1);
	pages_own(&own->left[t->lane], 1);
	pages_own(&own->lane[t->lane], 1);
	pages_own(own->chunk_owner, 1);
}

void room_fork(struct thread *t)
{
	if (t->following)
		room_make(t);
}

/* The leader has been given this descriptor. */
void take_opened(int64_t fd)
{
	uint32_t room = __atomic_load_n(&table_room, __ATOMIC_RELAXED);

	if (fd + TABLE_OURS < room || fd >= TABLE_LAST)
		return;
	while (fd + TABLE_OURS >= room)
		room = room ? room * 2 : TABLE_FIRST;
	table_grow(room);
}

/*
 * What is closed leaves the epoll instances that it is in when nobody has it open.  As
 * long as the old leader is not all gone, it does: so it is taken out by hand.  A child of
 * the one that took closes its own copies, which takes nothing out of anything.
 */
static void closing_forget(uint32_t sets, int64_t fd)
{
	for (uint32_t i = 0; i < sets; i++)
		if (epoll_at(i) != fd)
			OWN4(__NR_epoll_ctl, epoll_at(i), EPOLL_CTL_DEL, fd, 0);
}

/* It is put in the place of another, if that can be. */
static bool may_replace(int32_t by, int64_t number)
{
	return by < 0 || (number < numbers_allowed() && OWN3(__NR_fcntl, by, F_GETFD, 0) >= 0);
}

void take_closing(const struct thread *t, struct numbers gone, int32_t by)
{
	uint32_t n = CONSUME(taken_epolls, &epolls.used);
	struct __kernel_timespec now;

	if (!n || t->pid != taken_by || !may_replace(by, gone.first))
		return;
	/* The old leader's are below that. */
	for (int64_t fd = gone.first;
	     fd == gone.first || (fd <= gone.last && fd < table_room); fd++)
		if (!description_stays(fd))
			closing_forget(n, fd);
	OWN2(__NR_clock_gettime, CLOCK_MONOTONIC_COARSE, &now);
	if (now.tv_sec > taken_at + OLD_STAYS_S)
		PUBLISH(taken_epolls, &epolls.used, 0);
}

static void taken_note(const struct thread *t)
{
	struct __kernel_timespec now;

	taken_by = t->pid;
	OWN2(__NR_clock_gettime, CLOCK_MONOTONIC_COARSE, &now);
	taken_at = now.tv_sec;
}

/* How many have come: the monitor answers when all others have said so, too. */
static void ready_say(int socket, long error)
{
	struct taken_reply reply = { (int32_t)error, came };

	OWN6(__NR_sendto, socket, (long)&reply, sizeof(reply), MSG_NOSIGNAL_, 0, 0);
	request_ring();
}

/* The socket pair by which it all comes; false: there is no room for it. */
static bool pair_make(int32_t *pair)
{
	if (OWN4(__NR_socketpair, AF_UNIX_, SEQPACKET, 0, pair) < 0)
		return false;
	pair[0] = moved_up(pair[0]);
	pair[1] = moved_up(pair[1]);
	return true;
}

void take_wire(struct thread *t)
{
	int32_t pair[2];

	if (request_may(t) && pair_make(pair))
		wire_begin(t, pair);
}

static long answer_wait(struct thread *t)
{
	for (int i = 0; i < ANSWER_SPINS && !request_over(t); i++)
		__builtin_ia32_pause();
	return request_end(t);
}

/* What comes is this thread's, until latch_give. */
static void taking_begin(const struct thread *t, struct later *ours)
{
	latch_take(LATCH_take);
	later = ours;
	if (!is_guest(t)) {
		epolls.used = 0;
		taken_note(t);
	}
}

/* It is sent unasked, and says that this process leads; false: it wants to be asked. */
static bool unasked_take(struct thread *t, struct later *ours, long *error)
{
	int32_t fd = wire_take(t);
	bool told;

	if (fd < 0)
		return false;
	fd = moved_up(fd);	/* there may be more now than when it was made */
	taking_begin(t, ours);
	/* Nothing can be undone: what its signals do may be made true while that is on its way. */
	early_begin(t);
	signals_hear_soon(t);
	*error = all_receive(t, fd, unasked_over);
	told = message.kind == TAKEN_LEAD;
	if (told && *error)
		ready_say(fd, *error);
	latch_give(LATCH_take);
	OWN1(__NR_close, fd);
	return told;
}

/*
 * 0: all have come, and the monitor wants it so, or is gone.  Else what is missing the twin
 * still has, and uses if it has to.
 */
static long descriptors_take(struct thread *t, struct later *ours)
{
	int32_t pair[2];
	long error, answer = 0;
	bool told;

	at_once = unasked_take(t, ours, &error);
	if (at_once)
		return error;
	if (!request_may(t))
		return -ENOSYS;
	if (!pair_make(pair))
		return -EMFILE;
	taking_begin(t, ours);
	request_post(t, REQ_TAKE, (uint64_t)pair[1], is_guest(t), 0);
	error = all_receive(t, pair[0], asked_over);
	told = message.kind == TAKEN_LEAD;
	if (told)
		request_drop(t);
	if (told ? error : !request_over(t))
		ready_say(pair[0], error);
	/* Another process with this memory may have to come here before we are answered. */
	latch_give(LATCH_take);
	if (!told)
		answer = answer_wait(t);
	OWN1(__NR_close, pair[0]);
	OWN1(__NR_close, pair[1]);
	return answer < 0 && monitor_alive() ? answer : error;
}

/* --- all of it ------------------------------------------------------------------------ */

/*
 * For the one line that says how long it took; and the old leader may go.  Clients are served
 * before that, where nothing of theirs waits for it: who is woken here may come before them.
 */
void took_note(struct thread *t)
{
	struct area *a = (struct area *)boot.area;

	(void)t;
	__atomic_store_n(&a->lead_ns, clock_ns(CLOCK_MONOTONIC), __ATOMIC_RELAXED);
	PUBLISH_BY(area_leads, fetch_add, &a->leads, 1);
	if (!at_once || record_locks_wait())
		request_ring();
}

/* It has not got all, and does not lead: who else does the monitor knows, or the twin. */
static _Noreturn void take_failed(struct thread *t)
{
	if (!monitor_alive())
		heir_gives_up(t);
	for (;;)
		OWN1(__NR_exit_group, 1);
}

void take_descriptors(struct thread *t)
{
	struct later ours;
	long result;

	/* Not the rows: each page of the stack that is written may be one that is shared. */
	ours.watches = ours.pidfds = 0;
	limits_lift();
	result = descriptors_take(t, &ours);
	/* Refused before anything was sent: its twin was taken from before, or all is over. */
	if (result < 0 && result != -EALREADY && result != -EPERM && result != -EINVAL)
		take_failed(t);
	pidfds_place(t, &ours);
	watches_make(&ours);
}
