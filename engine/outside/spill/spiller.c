/*
 * The spiller: a process beside the monitor.  Where a follower is so far behind that the leader
 * would find no room soon, it writes chunks that nobody looks at to a file, takes their memory
 * away, and gives as many others memory in their place; before a follower comes there it
 * brings them back.  core/away.h has the words by which the leader's threads, who reads, and it go
 * by one another; the leader makes no call for it, and waits for it nowhere.
 *
 * So much memory as the ring had stays in use, more only where a follower needs a chunk and all
 * that are there are looked at.  The file has a place for each chunk of each version's section,
 * and grows where chunks stand there; it has no name, is made where the first leaves, and is
 * gone when all in it have been read.
 *
 * While nobody is far behind it sleeps, and looks now and then whether somebody comes to be.  A
 * leader's thread that finds no room wakes it (lanes/full.c): it says so in `full`, and then
 * wakes who sleeps on `change`; we sleep on both words, and see one or the other.
 *
 * Where the file takes no more it stays at bringing back, and looks now and then whether it
 * takes some again.  It ends with the monitor, or where it cannot read back what it wrote.
 *
 * Nor is what it reads believed to be what it wrote: of each chunk in the file it keeps the sum, in
 * its own memory.  One that is another stays where it is, and who comes there is lost.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/falloc.h>
#include <linux/futex.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "engine/core/away.h"
#include "engine/core/holds.h"
#include "engine/core/must.h"
#include "engine/core/pairs.h"
#include "engine/outside/bytes/crc32c.h"
#include "engine/outside/log/aside.h"
#include "engine/outside/monitor/say.h"
#include "engine/outside/monitor/streams.h"
#include "engine/outside/spill/chunks.h"
#include "engine/outside/spill/disk.h"
#include "engine/outside/spill/quiet.h"
#include "engine/outside/spill/spiller.h"

#define LOOK_NS		1000000		/* between two looks, where there is something to do; */
#define QUIET_NS	5000000		/* where there is not, but somebody is behind */
#define FREE_SHARE	2		/* half of the memory is to be free for the leader */
#define AHEAD_SHARE	4		/* a fourth is for what followers look at next: who is no
					   further behind is not behind; */
#define AHEAD_MOST	64		/* in no lane more chunks than that */
#define AGAIN_MS	20		/* between two walks through all that lanes hold */
#define FULL_AGAIN_MS	1000		/* the file was full: between two trials */

/* How far a lane has been gone through for chunks that may leave. */
struct place {
	uint32_t life, serial, chunk;
};

struct work {
	const struct spiller *s;
	int fd;				/* the file; -1: nothing is out, and there is none */
	struct streams streams;		/* the leader's */
	struct place place[LANES];
	uint32_t ahead;			/* chunks behind what is looked at that stay */
	uint32_t free, memory, out, away;	/* as last counted */
	uint32_t grant, withdraw;	/* where to look for one without memory, for a free one */
	uint64_t again_ms, full_ms;
	bool busy, gave, brought;	/* in this look: something was moved; there is room */
	bool sees;			/* it has a word to sleep on until the leader is full */
	uint32_t sum[VERSIONS][CHUNKS_MAX];	/* of what the file has of each */
	uint8_t bytes[CHUNK_SIZE];
};

static struct work work;

static struct section *section_of(const struct work *w, uint32_t version)
{
	return streams_part(w->s->m, version);
}

static uint32_t chunks_all(const struct work *w)
{
	return w->s->m->conduct->chunks;
}

/* --- the file ---------------------------------------------------------------------- */

static uint8_t *chunk_bytes(const struct work *w, uint32_t version, uint32_t chunk)
{
	MUST(chunk < chunks_all(w));
	return (uint8_t *)section_of(w, version) + chunk_offset(chunk);
}

static off_t file_place(const struct work *w, uint32_t version, uint32_t chunk)
{
	return (off_t)(((uint64_t)version * chunks_all(w) + chunk) * CHUNK_SIZE);
}

/* There is one, and it may grow; 0 or a negative errno. */
static int file_ready(struct work *w)
{
	MUST(w->s->folder >= 0);
	if (w->fd < 0)
		w->fd = disk_file(w->s->folder);
	if (w->fd < 0)
		return w->fd;
	return !w->s->shares || disk_has_room(w->fd, CHUNK_SIZE) ? 0 : -ENOSPC;
}

/*
 * 0 or a negative errno.  The sum is of the bytes that are written: the version can change its own
 * meanwhile.
 */
static int chunk_write(struct work *w, uint32_t version, uint32_t chunk)
{
	ssize_t n = file_ready(w);

	if (n)
		return (int)n;
	memcpy(w->bytes, chunk_bytes(w, version, chunk), CHUNK_SIZE);
	w->sum[version][chunk] = crc32c(0, w->bytes, CHUNK_SIZE);
	n = pwrite(w->fd, w->bytes, CHUNK_SIZE, file_place(w, version, chunk));
	if (n == CHUNK_SIZE)
		return 0;
	return n < 0 ? -errno : -ENOSPC;
}

static void tell(const struct work *w, bool over, const char *what, int error)
{
	struct spiller_word word = { .over = over };

	MUST(w->s->socket >= 0);
	snprintf(word.text, sizeof(word.text), "%s: %s", what, strerror(error));
	send(w->s->socket, &word, sizeof(word), MSG_NOSIGNAL | MSG_DONTWAIT);
}

static _Noreturn void fail(const struct work *w, const char *what, int error)
{
	tell(w, true, what, error);
	_exit(EXIT_NO);
}

/* Whoever is in front of it looks for it again and again, so it is told until it is heard. */
static void lost_tell(const struct work *w, uint32_t reader, uint32_t source)
{
	struct spiller_word word = { .lost = true, .reader = reader, .source = source };

	MUST(w->s->socket >= 0);
	send(w->s->socket, &word, sizeof(word), MSG_NOSIGNAL | MSG_DONTWAIT);
}

/* The file takes no more; said once, until it takes some again. */
static void file_full(struct work *w, int error)
{
	const char *what = w->s->shares && error == ENOSPC ?
			   "cannot spill more than an eighth of what is free" : "cannot spill";

	if (!w->full_ms)
		tell(w, false, what, error);
	w->full_ms = now_ms();
}

static void memory_free(const struct work *w, uint32_t version, uint32_t chunk)
{
	if (fallocate(w->s->section[version], FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
		      (off_t)chunk_offset(chunk), CHUNK_SIZE) < 0)
		fail(w, "cannot give memory back", errno);
}

/* --- counting ------------------------------------------------------------------------ */

/* Of the leader's chunks. */
static void count(struct work *w)
{
	const struct section *own = section_of(w, w->streams.self);
	uint32_t n = chunks_all(w), free = 0, away = 0, out = 0;

	for (uint32_t i = 0; i < n; i++) {
		uint32_t owner = __atomic_load_n(&own->chunk_owner[i], __ATOMIC_RELAXED);

		free += !owner;
		away += owner == CHUNK_AWAY;
		out += owner < CHUNK_AWAY && owner & CHUNK_OUT;
	}
	w->free = free;
	w->out = out;
	w->away = away;
	w->memory = n - away - out;
	w->s->seen->out = out;
	w->s->seen->memory = w->memory;
	if (w->memory > w->s->seen->most)
		w->s->seen->most = w->memory;
}

/* --- giving and taking memory -------------------------------------------------------- */

/* What one chunk has given back another gets: the leader may write there. */
static bool memory_grant(struct work *w)
{
	struct section *own = section_of(w, w->streams.self);
	uint32_t n = chunks_all(w);

	for (uint32_t i = 0; i < n && w->memory < chunks_in_memory(w->s->m->conduct); i++) {
		uint32_t c = w->grant++ % n;

		if (!chunk_grant(own, c))
			continue;
		w->memory++;
		w->free++;
		w->away--;
		w->gave = true;
		return true;
	}
	return false;
}

/* A chunk that is free has memory that another needs. */
static bool free_withdraw(struct work *w)
{
	struct section *own = section_of(w, w->streams.self);
	uint32_t n = chunks_all(w);

	for (uint32_t i = 0; w->free && i < n; i++) {
		uint32_t c = w->withdraw++ % n;

		if (!chunk_withdraw(own, c))
			continue;
		memory_free(w, w->streams.self, c);
		chunk_gone(own, c);
		w->free--;
		w->memory--;
		w->away++;
		return true;
	}
	return false;
}

/* Lanes keep what was read until they want it again. */
static void lanes_give_back(struct work *w)
{
	uint32_t high = section_lanes(section_of(w, w->streams.self));

	for (uint32_t i = 0; i < high; i++)
		w->free += lane_give_back(&w->streams, i);
}

static bool memory_withdraw(struct work *w)
{
	if (free_withdraw(w))
		return true;
	lanes_give_back(w);
	return free_withdraw(w);
}

/* --- out --------------------------------------------------------------------------- */

static bool chunk_send_out(struct work *w, uint32_t lane, const struct place *p)
{
	struct section *own = section_of(w, w->streams.self);
	int result;

	if (!chunk_may_leave(&w->streams, lane, p->serial, w->ahead) ||
	    !chunk_leave(&w->streams, lane, p->chunk, p->serial, w->ahead))
		return false;
	result = chunk_write(w, w->streams.self, p->chunk);
	if (result) {
		chunk_stays(own, lane, p->chunk);
		file_full(w, -result);
		return false;
	}
	w->full_ms = 0;
	if (!chunk_left(&w->streams, lane, p->chunk, p->serial))
		return false;
	memory_free(w, w->streams.self, p->chunk);
	chunk_gone(own, p->chunk);
	w->memory--;
	w->out++;
	w->s->seen->written++;
	w->busy = true;
	return true;
}

/* The lane's oldest chunk; what is behind it in the chain is so for as long as it is that. */
static struct place oldest_of(const struct lane *l)
{
	uint64_t old = CONSUME(lane_oldest, &l->oldest);

	return (struct place){ CONSUME(lane_life, &l->life), (uint32_t)(old >> 32), (uint32_t)old };
}

/* False: it is the chunk that is written, or the lane has gone on from there. */
static bool place_next(const struct section *own, uint32_t chunks, const struct lane *l,
		       struct place *p)
{
	uint32_t next;

	if (p->chunk >= chunks || p->chunk == CONSUME(lane_now, &l->now))
		return false;
	next = __atomic_load_n(&own->chunk_next[p->chunk], __ATOMIC_RELAXED);
	/* As long as the chunk was the lane's that was its next. */
	if ((int32_t)(p->serial - (uint32_t)(LOOK(away, &l->oldest) >> 32)) < 0)
		return false;
	p->chunk = next;
	p->serial++;
	return p->chunk < chunks;
}

/* The leader may find no room soon. */
static bool is_short(const struct work *w)
{
	return w->free < chunks_in_memory(w->s->m->conduct) / FREE_SHARE;
}

static bool is_wanted(const struct work *w)
{
	/* There is another chunk for the memory: less than --log-max is out. */
	return is_short(w) && w->away &&
	       (!w->full_ms || now_ms() >= w->full_ms + FULL_AGAIN_MS);
}

/* What the lane has behind where we were; each that leaves makes room for another. */
static void lane_send_out(struct work *w, uint32_t lane)
{
	const struct section *own = section_of(w, w->streams.self);
	const struct lane *l = &own->lane[lane];
	struct place *p = &w->place[lane], oldest = oldest_of(l);
	uint32_t chunks = chunks_all(w);

	if (!oldest.life || oldest.chunk >= chunks)
		return;
	if (p->life != oldest.life || (int32_t)(p->serial - oldest.serial) < 0)
		*p = oldest;
	for (uint32_t n = 0; n < chunks && is_wanted(w); n++) {
		struct place at = *p;

		if (!place_next(own, chunks, l, p))
			return;
		if (chunk_send_out(w, lane, &at))
			memory_grant(w);
	}
}

static void send_out(struct work *w)
{
	uint32_t high = section_lanes(section_of(w, w->streams.self));

	if (!is_wanted(w))
		return;
	for (uint32_t i = 0; i < high && is_wanted(w); i++)
		lane_send_out(w, i);
	/* What somebody looked at when we passed it may leave now. */
	if (is_wanted(w) && now_ms() >= w->again_ms + AGAIN_MS) {
		memset(w->place, 0, sizeof(w->place));
		w->again_ms = now_ms();
	}
}

/* --- back --------------------------------------------------------------------------- */

/* What images hold behind followers is no reason to have more of it than the ring. */
static bool memory_have(struct work *w, bool needed)
{
	struct section *own = section_of(w, w->streams.self);

	if (w->memory < chunks_in_memory(w->s->m->conduct) || memory_withdraw(w))
		return true;
	if (needed && images_let_go(&w->streams, own, LANES))
		memory_withdraw(w);
	return needed;
}

/* To `bytes`; false: it is not what was written. */
static bool chunk_read(struct work *w, uint32_t version, uint32_t chunk)
{
	ssize_t n = pread(w->fd, w->bytes, CHUNK_SIZE, file_place(w, version, chunk));

	if (n != CHUNK_SIZE)
		fail(w, "cannot read back", n < 0 ? errno : EIO);
	return crc32c(0, w->bytes, CHUNK_SIZE) == w->sum[version][chunk];
}

/* False: it is lost. */
static bool chunk_bring(struct work *w, uint32_t version, uint32_t lane, uint32_t chunk)
{
	struct section *from = section_of(w, version);

	MUST(version < VERSIONS && chunk < chunks_all(w));
	if (!chunk_comes(from, lane, chunk))
		return true;
	if (!chunk_read(w, version, chunk)) {
		chunk_gone(from, chunk);
		return false;
	}
	memcpy(chunk_bytes(w, version, chunk), w->bytes, CHUNK_SIZE);
	chunk_came(from, chunk);
	w->memory += version == w->streams.self;
	w->s->seen->read++;
	w->busy = w->brought = true;
	return true;
}

/* Where the follower stands in a lane. */
static struct place place_of(const struct cursor *c, const struct lane *l)
{
	uint32_t base = __atomic_load_n(&l->base, __ATOMIC_RELAXED);
	uint32_t life = CONSUME(lane_life, &l->life);
	uint64_t at = __atomic_load_n(&c->place, __ATOMIC_RELAXED);

	if (CONSUME(cursor_life, &c->life) != life || place_chunk(at) == CHUNK_NONE)
		return (struct place){ life, base, __atomic_load_n(&l->first, __ATOMIC_RELAXED) };
	return (struct place){ life, base + (uint32_t)(at >> 32), place_chunk(at) };
}

/* From where it stands what it looks at, and as far again as is kept ahead. */
static void lane_bring(struct work *w, uint32_t version, uint32_t lane, bool needed)
{
	const struct section *its = section_of(w, version);
	uint32_t source = its->cursor[lane].source, chunks = chunks_all(w);
	const struct section *from;
	struct streams of;
	struct place p;
	bool more = true;

	if (source >= w->s->m->versions || source == version)
		return;
	from = section_of(w, source);
	of = (struct streams){ w->s->m->conduct, source };
	p = place_of(&its->cursor[lane], &from->lane[lane]);
	for (uint32_t n = 0; more && p.life && p.chunk < chunks && n < chunks; n++) {
		uint32_t owner = __atomic_load_n(&from->chunk_owner[p.chunk], __ATOMIC_RELAXED);
		int32_t behind = (int32_t)(p.serial - chunk_reach(&of, version, lane));

		if (behind > (needed ? 0 : (int32_t)(w->ahead + 1) / 2))
			return;
		if (owner == (CHUNK_OUT | (lane + 1))) {
			if (!memory_have(w, needed))
				return;
			if (!chunk_bring(w, source, lane, p.chunk)) {
				if (needed)
					lost_tell(w, version, source);
				return;
			}
		}
		more = place_next(from, chunks, &from->lane[lane], &p);
	}
}

static void bring_all(struct work *w, bool needed)
{
	const struct conduct *c = w->s->m->conduct;
	/* Who has just come to lead reads what the one before has told. */
	uint32_t bits = (c->following | 1u << w->streams.self) & ~c->mute & ~c->keeps;

	for (uint32_t v = 0; v < VERSIONS; v++) {
		uint32_t high = bits >> v & 1 ? section_lanes(section_of(w, w->streams.self)) : 0;

		for (uint32_t i = 0; i < high; i++)
			lane_bring(w, v, i, needed);
	}
}

/* --- a look ------------------------------------------------------------------------- */

static uint32_t ahead_of(const struct work *w)
{
	uint32_t lanes = section_lanes(section_of(w, w->streams.self));
	uint32_t ahead = chunks_in_memory(w->s->m->conduct) / AHEAD_SHARE / (lanes ? lanes : 1);

	return ahead > AHEAD_MOST ? AHEAD_MOST : ahead ? ahead : 1;
}

/* Who waits for room looks again. */
static void room_tell(const struct work *w)
{
	struct section *own = section_of(w, w->streams.self);

	ANNOUNCE_BY(full, fetch_add, &own->room, 1);
	if (LOOK(full, &own->full))
		syscall(SYS_futex, &own->room, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

static void leader_see(struct work *w)
{
	uint32_t leader = CONSUME(conduct_leader, &w->s->m->conduct->leader);

	if (leader == w->streams.self)
		return;
	w->streams.self = leader;
	/* Where all is as it was at first its chunks are as new; else it is not counted yet. */
	if (w->fd >= 0 || w->memory != chunks_in_memory(w->s->m->conduct))
		w->memory = 0;
	memset(w->place, 0, sizeof(w->place));
}

/* More has memory than there was: free chunks give it back. */
static void memory_trim(struct work *w)
{
	while (w->memory > chunks_in_memory(w->s->m->conduct) && memory_withdraw(w))
		;
}

static bool any_out(const struct work *w)
{
	uint32_t n = chunks_all(w);

	for (uint32_t v = 0; v < w->s->m->versions; v++) {
		const struct section *s = section_of(w, v);

		for (uint32_t i = 0; i < n; i++) {
			uint32_t owner = __atomic_load_n(&s->chunk_owner[i], __ATOMIC_RELAXED);

			if (chunk_is_away(owner) && owner != CHUNK_AWAY)
				return true;
		}
	}
	return false;
}

/* What was out has been read, all of it: the disk has its room back. */
static void file_trim(struct work *w)
{
	if (w->out || w->busy || w->fd < 0 || any_out(w))
		return;
	close(w->fd);
	w->fd = -1;
}

static void look(struct work *w)
{
	w->busy = w->gave = w->brought = false;
	count(w);
	w->ahead = ahead_of(w);
	bring_all(w, true);
	send_out(w);
	bring_all(w, false);
	memory_trim(w);
	while (is_short(w) && memory_grant(w))
		;
	file_trim(w);
	if (w->busy || w->gave)
		room_tell(w);
}

/* --- nothing to do -------------------------------------------------------------------- */

/* All is as it was before anything was spilled, and nobody needs that anything is. */
static bool is_quiet(const struct work *w)
{
	uint32_t memory = chunks_in_memory(w->s->m->conduct);

	return w->fd < 0 && w->memory == memory &&
	       !LOOK(full, &section_of(w, w->streams.self)->full) &&
	       behind_most(w->s->m, w->streams.self) < memory / AHEAD_SHARE;
}

static void look_rest(struct work *w, uint32_t seen)
{
	struct timespec t = { 0 };

	look(w);
	/* Who reads on will want more at once. */
	if (w->brought)
		return;
	t.tv_nsec = w->busy ? LOOK_NS : QUIET_NS;
	syscall(SYS_futex, &w->s->m->conduct->change, FUTEX_WAIT, seen, &t, NULL, 0);
}

static bool is_over(const struct work *w)
{
	struct pollfd p = { .fd = w->s->socket, .events = POLLIN };

	return poll(&p, 1, 0) > 0;
}

_Noreturn void spiller_run(const struct spiller *s)
{
	struct work *w = &work;

	setsid();
	aside_begin();
	prctl(PR_SET_NAME, "mve-spill");
	sleep_ends_with_parent();
	signal(SIGXFSZ, SIG_IGN);
	w->s = s;
	w->fd = -1;
	w->sees = true;
	w->streams = (struct streams){ s->m->conduct, s->m->conduct->leader };
	while (!is_over(w)) {
		uint32_t seen = CONSUME(conduct_change, &s->m->conduct->change);

		leader_see(w);
		if (w->sees && is_quiet(w))
			w->sees = sleep_until_full(w->s->m, w->streams.self);
		else
			look_rest(w, seen);
	}
	_exit(EXIT_OK);
}
