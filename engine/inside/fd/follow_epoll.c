/*
 * epoll: the data of a registration is often a pointer, which differs between
 * versions.  A follower sees both at epoll_ctl, its own in its memory and the
 * leader's in the event, and puts its own in the place of the leader's in what
 * epoll_wait answers.
 *
 * The data that events carry are always those that the kernel has: after a
 * take-over, of whoever made the registration.  A leader's own may then be what the
 * kernel already has for another, by a former leader, and whose an answer is could not
 * be told: so it registers a number of ours in their place (epoll_lead).
 *
 * Rows are found by the leader's data (an open hash), or by descriptor.
 *
 * A leader's threads come to know what they have changed when they have told it; another one
 * may have changed the same descriptor again by then.  So each change takes a turn before its
 * call, and drops no row that was made after that.  An event may be on its way, too, whose
 * registration has just been changed: it has the data of before, so rows that are dropped are
 * looked at where no other fits.
 */
#include <asm/unistd.h>
#include <linux/errno.h>
#include <linux/eventpoll.h>

#include "engine/core/must.h"
#include "engine/core/walk.h"
#include "engine/inside/fd/description.h"
#include "engine/inside/fd/follow_epoll.h"
#include "engine/inside/fd/table.h"
#include "engine/inside/gate/gate.h"
#include "engine/inside/gate/latch.h"
#include "engine/inside/gate/memory.h"
#include "engine/inside/gate/thread.h"
#include "engine/inside/rules/follow_rules.h"
#include "engine/inside/sample/scope.h"

#define EVENT_SIZE	12
#define DATA_AT		4
#define CTL_DEL		2
#define STAND_IN	0x6d76650000000000ull	/* no address, and hardly anybody's number */
/*
 * Limit (descriptors): registrations of epoll sets that a version knows at one
 * time. Beyond: a follower is given the leader's data of further ones, which crash it where
 * they are pointers.
 */
#define ROWS_MAX	(1u << 20)
#define PLACES_FIRST	8192u	/* two for a row at least, that few rows be looked at */

struct registration {
	uint64_t leaders, own;	/* the data */
	int32_t fd;
	int32_t set;		/* its description; 0: free, < 0: dropped */
	uint64_t turn;		/* of the change that made it, or dropped it */
};

/*
 * A row keeps its number for as long as it means something.  They are found by data through
 * `epoll_places`, which is made anew when it is half full: rows that were dropped long ago, of
 * which no event can be on its way any more, are free then, and it is twice as large
 * unless that made room.
 */
static struct rows rows = ROWS_OF(struct registration, ROWS_MAX);
static uint32_t free_first;	/* + 1, then by their `fd`; 0: none */
uint32_t *epoll_places;	/* numbers of rows, + 1; 0: free */
static uint32_t places_n, places_used;
static uint64_t stand_ins, turns;

_Static_assert(DATA_AT + sizeof(uint64_t) == EVENT_SIZE, "the kernel's packed epoll_event");
_Static_assert(sizeof(((struct thread *)0)->epoll_event) == EVENT_SIZE, "the same");
_Static_assert(!(PLACES_FIRST & (PLACES_FIRST - 1)), "epoll_places are found by their low bits");
_Static_assert(!(ROWS_MAX & (ROWS_MAX - 1)) && ROWS_MAX >= ROWS_PAGES, "ROWS_OF");

static struct registration *row_at(uint32_t n)
{
	return rows_at(&rows, n);
}

/* What stands behind a descriptor: the latest that was registered, in whichever set. */
static struct registration *by_number(int32_t fd)
{
	const struct fd_row *f = fd_row(fd);

	return f && f->epoll ? row_at(f->epoll - 1) : NULL;
}

static uint32_t place(uint64_t leaders, int32_t set)
{
	return (uint32_t)((leaders ^ (uint64_t)(uint32_t)set << 40) * 0x9e3779b97f4a7c15ull >> 32) &
	       (places_n - 1);
}

static void place_take(uint32_t n)
{
	const struct registration *r = row_at(n);
	uint32_t at = place(r->leaders, r->set < 0 ? -r->set : r->set);

	MUST(r->set && places_used < places_n);	/* or the search would not end */
	while (epoll_places[at])
		at = (at + 1) & (places_n - 1);
	epoll_places[at] = n + 1;
	places_used++;
}

/* Events of what was dropped so many changes ago have long been given. */
static bool is_old(const struct registration *r)
{
	return r->set < 0 && turns - r->turn > places_n / 8;
}

static void row_free(uint32_t n)
{
	struct registration *r = row_at(n);

	/* Dropped, and nobody's any more. */
	MUST(r->set < 0 && by_number(r->fd) != r);

	*r = (struct registration){ .fd = (int32_t)free_first };
	free_first = n + 1;
}

/* False: there is no memory. */
static bool places_make(void)
{
	uint32_t live = 0, more = places_n ? places_n : PLACES_FIRST;
	uint32_t *old = epoll_places, old_n = places_n;
	long at;

	for (uint32_t n = 0; n < rows.used; n++)
		if (is_old(row_at(n)))
			row_free(n);
		else
			live += row_at(n)->set != 0;
	while (live > more / 4)
		more *= 2;
	at = own_map(more * sizeof(*epoll_places));
	if (at < 0)
		return false;
	epoll_places = (uint32_t *)at;
	places_n = more;
	places_used = 0;
	for (uint32_t n = 0; n < rows.used; n++)
		if (row_at(n)->set)
			place_take(n);
	if (old)
		OWN2(__NR_munmap, old, old_n * sizeof(*old));
	return true;
}

/* Of several the latest: two descriptors may have the same data in one version, or in each. */
static struct registration *row_of_data(uint64_t leaders, int32_t set, int32_t state)
{
	struct registration *found = NULL;

	if (!epoll_places || !set)
		return NULL;
	for (uint32_t at = place(leaders, set); epoll_places[at]; at = (at + 1) & (places_n - 1)) {
		struct registration *r = row_at(epoll_places[at] - 1);

		if (r->set == state && r->leaders == leaders && (!found || r->turn > found->turn))
			found = r;
	}
	return found;
}

static struct registration *by_data(uint64_t leaders, int32_t set)
{
	return row_of_data(leaders, set, set);
}

static struct registration *by_dropped(uint64_t leaders, int32_t set)
{
	return row_of_data(leaders, set, -set);
}

static void row_drop(struct registration *r)
{
	/* Twice would make it live again. */
	MUST(r->set > 0 && latch_is_held(LATCH_epoll));
	r->set = -r->set;
	r->turn = turns;
}

/* These data mean what they say from here on. */
static void dropped_forget(int32_t set, uint64_t leaders)
{
	struct registration *r;

	MUST(latch_is_held(LATCH_epoll));

	while ((r = by_dropped(leaders, set)))
		r->leaders = ~leaders;	/* nobody finds it where it stands */
}

#define ANY_SET		(-1)

/* But not what was made after this turn. */
static void forget_before(int32_t set, int32_t fd, uint64_t turn)
{
	struct registration *r = by_number(fd);

	if (r && r->fd == fd && r->set > 0 && r->turn <= turn &&
	    (set == ANY_SET || r->set == set)) {
		row_drop(r);
		fd_row(fd)->epoll = 0;
	}
}

static void forget(int32_t set, int32_t fd)
{
	forget_before(set, fd, turns);
}

static bool lost;	/* a registration found no room: not all are known */

/* A free one; -1: there is no room. */
static int64_t row_take(void)
{
	uint32_t n = free_first ? free_first - 1 : rows.used;

	MUST(!free_first || (n < rows.used && !row_at(n)->set));

	if (free_first)
		free_first = (uint32_t)row_at(n)->fd;
	else if (!rows_more(&rows))
		return -1;
	return n;
}

/* A row that stands behind no descriptor yet; its number, + 1, or 0: there is no room. */
static uint32_t row_make(int32_t set, int32_t fd, uint64_t leaders, uint64_t own,
			 uint64_t turn)
{
	bool room = set && (places_used < places_n / 2 || places_make());
	int64_t n = room && fd_row_make(fd) ? row_take() : -1;

	MUST(latch_is_held(LATCH_epoll));

	if (n < 0) {
		lost = true;
		return 0;
	}
	*row_at((uint32_t)n) = (struct registration){ leaders, own, fd, set, turn };
	place_take((uint32_t)n);
	description_is_set(set);
	return (uint32_t)n + 1;
}

/*
 * Where not all is told, a row of these data is a connection's whose end was not: nobody
 * registers what is another's.  Its descriptor may be another's by now, in another set.
 * Else it is one whose end is told yet, or a program that does so: nginx registers for a
 * moment what it finds on its stack.  The later one counts while it is there.
 */
static void outdated_forget(int32_t set, uint64_t leaders)
{
	struct registration *old = by_data(leaders, set);

	dropped_forget(set, leaders);
	if (!old || !is_stateless())
		return;
	if (by_number(old->fd) == old)
		fd_row(old->fd)->epoll = 0;
	row_drop(old);
	dropped_forget(set, leaders);
}

static void add(int32_t set, int32_t fd, uint64_t leaders, uint64_t own)
{
	uint32_t row = row_make(set, fd, leaders, own, turns);

	if (row)
		fd_row(fd)->epoll = row;
}

/* epoll_ctl was answered: `leaders` is its event as the leader gave it. */
void epoll_changed(const struct walk *call, const uint8_t leaders[EVENT_SIZE])
{
	int32_t epfd = (int32_t)call->args[0], op = (int32_t)call->args[1];
	int32_t fd = (int32_t)call->args[2], set;
	uint64_t leaders_data, data;
	uint8_t own[EVENT_SIZE];

	if (op == CTL_DEL) {
		latch_take(LATCH_epoll);
		turns++;
		forget(description_of(epfd), fd);
		latch_give(LATCH_epoll);
		return;
	}
	if (target_in(own, call->args[3], sizeof(own)))
		return;
	leaders_data = *(const uint64_t *)(leaders + DATA_AT);
	data = *(const uint64_t *)(own + DATA_AT);
	latch_take(LATCH_epoll);
	turns++;
	set = description_make(epfd);
	forget(set, fd);
	outdated_forget(set, leaders_data);
	/* The same in both versions (a descriptor, say) needs no row, if all is told. */
	if (is_stateless() || rules_given() || leaders_data != data || by_data(leaders_data, set))
		add(set, fd, leaders_data, data);
	latch_give(LATCH_epoll);
}

/* All that was registered in a set that is no more; 0: none. */
static void set_forget(int32_t set)
{
	for (uint32_t n = 0; set && n < rows.used; n++)
		if (row_at(n)->set == set) {
			if (by_number(row_at(n)->fd) == row_at(n))
				fd_row(row_at(n)->fd)->epoll = 0;
			row_drop(row_at(n));
		}
}

void epoll_gone(struct thread *t, struct numbers n)
{
	(void)t;
	FD_ROWS_EACH(fd, n) {
		struct fd_row *r = fd_row(fd);

		if (!(r->epoll | r->set))
			continue;
		latch_take(LATCH_epoll);
		/* What another number leads to stays in its sets, with the data that it has. */
		if (description_numbers(r) > 1)
			r->epoll = 0;
		else
			forget(ANY_SET, (int32_t)fd);
		set_forget(description_leave(r));
		latch_give(LATCH_epoll);
	}
}

/* Whatever else has several numbers: nobody asks for it by data of ours. */
static bool is_of_sets(int64_t fd)
{
	const struct fd_row *r = fd_row(fd);

	return r && (r->epoll | r->set || fd_is(fd, FD_SET));
}

void epoll_copied(int64_t from, int64_t to)
{
	struct fd_row *c = is_of_sets(from) ? fd_row_make(to) : NULL;

	if (!c)
		return;
	MUST(from != to);
	latch_take(LATCH_epoll);
	set_forget(description_leave(c));
	if (!description_join(from, c))
		lost = true;
	latch_give(LATCH_epoll);
	fd_set_mark(from, FD_COPIED, true);
	fd_set_mark(to, FD_COPIED, true);
}

bool epoll_all_known(void)
{
	return !lost;
}

bool epoll_is_wait(long nr)
{
	return call_has(call_find(nr), TRAIT_EPOLL);
}

int64_t epoll_known(const struct walk *call)
{
	uint64_t to = call->args[1], from = to;
	uint8_t event[EVENT_SIZE];
	int64_t n = 0;
	int32_t set;

	latch_take(LATCH_epoll);
	set = description_of((int32_t)call->args[0]);
	for (int64_t i = 0; epoll_places && i < call->result; i++, from += EVENT_SIZE) {
		if (target_in(event, from, sizeof(event)))
			break;
		if (!by_data(*(const uint64_t *)(event + DATA_AT), set))
			continue;
		if (to != from)
			target_out(to, event, sizeof(event));
		to += EVENT_SIZE;
		n++;
	}
	latch_give(LATCH_epoll);
	return n;
}

static struct registration *by_fd(int32_t epfd, int32_t fd)
{
	struct registration *r = by_number(fd);

	return r && r->fd == fd && r->set > 0 && r->set == description_of(epfd) ? r : NULL;
}

void epoll_ends(const struct walk *call)
{
	uint64_t at = call->args[1];
	uint32_t events;

	for (int64_t i = 0; i < call->result && !target_in(&events, at, sizeof(events));
	     i++, at += EVENT_SIZE)
		if (events & EPOLLRDHUP) {
			events |= EPOLLIN;
			target_out(at, &events, sizeof(events));
		}
}

bool epoll_has(int32_t fd)
{
	const struct fd_row *f = fd_row(fd);

	return f && f->epoll;
}

bool epoll_is_of(int32_t epfd, uint64_t leaders, int32_t fd)
{
	const struct registration *r;
	bool is;

	latch_take(LATCH_epoll);
	r = by_data(leaders, description_of(epfd));
	is = r && r->fd == fd;
	latch_give(LATCH_epoll);
	return is;
}

int64_t epoll_make(const struct walk *call, int32_t fd, uint32_t events)
{
	uint8_t event[EVENT_SIZE];
	const struct registration *r;

	latch_take(LATCH_epoll);
	r = by_fd((int32_t)call->args[0], fd);
	if (r) {
		*(uint32_t *)event = events;
		*(uint64_t *)(event + DATA_AT) = r->own;
	}
	latch_give(LATCH_epoll);
	return r && !target_out(call->args[1], event, sizeof(event));
}

void epoll_own(const struct walk *call)
{
	int32_t epfd = (int32_t)call->args[0], fd = (int32_t)call->args[2];
	uint8_t own[EVENT_SIZE];
	struct registration *r;

	if ((int32_t)call->args[1] == CTL_DEL || target_in(own, call->args[3], sizeof(own)))
		return;
	latch_take(LATCH_epoll);
	r = by_fd(epfd, fd);
	if (r)
		r->own = *(const uint64_t *)(own + DATA_AT);
	latch_give(LATCH_epoll);
}

uint64_t epoll_data_own(int32_t epfd, uint64_t kernels)
{
	const struct registration *r;
	uint64_t own;

	latch_take(LATCH_epoll);
	r = by_data(kernels, description_of(epfd));
	own = r ? r->own : kernels;
	latch_give(LATCH_epoll);
	return own;
}

bool epoll_data_is(int32_t epfd, int32_t fd, uint64_t kernels, uint64_t own)
{
	int32_t set;

	latch_take(LATCH_epoll);
	set = description_make(epfd);
	forget(set, fd);
	dropped_forget(set, kernels);
	add(set, fd, kernels, own);
	latch_give(LATCH_epoll);
	return !lost;
}

void epoll_noted(const struct walk *call)
{
	int32_t fd = (int32_t)call->args[2], set;
	uint8_t event[EVENT_SIZE] = { 0 };
	uint64_t data;

	if (call->result < 0)
		return;
	latch_take(LATCH_epoll);
	set = description_make((int32_t)call->args[0]);
	forget(set, fd);
	if ((int32_t)call->args[1] != CTL_DEL) {
		data = target_in(event, call->args[3], sizeof(event)) ? 0 :
		       *(const uint64_t *)(event + DATA_AT);
		outdated_forget(set, data);
		add(set, fd, data, data);
	}
	latch_give(LATCH_epoll);
}

enum brings epoll_brings(const struct walk *call, epoll_test *knows)
{
	uint64_t at = call->args[1] + DATA_AT, data;
	enum brings brings = BRINGS_NOTHING;
	int32_t set;

	if (lost)
		return BRINGS_KNOWN;
	latch_take(LATCH_epoll);
	set = description_of((int32_t)call->args[0]);
	for (int64_t i = 0; i < call->result && brings != BRINGS_KNOWN; i++, at += EVENT_SIZE) {
		const struct registration *r;
		bool listens = false;

		if (target_in(&data, at, sizeof(data)))
			break;
		r = by_data(data, set);
		if (r && knows(r->fd, &listens))
			brings = listens ? BRINGS_CLIENTS : BRINGS_KNOWN;
	}
	latch_give(LATCH_epoll);
	return brings;
}

/* Our own data into the events that the program was given. */
void epoll_answered(const struct walk *call)
{
	uint64_t at = call->args[1] + DATA_AT, data;
	int32_t set;

	latch_take(LATCH_epoll);
	set = description_of((int32_t)call->args[0]);
	for (int64_t i = 0; epoll_places && i < call->result; i++, at += EVENT_SIZE) {
		const struct registration *r;

		if (target_in(&data, at, sizeof(data)))
			break;
		r = by_data(data, set);
		r = r ? r : by_dropped(data, set);
		if (r && r->own != data)
			target_out(at, &r->own, sizeof(data));
	}
	latch_give(LATCH_epoll);
}

/* The data of an event that is about to be registered are in the kernel for another. */
static bool is_taken(int32_t set, uint64_t data)
{
	const struct registration *r = by_data(data, set);

	return r && r->own != data;
}

static uint64_t stand_in(const struct thread *t, int32_t set)
{
	uint64_t instead;

	do
		instead = STAND_IN | (uint64_t)(uint32_t)t->vpid << 16 | (++stand_ins & 0xffff);
	while (by_data(instead, set));
	dropped_forget(set, instead);
	return instead;
}

/* A row of it, + 1, where the event is to carry something else than its data. */
static uint32_t row_instead(struct thread *t, int32_t set, int32_t fd, uint64_t *data)
{
	uint64_t own = *data;
	uint32_t row = 0;

	if (is_taken(set, own)) {
		*data = stand_in(t, set);
		row = row_make(set, fd, *data, own, t->epoll_turn);
	}
	if (!row)
		dropped_forget(set, own);
	return row;		/* 0: it is not taken, or there is no room */
}

/*
 * A leader's epoll_ctl is about to be made.  It may be given an event of ours: a row of it is
 * there before the call, since another thread may be told of it at once, beside that of the
 * data before.
 */
void epoll_lead(struct thread *t, uint64_t args[CALL_ARGS], long nr)
{
	int32_t epfd = (int32_t)args[0], fd = (int32_t)args[2];
	uint8_t *event = t->epoll_event;
	uint64_t data;

	if (!epoll_places || is_stateless())
		return;
	MUST(!t->epoll_row);	/* its last one has ended: epoll_lead_end */
	latch_take(LATCH_epoll);
	t->epoll_turn = ++turns;
	latch_give(LATCH_epoll);
	if (nr != __NR_epoll_ctl || (int32_t)args[1] == CTL_DEL ||
	    target_in(event, args[3], EVENT_SIZE))
		return;
	data = *(const uint64_t *)(event + DATA_AT);
	latch_take(LATCH_epoll);
	t->epoll_row = row_instead(t, description_make(epfd), fd, &data);
	latch_give(LATCH_epoll);
	if (!t->epoll_row)
		return;
	*(uint64_t *)(event + DATA_AT) = data;
	t->epoll_at = args[3];
	args[3] = t->frame.r10 = (uint64_t)event;
}

/* Another thread has changed the same since, and said so before us. */
static bool is_outdated(const struct registration *r)
{
	const struct registration *now = by_number(r->fd);

	return now && now->fd == r->fd && now->set == r->set && now->turn > r->turn;
}

/* The call was made, and told, or a signal came first. */
void epoll_lead_end(struct thread *t, long result)
{
	struct registration *r;

	if (!t->epoll_row || is_stateless())
		return;
	MUST(t->epoll_row <= rows.used);
	latch_take(LATCH_epoll);
	r = row_at(t->epoll_row - 1);
	if (result < 0 || is_outdated(r)) {
		row_drop(r);
	} else {
		forget_before(r->set, r->fd, r->turn);
		fd_row(r->fd)->epoll = t->epoll_row;
	}
	latch_give(LATCH_epoll);
	t->epoll_row = 0;
	t->frame.r10 = t->epoll_at;
}

/*
 * A leader that followed before: the kernel still has the data of whoever made
 * the registration, and so have the events that were just told.
 */
void epoll_led(struct thread *t, const struct walk *call, long nr)
{
	if (!epoll_places || call->result < 0)
		return;
	if (epoll_is_wait(nr)) {
		epoll_answered(call);
		return;
	}
	if (is_stateless() || t->epoll_row)
		return;
	latch_take(LATCH_epoll);
	if (nr == __NR_epoll_ctl)
		forget_before(description_of((int32_t)call->args[0]), (int32_t)call->args[2],
			      t->epoll_turn);
	latch_give(LATCH_epoll);
}
