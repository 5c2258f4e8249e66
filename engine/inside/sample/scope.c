/*
 * What followers of a stateless server hear of: whole connections, or nothing of
 * them.  A connection is told if a follower can know it (it was accepted after
 * the follower came) and if the sample has it; the choice is made at its accept
 * and holds to its end.
 *
 * Which call belongs to which connection: a call on a connection begins that
 * connection's scope in its thread, and what the thread does next belongs to it,
 * up to a call on another source of events (a connection, or what was added to an
 * epoll set), one that waits for any (accept, epoll_wait, poll, select), or a seam.
 * What is opened in the scope of a connection that is kept from followers is kept,
 * too.  How a server goes on to watch a listening socket is a matter of what it has
 * just accepted.
 *
 * Written by the leader's threads, each for its own descriptors; a child has a
 * copy.  That a request of one connection changes nothing for another is the
 * user's word (--stateless): a follower's calls would differ if it were not so,
 * and nothing worse.
 */
#include <asm/unistd.h>
#include <linux/errno.h>
#include <linux/time.h>

#include "engine/abi/waits.h"
#include "engine/core/away.h"
#include "engine/core/must.h"
#include "engine/core/pairs.h"
#include "engine/core/ring.h"
#include "engine/core/walk.h"
#include "engine/inside/fd/follow_epoll.h"
#include "engine/inside/fd/table.h"
#include "engine/inside/gate/gate.h"
#include "engine/inside/gate/thread.h"
#include "engine/inside/lanes/host.h"
#include "engine/inside/locks/locks.h"
#include "engine/inside/sample/scope.h"
#include "engine/inside/sample/seam.h"

#define SOURCE		0x8000u	/* of events; the rest is the generation it was born in */
#define LISTENS		0x4000u	/* connections come from it */
#define ACCEPTED	0x2000u
#define KEPT_BACK	0x1fffu	/* no generation: nobody hears of it */
#define GENERATIONS	0x1ffeu
_Static_assert(GENERATIONS < KEPT_BACK && !(KEPT_BACK & (SOURCE | LISTENS | ACCEPTED)),
	       "no generation is the one of nobody");
#define PEER_SIZE	32
#define CTL_ADD		1
#define AUTO_PART	16	/* of a ring: a follower that far behind gets no more */
#define AUTO_GROWS	8	/* accepts after which it may have one more at a time */
#define COST_CONNS	64	/* that an average goes over */
#define TIMED_BYTES	8192	/* calls that moved more are timed: they are copied */

static bool counts;		/* who is told of a descriptor stands with it (`born`); 0: all */
static uint16_t generation;	/* of those who follow now */
static bool whole;		/* they know the start's connections, too */
static bool polls;		/* it does not wait in accept alone */
static int32_t told_now;	/* connections that are told and open */
static int32_t opened_now;	/* and other descriptors that only who follows now knows */
static bool between;		/* the next connections are not told: scope_between */
static struct thread *first;	/* that accepted a connection, */
static uint64_t first_place;	/* and behind which of its seams, or waits */

void scope_prepare(void)
{
	MUST(!generation && !told_now);	/* before the first connection */
	counts = true;
}

static uint16_t generation_now(void)
{
	return (uint16_t)(streams.conduct->joins % GENERATIONS + 1);
}

/*
 * The same for all threads: each comes to a seam of its own.  Who was there from the
 * start goes on with the connections that it has.
 */
void scope_renew(bool from_start, bool alone)
{
	uint16_t was = generation;

	whole = from_start;
	generation = generation_now();
	if (generation == was)
		return;
	if (alone)
		locks_renew();
	__atomic_store_n(&opened_now, 0, __ATOMIC_RELAXED);
	if (!whole)
		__atomic_store_n(&told_now, 0, __ATOMIC_RELAXED);
}

/*
 * Somebody is to be told beside others, who know connections that the newcomer does not:
 * these end first.  Until then the next ones are kept, but not for ever, since the others
 * miss them.
 */
bool scope_between(bool wanted)
{
	static uint64_t since;
	uint64_t now = wanted ? clock_ns(CLOCK_MONOTONIC_COARSE) : 0;

	since = !wanted ? 0 : since ? since : now;
	between = wanted && now - since < BETWEEN_NS;
	return __atomic_load_n(&told_now, __ATOMIC_RELAXED) <= 0 &&
	       __atomic_load_n(&opened_now, __ATOMIC_RELAXED) <= 0;
}

static uint16_t born_of(uint64_t arg)
{
	const struct fd_row *r = fd_row((int32_t)arg);

	return !counts || (uint32_t)arg >= FD_NUMBERS ? KEPT_BACK : r ? r->born : 0;
}

/* Opened since the start, for those who follow now, and no connection. */
static int32_t is_opened(uint32_t b)
{
	return generation && (b & KEPT_BACK) == generation && !(b & ACCEPTED);
}

static void born_set(int64_t fd, uint32_t what)
{
	struct fd_row *r = counts ? fd_row_make(fd) : NULL;
	int32_t more;

	if (!r)
		return;
	more = is_opened(what) - is_opened(r->born);
	if (more)
		__atomic_fetch_add(&opened_now, more, __ATOMIC_RELAXED);
	r->born = (uint16_t)what;
}

/* A connection that somebody who follows now was told of. */
static bool is_followed(uint16_t b)
{
	return (b & KEPT_BACK) == generation || (whole && !(b & KEPT_BACK));
}

static bool is_known(uint16_t b)
{
	/* What was accepted in the start has gone on since. */
	return is_followed(b) || !(b & (KEPT_BACK | ACCEPTED));
}

struct scope_row scope_row(const struct call_desc *d)
{
	bool accepts = call_has(d, TRAIT_ACCEPTS), sets = call_has(d, TRAIT_REGISTERS);
	struct scope_row row = { 0, 0 };

	for (unsigned i = 0; i < d->nargs; i++)
		if (d->args[i].kind == KIND_FD || d->args[i].kind == KIND_DIRFD)
			row.fds |= (uint8_t)(1u << i);
	row.what |= accepts ? SCOPE_ACCEPTS : 0;
	row.what |= call_has(d, TRAIT_POLLS) ? SCOPE_WAITS : 0;
	row.what |= call_has(d, TRAIT_EPOLL) ? SCOPE_POLLS : 0;
	/* Programs and ends of threads are told whatever is going on. */
	row.what |= d->class == CLASS_LIFE && !call_bears(d) ? SCOPE_EVERYBODYS : 0;
	row.what |= sets ? SCOPE_SETS : 0;
	row.what |= numbers_may_be_given(d) ? SCOPE_GIVEN : 0;
	if (sets || row.what & SCOPE_GIVEN || d->nr == __NR_listen)
		row.what |= SCOPE_BEARS;
	return row;
}

bool scope_knows(int32_t fd, bool *listens)
{
	uint16_t b = born_of((uint32_t)fd);

	*listens = b & LISTENS;
	return is_known(b);
}

/*
 * What a server learns once, from whoever comes first, all that follow it must have
 * learnt: connections that are accepted at once, up to the next seam (or wait, where
 * there are no seams), are told in any case and belong to the start.  Others are kept
 * until these have ended: a start in which one is open leads nowhere.
 */
static bool is_first(struct thread *t)
{
	uint64_t place = t->slot->seams ? t->slot->seams : t->waits_made;
	struct thread *none = NULL;

	if (__atomic_compare_exchange_n(&first, &none, t, false, __ATOMIC_RELAXED,
					__ATOMIC_RELAXED))
		first_place = place;
	return first == t && first_place == place;
}

/* What waits for connections, or accepts one. */
static void source_entered(struct thread *t, const struct walk *w, struct scope_row row, bool kept)
{
	bool accepts = row.what & SCOPE_ACCEPTS;

	if (!accepts || !polls)
		t->waits_made++;
	polls |= !accepts;
	t->polls |= !accepts;
	if (accepts && !kept)
		born_set((int32_t)w->args[0], born_of(w->args[0]) | LISTENS);
}

bool scope_enter(struct thread *t, const struct walk *w, struct scope_row row)
{
	bool source = false, kept = false;

	for (unsigned bits = row.fds; bits; bits &= bits - 1) {
		uint64_t fd = w->args[__builtin_ctz(bits)];
		uint16_t b = (int32_t)fd >= 0 ? born_of(fd) : 0;

		kept |= !is_known(b);
		source |= b & SOURCE && !(b & LISTENS && row.what & SCOPE_SETS);
	}
	if (row.what & (SCOPE_WAITS | SCOPE_ACCEPTS))
		source_entered(t, w, row, kept);
	if (kept)
		t->kept = 1;
	else if (source || row.what & (SCOPE_WAITS | SCOPE_ACCEPTS))
		t->kept = 0;
	return !t->kept || row.what & SCOPE_EVERYBODYS;
}

#define START	(1u << ROW_START)

/*
 * A connection that is followed, worked on by a thread that is not: who follows would
 * wait for that thread, and check nothing.
 */
void scope_stray(const struct thread *t, const uint64_t *args, uint8_t fds)
{
	struct section *own = streams_section(&streams, streams.self);
	uint32_t readers = t->has_lane ? t->writer.lane->readers : 0;
	uint32_t miss = streams_followers(&streams, own) & ~readers & ~START;
	/* What the descriptors' generations say is about who follows now. */
	bool sure = miss && generation == generation_now();

	for (unsigned bits = sure ? fds : 0; bits; bits &= bits - 1) {
		uint64_t fd = args[__builtin_ctz(bits)];
		uint16_t b = (int32_t)fd >= 0 ? born_of(fd) : 0;

		if (!(b & ACCEPTED) || !is_followed(b))
			continue;
		__atomic_fetch_or(&own->strayed, miss, __ATOMIC_RELAXED);
		BOTH_BY(section_dropped, fetch_or, &own->dropped, miss);
		return;
	}
}

/* --- which connections ------------------------------------------------------------ */

/* FNV-1a, and a turn of the bits at its end. */
static uint32_t hash(const uint8_t *at, uint32_t len)
{
	uint64_t h = 0xcbf29ce484222325ull;

	for (uint32_t i = 0; i < len; i++)
		h = (h ^ at[i]) * 0x100000001b3ull;
	h = (h ^ h >> 32) * 0x9e3779b97f4a7c15ull;
	return (uint32_t)(h >> 40);
}

/* So many of all, evenly. */
static bool by_share(uint32_t share)
{
	static uint32_t sum;
	uint32_t was = __atomic_fetch_add(&sum, share, __ATOMIC_RELAXED) % SHARE_ALL;

	return was + share >= SHARE_ALL;
}

/* The same peers each time; one without an address counts as the share says. */
static bool by_peer(int64_t fd, uint32_t share)
{
	uint8_t peer[PEER_SIZE] = { 0 };
	uint32_t len = sizeof(peer);

	if (OWN3(__NR_getpeername, fd, peer, &len) || len <= sizeof(uint16_t))
		return by_share(share);
	return hash(peer, len < sizeof(peer) ? len : sizeof(peer)) % SHARE_ALL < share;
}

static bool by_window(const struct thread *t, const struct sampling *s)
{
	uint64_t at = (t->slot->calls_told + t->slot->calls_kept) % s->window;

	return at * SHARE_ALL < (uint64_t)s->window * s->share;
}

/* What the slowest follower has not read of this thread's lane is little. */
static bool by_lag(const struct thread *t)
{
	uint32_t bits = streams_followers(&streams, t->writer.section) & t->writer.lane->readers;
	uint64_t most = (uint64_t)chunks_in_memory(streams.conduct) * CHUNK_CELLS / AUTO_PART;

	for (uint32_t v = 0; v < VERSIONS; v++) {
		const struct cursor *c = &streams_section(&streams, v)->cursor[t->lane];

		if (bits >> v & 1 &&
		    t->writer.head - __atomic_load_n(&c->at, __ATOMIC_RELAXED) > most)
			return false;
	}
	return true;
}

/*
 * Telling costs the leader time, too: most where replies are large, since they are copied.
 * It may take the user's share of the process' time: `credit_ns` is what is left of that.
 * What a connection will cost is what others have cost.
 */
static struct {
	int64_t credit_ns;
	uint64_t process_ns;	/* when it was last earned */
	uint64_t told_ns, conns;	/* cost of connections, and how many they were */
} cost = { .credit_ns = COST_MOST_NS };

uint64_t scope_cost_begin(const struct walk *w)
{
	return streams.conduct->sampling.how == SAMPLE_AUTO && w->result > TIMED_BYTES ?
	       clock_ns(CLOCK_THREAD_CPUTIME_ID) : 0;
}

void scope_cost_end(uint64_t begun)
{
	uint64_t ns = begun ? clock_ns(CLOCK_THREAD_CPUTIME_ID) - begun : EVENT_NS;

	__atomic_fetch_sub(&cost.credit_ns, (int64_t)ns, __ATOMIC_RELAXED);
	__atomic_fetch_add(&cost.told_ns, ns, __ATOMIC_RELAXED);
}

static void cost_earn(void)
{
	uint64_t now = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
	uint64_t was = __atomic_exchange_n(&cost.process_ns, now, __ATOMIC_RELAXED);
	uint32_t share = streams.conduct->sampling.share;
	int64_t more = now > was ? (int64_t)((now - was) * share / SHARE_ALL) : 0;

	if (__atomic_add_fetch(&cost.credit_ns, more, __ATOMIC_RELAXED) > COST_MOST_NS)
		__atomic_store_n(&cost.credit_ns, COST_MOST_NS, __ATOMIC_RELAXED);
}

/* Another connection can be paid, beside those that are open. */
static bool by_cost(uint64_t open)
{
	uint64_t conns = __atomic_load_n(&cost.conns, __ATOMIC_RELAXED), each;

	cost_earn();
	each = conns ? __atomic_load_n(&cost.told_ns, __ATOMIC_RELAXED) / conns : 0;
	if (__atomic_load_n(&cost.credit_ns, __ATOMIC_RELAXED) <= (int64_t)(open * each))
		return false;
	if (conns >= COST_CONNS) {
		__atomic_store_n(&cost.told_ns, each * COST_CONNS / 2, __ATOMIC_RELAXED);
		__atomic_store_n(&cost.conns, COST_CONNS / 2, __ATOMIC_RELAXED);
	}
	__atomic_fetch_add(&cost.conns, 1, __ATOMIC_RELAXED);
	return true;
}

/*
 * How many connections at a time followers can take is tried out: one more after some
 * that they kept up with, half as many as soon as they do not.  A connection that is
 * kept for long costs later what it does not cost now, so it begins with few.
 */
static bool by_load(const struct thread *t)
{
	static uint32_t most = 1, good;
	uint32_t now = __atomic_load_n(&most, __ATOMIC_RELAXED);
	int32_t open = __atomic_load_n(&told_now, __ATOMIC_RELAXED);

	open = open < 0 ? 0 : open;
	if (!by_lag(t)) {
		__atomic_store_n(&most, now > 1 ? now / 2 : 1, __ATOMIC_RELAXED);
		return false;
	}
	if (open < (int32_t)now)
		return by_cost((uint64_t)open);
	if (__atomic_add_fetch(&good, 1, __ATOMIC_RELAXED) % AUTO_GROWS == 0)
		__atomic_store_n(&most, now + 1, __ATOMIC_RELAXED);
	return false;
}

static bool is_sampled(struct thread *t, int64_t fd)
{
	const struct sampling *s = &streams.conduct->sampling;

	switch (s->how) {
	case SAMPLE_SHARE:
		return by_share(s->share);
	case SAMPLE_PEER:
		return by_peer(fd, s->share);
	case SAMPLE_WINDOW:
		return by_window(t, s);
	case SAMPLE_AUTO:
		return by_load(t);
	default:
		return true;
	}
}

/* --- what a call has left behind ---------------------------------------------------- */

static void open_count(struct thread *t, uint16_t b, int32_t more)
{
	if (!(b & ACCEPTED) || !is_followed(b))
		return;
	__atomic_fetch_add(&told_now, more, __ATOMIC_RELAXED);
	t->slot->conns_open += more;
}

static void closed(struct thread *t, uint64_t fd)
{
	open_count(t, born_of(fd), -1);
	born_set((int64_t)fd, 0);
}

/* What had the number before may have been closed in a way that is not seen here. */
static void opened(struct thread *t, int64_t fd, uint32_t what)
{
	closed(t, (uint64_t)fd);
	born_set(fd, what);
	open_count(t, born_of((uint64_t)fd), 1);
}

void scope_gone(struct thread *t, struct numbers n)
{
	for (int64_t fd = counts ? fd_next(n.first) : -1; fd >= 0 && fd <= n.last;
	     fd = fd_next(fd + 1))
		if (born_of((uint64_t)fd))
			closed(t, (uint64_t)fd);
}

static bool accepted(struct thread *t, int64_t fd, bool told)
{
	bool at_first = is_first(t), waits = !at_first && (seam_in_start(t) || between);
	bool hears = told && (uint64_t)fd < FD_NUMBERS && !waits && (at_first || is_sampled(t, fd));

	t->slot->conns_told += hears;
	t->slot->conns_kept += !hears;
	t->kept = !hears;
	opened(t, fd, SOURCE | ACCEPTED | (hears ? generation : KEPT_BACK));
	return hears || !told;
}

/* A copy of a connection's descriptor is that connection. */
static uint32_t born_as(const struct walk *w, bool told)
{
	uint16_t b = w->desc->nargs && w->desc->args[0].kind == KIND_FD ? born_of(w->args[0]) : 0;

	if (b & SOURCE)
		return b;
	b = call_has(w->desc, TRAIT_COPIES) ? b & LISTENS : 0;
	return b | (told ? generation : KEPT_BACK);
}

struct birth {
	struct thread *t;
	uint32_t as;
};

static void given(void *what, int32_t fd)
{
	const struct birth *b = what;

	opened(b->t, fd, b->as);
}

bool scope_start_over(void)
{
	return first && __atomic_load_n(&told_now, __ATOMIC_RELAXED) <= 0;
}

/* Descriptors that the call has made, or put into an epoll set. */
static bool scope_bears(struct thread *t, const struct walk *w, bool told, struct scope_row row)
{
	long nr = w->desc->nr;

	if (row.what & SCOPE_ACCEPTS)
		return accepted(t, w->result, told);
	if (row.what & SCOPE_GIVEN)
		numbers_given(w, given, &(struct birth){ t, born_as(w, told) });
	else if (nr == __NR_listen)
		born_set((int32_t)w->args[0], born_of(w->args[0]) | LISTENS);
	else if ((int32_t)w->args[1] == CTL_ADD)
		born_set((int32_t)w->args[2], born_of(w->args[2]) | SOURCE);
	return true;
}

bool scope_leave(struct thread *t, const struct walk *w, bool told, struct scope_row row)
{
	t->slot->calls_told += told;
	t->slot->calls_kept += !told;
	return w->result < 0 || !(row.what & SCOPE_BEARS) || scope_bears(t, w, told, row);
}
