/*
 * The ring's two sides at once: a leader whose threads write lanes, close them and
 * open others, and two followers with a reader for each lane, over so few chunks
 * that the ring is full most of the time.  Payloads are random; events carry the
 * sum of theirs, their number and their lane's life.
 *
 * The second follower is given up in the middle.  Built with ThreadSanitizer
 * (ring_threads_tsan) it stops reading before; built without, it goes on and must
 * find nothing false until it has been dropped.  The first must find every event
 * of every life, in order, and right.
 *
 * `ring_threads spill`: there are more chunks than memory, and a spiller moves them in and out
 * at random: what has no memory is full of nonsense.
 */
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <pthread.h>
#include <time.h>
#include <unistd.h>

#include "engine/core/must.h"
#include "engine/core/away.c"
#include "engine/core/holds.c"
#include "engine/core/ring.c"
#include "engine/outside/spill/chunks.c"

void must_failed(const char *place)
{
	fprintf(stderr, "%s\n", place);
	abort();
}

#define CHUNKS	5
#define AWAY	20	/* more of them, with `spill` */
#define LEFT_FIRST	8	/* that are out before one is read */
#define WRITERS	3
#define READERS	(CHUNKS - 1)	/* of each follower: as many lanes as there can be */
#define LIVES	6	/* of each writer */
#define EVENTS	10000	/* of each life */
#define KEPT	1	/* the follower that reads all, */
#define DROPPED	2	/* and the one that does not */
#define HALF	(WRITERS * LIVES * EVENTS / 2)
#define LIMIT_S	60

static struct conduct *conduct;
static uint64_t written, waits;
static uint64_t events[VERSIONS], sums[VERSIONS];	/* read; [0]: written */
static unsigned stopped;	/* readers of the second follower that read no more */
static bool slow;	/* it may be dropped */
static bool over;	/* no life will begin any more */
static bool ended;	/* all has been read */
static uint64_t left, came, withdrawn;	/* chunks */

static void check(bool right, const char *what, uint64_t a, uint64_t b)
{
	if (right)
		return;
	fprintf(stderr, "ring_threads: %s: %lu, %lu\n", what, a, b);
	exit(1);
}

static void pause_ns(long ns)
{
	nanosleep(&(struct timespec){ .tv_nsec = ns }, NULL);
}

static uint64_t random_next(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

/* Small as a rule; some larger than a chunk. */
static size_t random_size(uint64_t *state)
{
	uint64_t r = random_next(state);

	if (r % 512 == 0)
		return (r >> 20) % (2 * CHUNK_SIZE);
	return (r >> 20) % (r % 32 ? 200 : 6000);
}

static uint64_t sum_add(uint64_t sum, uint8_t byte)
{
	return (sum << 5 | sum >> 59) + byte + 1;
}

/* --- the leader ----------------------------------------------------------------- */

/* There is no room: gives up who is in the way, if it is the one that may be. */
static void give_up(const struct streams *s, uint32_t held)
{
	if (__atomic_load_n(&slow, __ATOMIC_ACQUIRE) && held & 1u << DROPPED)
		__atomic_fetch_or(&streams_section(s, 0)->dropped, 1u << DROPPED,
				  __ATOMIC_SEQ_CST);
	pause_ns(20000);
}

static struct event *begin(struct writer *w, uint8_t kind)
{
	struct event *e;

	while (!(e = writer_begin(w, kind, 7))) {
		__atomic_fetch_add(&waits, 1, __ATOMIC_RELAXED);
		give_up(w->streams, writer_held_by(w));
	}
	return e;
}

/* The sum is known at the end: it stands behind the bytes that it is of. */
static uint64_t fill(struct writer *w, size_t size, uint64_t *state)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < size + sizeof(sum); i++) {
		uint8_t byte = (uint8_t)(i < size ? random_next(state) : sum >> (i - size) * 8);

		if (!writer_room(w)) {
			writer_commit(w);
			begin(w, EVENT_MORE);
		}
		*w->at++ = byte;
		if (i < size)
			sum = sum_add(sum, byte);
	}
	return sum;
}

static void life(struct streams *s, uint64_t *state)
{
	struct writer w;
	int lane;

	while ((lane = lane_open(s, ~0u)) < 0)
		give_up(s, lanes_held_by(s));
	writer_attach(&w, s, (uint32_t)lane);
	for (uint64_t n = 0; n < EVENTS; n++) {
		size_t size = random_size(state);
		struct event *e = begin(&w, EVENT_CALL);

		e->seq = n;
		e->result = (int64_t)size;
		e->arg[0] = w.lane->life;
		e->arg[1] = (uint64_t)lane;
		__atomic_fetch_add(&sums[0], fill(&w, size, state), __ATOMIC_RELAXED);
		writer_commit(&w);
		__atomic_fetch_add(&written, 1, __ATOMIC_RELAXED);
	}
	lane_close(s, (uint32_t)lane);
}

static void *writer_run(void *arg)
{
	struct streams s = { conduct, 0 };
	uint64_t state = (uint64_t)arg * 0x9e3779b97f4a7c15u;

	for (int i = 0; i < LIVES; i++)
		life(&s, &state);
	return NULL;
}

/* --- a follower ------------------------------------------------------------------- */

struct lane_reader {
	struct streams s;
	struct reader r;
	uint32_t lane, life;
	uint64_t n;		/* events of this life */
};

static bool dropped(const struct lane_reader *l)
{
	return __atomic_load_n(&streams_section(&l->s, 0)->dropped, __ATOMIC_ACQUIRE) >>
	       l->s.self & 1;
}

/* Who has been dropped may wait for a chunk that is no longer its lane's. */
bool host_chunk(const struct reader *r)
{
	sched_yield();
	return !(__atomic_load_n(&r->from->dropped, __ATOMIC_ACQUIRE) >> r->streams->self & 1);
}

/* What is false must have come after the drop. */
static bool is(const struct lane_reader *l, bool right, const char *what, uint64_t a, uint64_t b)
{
	if (!right)
		check(dropped(l), what, a, b);
	return right;
}

/* The second follower has come as far as it goes, or as fast. */
static bool lags(const struct lane_reader *l)
{
	if (l->s.self != DROPPED || __atomic_load_n(&written, __ATOMIC_RELAXED) < HALF)
		return false;
#ifdef __SANITIZE_THREAD__
	return true;
#else
	__atomic_store_n(&slow, true, __ATOMIC_RELEASE);
	sched_yield();
	return dropped(l);
#endif
}

/* The next bytes of the payload, waiting for them; false: we have been dropped. */
static bool get(struct lane_reader *l, size_t want, const uint8_t **piece, size_t *n)
{
	while (!(*n = reader_piece(&l->r, want, piece))) {
		if (dropped(l) || lags(l))
			return false;
		check(!l->r.broken, "broken in a payload", l->lane, l->n);
		reader_release(&l->r);
		pause_ns(20000);
	}
	return true;
}

static bool payload(struct lane_reader *l, size_t size, uint64_t *sum)
{
	uint64_t told = 0;
	const uint8_t *piece;
	size_t n;

	*sum = 0;
	for (size_t at = 0; at < size + sizeof(told); at += n) {
		if (!get(l, size + sizeof(told) - at, &piece, &n))
			return false;
		for (size_t i = 0; i < n; i++)
			if (at + i < size)
				*sum = sum_add(*sum, piece[i]);
			else
				told |= (uint64_t)piece[i] << (at + i - size) * 8;
	}
	return is(l, told == *sum, "sum", told, *sum);
}

/* Takes one event; some payloads are left unread. */
static bool take(struct lane_reader *l, const struct event *e)
{
	uint64_t size = (uint64_t)e->result, sum = 0;

	if (!is(l, e->kind == EVENT_CALL, "kind", e->kind, l->n) ||
	    !is(l, e->seq == l->n, "number", e->seq, l->n) ||
	    !is(l, e->arg[0] == l->life, "life", e->arg[0], l->life) ||
	    !is(l, e->arg[1] == l->lane, "lane", e->arg[1], l->lane) ||
	    !is(l, size < 2 * CHUNK_SIZE, "size", size, 0))
		return false;
	if ((l->s.self == KEPT || l->n % 8) && !payload(l, size, &sum))
		return false;
	reader_take(&l->r);
	l->n++;
	__atomic_fetch_add(&events[l->s.self], 1, __ATOMIC_RELAXED);
	__atomic_fetch_add(&sums[l->s.self], sum, __ATOMIC_RELAXED);
	return true;
}

static void stop(const struct lane_reader *l)
{
	if (l->s.self == DROPPED && __atomic_add_fetch(&stopped, 1, __ATOMIC_ACQ_REL) == READERS)
		__atomic_store_n(&slow, true, __ATOMIC_RELEASE);
}

/* False: the follower is no longer one. */
static bool life_read(struct lane_reader *l)
{
	cursor_begin(&l->s, l->lane, l->life, 0);
	reader_attach(&l->r, &l->s, l->lane);
	for (l->n = 0; l->n < EVENTS || !reader_at_end(&l->r);) {
		const struct event *e = reader_peek(&l->r);

		if (lags(l))
			return false;
		if (e ? !take(l, e) : !is(l, !l->r.broken, "broken", l->lane, l->n))
			return false;
		if (!e && dropped(l))
			return false;
		if (!e)
			pause_ns(20000);
	}
	if (!is(l, l->n == EVENTS, "events of a life", l->n, EVENTS))
		return false;
	cursor_done(&l->s, l->lane);
	return true;
}

/* The lane's next life; false: there is none, or not for us. */
static bool life_wait(struct lane_reader *l)
{
	const struct lane *lane = &streams_section(&l->s, 0)->lane[l->lane];

	while (!lags(l)) {
		/* Acquire: the last lives have begun. */
		bool last = __atomic_load_n(&over, __ATOMIC_ACQUIRE);
		uint32_t now = __atomic_load_n(&lane->life, __ATOMIC_ACQUIRE);

		if (now != l->life) {
			bool next = is(l, now == l->life + 1, "life skipped", now, l->life);

			l->life = now;
			return next;
		}
		if (last || dropped(l))
			return false;
		pause_ns(20000);
	}
	return false;
}

static void *reader_run(void *arg)
{
	uint64_t which = (uint64_t)arg;
	struct lane_reader l = { .s = { conduct, (uint32_t)(which >> 8) }, .lane = which & 0xff };

	/* So much is out before the first event is read. */
	while (conduct->away && l.s.self == KEPT &&
	       __atomic_load_n(&left, __ATOMIC_RELAXED) < LEFT_FIRST)
		pause_ns(20000);
	while (life_wait(&l) && life_read(&l))
		;
	stop(&l);
	return NULL;
}

/* --- the spiller ------------------------------------------------------------------ */

static uint8_t file[CHUNKS + AWAY][CHUNK_SIZE];

/* A chunk that leaves has its memory given to another. */
static void send_out(struct streams *s, uint32_t lane, uint32_t chunk, uint32_t serial)
{
	struct section *own = streams_section(s, 0);
	uint32_t other = 0;

	while (other < conduct->chunks && LOOK(away, &own->chunk_owner[other]) != CHUNK_AWAY)
		other++;
	/* Only the spiller makes one of these anything else. */
	if (other == conduct->chunks || !chunk_leave(s, lane, chunk, serial, 0))
		return;
	memcpy(file[chunk], chunk_at(own, chunk), CHUNK_SIZE);
	if (!chunk_left(s, lane, chunk, serial))
		return;
	memset(chunk_at(own, chunk), 0xff, CHUNK_SIZE);
	chunk_gone(own, chunk);
	__atomic_fetch_add(&left, 1, __ATOMIC_RELAXED);
	check(chunk_grant(own, other), "no chunk to have memory", other, 0);
}

static void lane_send_out(struct streams *s, uint32_t lane)
{
	struct section *own = streams_section(s, 0);
	uint64_t old = LOOK(away, &own->lane[lane].oldest);

	/* Before its first life a lane's chunk is nobody's, and may be its own next. */
	if (!CONSUME(lane_life, &own->lane[lane].life))
		return;
	for (uint32_t serial = (uint32_t)(old >> 32), chunk = (uint32_t)old;
	     chunk < conduct->chunks && chunk != CONSUME(lane_now, &own->lane[lane].now); serial++) {
		uint32_t next = __atomic_load_n(&own->chunk_next[chunk], __ATOMIC_RELAXED);

		if ((int32_t)(serial - (uint32_t)(LOOK(away, &own->lane[lane].oldest) >> 32)) < 0)
			return;
		send_out(s, lane, chunk, serial);
		chunk = next;
	}
}

/* All that is out, whoever looks at it; so many others give their memory, some time. */
static void bring(struct section *own)
{
	for (uint32_t c = 0; c < conduct->chunks; c++) {
		uint32_t owner = LOOK(away, &own->chunk_owner[c]);

		if (owner >= CHUNK_AWAY || !(owner & CHUNK_OUT) ||
		    !chunk_comes(own, (owner & ~CHUNK_STATES) - 1, c))
			continue;
		memcpy(chunk_at(own, c), file[c], CHUNK_SIZE);
		chunk_came(own, c);
		came++;
	}
	for (uint32_t c = 0; c < conduct->chunks && withdrawn < came; c++) {
		if (!chunk_withdraw(own, c))
			continue;
		memset(chunk_at(own, c), 0xff, CHUNK_SIZE);
		chunk_gone(own, c);
		withdrawn++;
	}
}

static void *spiller_run(void *arg)
{
	struct streams s = { conduct, 0 };
	uint64_t state = (uint64_t)arg;

	while (!__atomic_load_n(&ended, __ATOMIC_ACQUIRE)) {
		uint64_t r = random_next(&state);

		if (r % 4)
			lane_send_out(&s, r >> 8 & 3);
		else
			bring(streams_section(&s, 0));
		pause_ns((long)(r >> 20) % 50000);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	bool spills = argc > 1 && !strcmp(argv[1], "spill");
	pthread_t writer[WRITERS], reader[VERSIONS][READERS], spiller;

	alarm(LIMIT_S);
	conduct = mmap(NULL, streams_size(CHUNKS + AWAY), PROT_READ | PROT_WRITE,
		       MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	check(conduct != MAP_FAILED, "mmap", 0, 0);
	conduct->chunks = spills ? CHUNKS + AWAY : CHUNKS;
	conduct->away = spills ? AWAY : 0;
	conduct->sections = VERSIONS;
	conduct->following = 1u << KEPT | 1u << DROPPED;
	chunks_begin(streams_section(&(struct streams){ conduct, 0 }, 0), conduct);
	if (spills)
		pthread_create(&spiller, NULL, spiller_run, (void *)7ul);
	for (uint64_t i = 0; i < READERS; i++)
		for (uint64_t v = KEPT; v <= DROPPED; v++)
			pthread_create(&reader[v][i], NULL, reader_run, (void *)(v << 8 | i));
	for (uint64_t i = 0; i < WRITERS; i++)
		pthread_create(&writer[i], NULL, writer_run, (void *)(i + 1));
	for (int i = 0; i < WRITERS; i++)
		pthread_join(writer[i], NULL);
	__atomic_store_n(&over, true, __ATOMIC_RELEASE);
	for (int i = 0; i < READERS; i++)
		for (int v = KEPT; v <= DROPPED; v++)
			pthread_join(reader[v][i], NULL);
	__atomic_store_n(&ended, true, __ATOMIC_RELEASE);
	if (spills)
		pthread_join(spiller, NULL);
	check(!spills || came >= LEFT_FIRST, "hardly a chunk was moved", left, came);
	check(events[KEPT] == 2 * HALF, "events read", events[KEPT], 2 * HALF);
	check(sums[KEPT] == sums[0], "sum of all", sums[KEPT], sums[0]);
	check(streams_section(&(struct streams){ conduct, 0 }, 0)->dropped == 1u << DROPPED,
	      "not dropped", events[DROPPED], written);
	check(waits > 10, "the ring was hardly ever full", waits, 0);
	puts("ring_threads: ok");
	return 0;
}
