/*
 * The recorder: a process beside the monitor that reads the leader's lanes as a follower
 * does, with cursors of its own in a section that no version has (ROW_LOG), and writes them
 * into a folder.
 *
 * The leader makes no call for it, and wakes nobody: the recorder looks at all lanes again and
 * again, less often the longer nothing comes; a leader that finds no room wakes all that sleep
 * on the monitor's page.  Cells are written from where they lie, and given back when that is
 * done.  Of what stands in them it looks at turns alone, and checks those as any reader.
 *
 * Whatever becomes of it, the session goes on: at the end of the recorder it holds nothing, and
 * the monitor says so.  The monitor's end, or the session's, is the recorder's: it writes what
 * is there and ends.
 */
#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "engine/core/away.h"
#include "engine/core/must.h"
#include "engine/core/pairs.h"
#include "engine/outside/log/aside.h"
#include "engine/outside/record/recorder_parts.h"
#include "engine/outside/monitor/say.h"
#include "engine/outside/monitor/streams.h"

#define LOOK_FIRST_NS	500000		/* between two looks at quiet lanes; */
#define LOOK_LAST_NS	20000000	/* twice as long each time, up to this */
#define SYNC_MS		1000		/* with --sync second */
#define HURRY_PART	4		/* of the ring is unread: nothing more is compressed */
#define OVER_PART	8		/* of all lanes are kept from another life */

__attribute__((format(printf, 2, 3)))
static bool ends(struct recorder *r, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	if (!r->why[0])
		vsnprintf(r->why, sizeof(r->why), fmt, ap);
	va_end(ap);
	return false;
}

/* --- gathering ----------------------------------------------------------------------- */

static const uint8_t *cell_at(const struct section *s, uint32_t chunk, uint64_t at)
{
	MUST(chunk < CHUNKS_MAX);
	return (const uint8_t *)s + sizeof(*s) + (uint64_t)chunk * CHUNK_SIZE +
	       at % CHUNK_CELLS * CELL_SIZE;
}

static struct log_frame *frame_add(struct recorder *r, struct gathered *g, uint32_t lane,
				   enum log_kind kind, const void *payload, uint32_t size)
{
	const struct lane *l = &r->from->lane[lane];
	struct place *p = &r->place[lane];
	struct log_frame *f = batch_add(&r->writer, &g->batch, kind, payload, size);

	f->lane = lane;
	f->life = p->life;
	f->at = p->at;
	f->pid = l->pid;
	f->tid = l->owner;
	f->round = r->rounds;
	/* It goes with the head: before that more may have been given, and told. */
	f->giving = p->at + size / CELL_SIZE == p->head ? p->giving : 0;
	p->gave = f->giving;
	batch_seal(f, payload);
	return f;
}

/* What is gathered up to here is given back with this batch. */
static void reached_note(struct recorder *r, struct gathered *g, uint32_t lane)
{
	const struct place *p = &r->place[lane];

	MUST(g->batch.frames && g->batch.frames <= BATCH_FRAMES);
	g->reached[g->batch.frames - 1] = (struct reached){ lane, p->life, p->chunk, p->at };
}

static bool is_full(struct recorder *r, const struct gathered *g)
{
	r->full |= batch_full(&r->writer, &g->batch);
	return r->full;
}

/* The last cell of a chunk says where the lane goes on. */
static bool turn_take(struct recorder *r, uint32_t lane)
{
	struct place *p = &r->place[lane];
	const struct event *turn = (const void *)cell_at(r->from, p->chunk, p->at);
	uint64_t next = __atomic_load_n(&turn->arg[0], __ATOMIC_RELAXED);

	if (turn->kind != EVENT_TURN || next >= r->streams.conduct->chunks)
		return ends(r, "what stands in the ring makes no sense (lane %u)", lane);
	p->chunk = (uint32_t)next;
	p->at++;
	return true;
}

/* What is new, a frame for each chunk. */
static bool cells_gather(struct recorder *r, struct gathered *g, uint32_t lane)
{
	struct place *p = &r->place[lane];

	if (!p->at)
		p->chunk = __atomic_load_n(&r->from->lane[lane].first, __ATOMIC_RELAXED);
	while (p->at < p->head && !is_full(r, g)) {
		uint64_t room = CHUNK_CELLS - 1 - p->at % CHUNK_CELLS;
		uint64_t n = p->head - p->at < room ? p->head - p->at : room;
		const uint8_t *cells;

		if (p->chunk >= r->streams.conduct->chunks)
			return ends(r, "what stands in the ring makes no sense (lane %u)", lane);
		if (!n) {
			if (!turn_take(r, lane))
				return false;
			continue;
		}
		cells = cell_at(r->from, p->chunk, p->at);
		frame_add(r, g, lane, LOG_CELLS, cells, (uint32_t)n * CELL_SIZE);
		p->at += n;
		reached_note(r, g, lane);
	}
	return true;
}

static bool lane_gather(struct recorder *r, struct gathered *g, uint32_t lane)
{
	struct place *p = &r->place[lane];

	if (!p->life || p->ended || p->begins)
		return true;
	if (!cells_gather(r, g, lane))
		return false;
	if (p->at < p->head || is_full(r, g))
		return true;
	if (p->giving != p->gave && !p->closed) {
		frame_add(r, g, lane, LOG_GIVES, NULL, 0);
		reached_note(r, g, lane);
	}
	if (!p->closed || is_full(r, g))
		return true;
	frame_add(r, g, lane, LOG_CLOSED, NULL, 0);
	p->ended = r->looks;
	r->over[(r->over_first + r->over_count++) % LANES] = lane;
	MUST(r->over_count <= LANES);
	reached_note(r, g, lane);
	return true;
}

/* A lane is read up to the cut; of a life that began behind it nothing is. */
static void head_clip(struct place *p, const struct told *cut)
{
	uint64_t most = p->life == cut->life ? cut->at : p->at;

	if (!p->life || p->ended || p->begins || (int32_t)(p->life - cut->life) < 0 ||
	    p->head <= most)
		return;
	MUST(p->at <= most);
	p->head = most;
	p->closed = false;
	p->giving = p->gave;
}

/* All that was told up to there is gathered. */
static bool is_reached(const struct recorder *r, const struct told *lane)
{
	bool all = true;

	for (uint32_t i = 0; i < LANES && all; i++) {
		const struct place *p = &r->place[i];
		int32_t behind = (int32_t)(p->life - lane[i].life);

		/* Of a life that has told nothing nothing may ever come. */
		all = !lane[i].at || behind > 0 ||
		      (!behind && !p->begins && p->at >= lane[i].at);
	}
	return all;
}

/* How far each lane is told. */
static bool heads_see(struct recorder *r)
{
	uint64_t cells = (uint64_t)r->streams.conduct->chunks * CHUNK_CELLS;
	uint32_t high = section_lanes(r->from);

	for (uint32_t i = 0; i < high; i++) {
		const struct lane *l = &r->from->lane[i];
		struct place *p = &r->place[i];

		if (!p->life || p->ended || p->begins)
			continue;
		/* If it is closed the head is the last. */
		p->closed = CONSUME(lane_state, &l->state) == LANE_CLOSED;
		p->head = CONSUME(lane_head, &l->head);
		/* Behind the head: what is given here was not told there. */
		p->giving = CONSUME(lane_giving, &l->giving);
		if (p->head < p->at || p->head - p->at > cells)
			return ends(r, "what stands in the ring makes no sense (lane %u)", i);
	}
	return true;
}

/* How much of the ring is not given back. */
static void hurry_see(struct recorder *r)
{
	uint32_t high = section_lanes(r->from);
	uint64_t filled = 0;

	for (uint32_t i = 0; i < high; i++)
		if (r->place[i].life && !r->place[i].ended && !r->place[i].begins)
			filled += CONSUME(lane_head, &r->from->lane[i].head) -
				  r->own->cursor[i].at;
	r->writer.hurry = filled > (uint64_t)chunks_in_memory(r->streams.conduct) * CHUNK_CELLS /
				   HURRY_PART;
}

/* Behind the heads: what was told behind the cut shows that there is one. */
static void ends_see(struct recorder *r)
{
	uint32_t high = section_lanes(r->from);

	r->cutting = CONSUME(recorder_cut, &r->cut->number) != r->cuts;
	for (uint32_t i = 0; i < high && r->cutting; i++)
		head_clip(&r->place[i], &r->cut->lane[i]);
	for (uint32_t i = 0; i < high && r->asked[0]; i++)
		head_clip(&r->place[i], &r->last[i]);
}

/*
 * Lives that have begun.  Whoever names one in an event has opened the lane before: behind a look
 * at the heads all are seen that are named there.  Their own events are for the next look.
 */
static void lives_see(struct recorder *r, struct gathered *g)
{
	uint32_t high = section_lanes(r->from);

	for (uint32_t i = 0; i < high && !r->full; i++) {
		const struct lane *l = &r->from->lane[i];
		uint32_t state = CONSUME(lane_state, &l->state);
		uint32_t life = CONSUME(lane_life, &l->life);

		if (is_full(r, g))
			continue;
		if (!life || (life == r->place[i].life && !r->place[i].begins) ||
		    state == LANE_FREE || state == LANE_CLAIMED)
			continue;
		/* One that began behind the cut is said behind it; behind the end none is. */
		if (!r->place[i].begins && ((r->cutting && life != r->cut->lane[i].life) ||
					    (r->asked[0] && life != r->last[i].life)))
			continue;
		if (!r->place[i].begins) {
			r->place[i] = (struct place){ .life = life };
			cursor_begin(&r->streams, i, life, r->leader);
		}
		r->place[i].begins = false;
		frame_add(r, g, i, LOG_OPEN, NULL, 0);
		g->reached[g->batch.frames - 1] = (struct reached){ 0 };
	}
}

/*
 * `begins`: a round, which comes to where the lanes are by now and no further.  So none of them is
 * left out while another is told faster than it can be written, and it is no more than the ring.
 */
static bool lanes_gather(struct recorder *r, struct gathered *g, bool begins)
{
	bool sane = !begins || heads_see(r);
	uint32_t high;

	hurry_see(r);
	ends_see(r);
	lives_see(r, g);
	high = section_lanes(r->from);
	for (uint32_t i = 0; sane && i < high && !r->full; i++) {
		uint32_t lane = (r->lane + i) % high;

		sane = lane_gather(r, g, lane);
		if (r->full)
			r->lane = lane;
	}
	return sane;
}

static bool is_dropped(const struct recorder *r)
{
	return CONSUME_AGAIN(section_dropped, &r->from->dropped) & US;
}

static const char too_slow[] = "a whole ring behind: the disk is slower than the server";

/*
 * All lanes in turn, from where the last batch was full; false: the recording ends before
 * what was gathered, which is not believed.
 */
static bool gather(struct recorder *r, struct gathered *g)
{
	uint64_t number = r->writer.number;
	bool begins = !r->full, sane;

	batch_empty(&g->batch);
	r->full = false;
	r->looks += begins;
	g->look = r->looks;
	sane = lanes_gather(r, g, begins);
	/* What makes no sense was written over, then. */
	if (is_dropped(r)) {
		r->why[0] = 0;
		sane = ends(r, "%s", too_slow);
	}
	if (sane) {
		g->whole = !r->full;
		r->rounds += g->whole;
		return true;
	}
	r->writer.number = number;
	batch_empty(&g->batch);
	return false;
}

/* --- giving back --------------------------------------------------------------------- */

static void room_tell(struct recorder *r)
{
	/* What was read is seen by who has not seen the count. */
	ANNOUNCE_BY(full, fetch_add, &r->own->room, 1);
	if (LOOK(full, &r->from->full))
		syscall(SYS_futex, &r->own->room, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

/*
 * So many lanes whose life is written down are kept from another one, those that ended last: half
 * of them, again and again, while the leader wants for room.  A replay comes to the next life once
 * the last one's thread has ended there, too; that may want a lock, of no order of ours, which who
 * makes the next one holds.
 */
static uint32_t over_kept(const struct recorder *r)
{
	uint32_t chunks = chunks_in_memory(r->streams.conduct);

	/* It has waked us.  All at once would be those, too, whose threads are just ending. */
	if (__atomic_load_n(&r->from->full, __ATOMIC_RELAXED))
		return r->over_count / 2;
	return (chunks < LANES ? chunks : LANES) / OVER_PART;
}

/*
 * A lane may have another life when a whole look has been written that began behind its end: so
 * all that came before it stands in the recording before the life that comes next.
 */
static void ended_done(struct recorder *r, uint64_t look)
{
	uint32_t kept = over_kept(r), lane;
	bool any = false;

	while (r->over_count > kept) {
		lane = r->over[r->over_first];
		MUST(r->place[lane].ended);
		if (r->place[lane].ended >= look)
			break;
		cursor_done(&r->streams, lane);
		r->over_first = (r->over_first + 1) % LANES;
		r->over_count--;
		any = true;
	}
	if (any)
		room_tell(r);
}

static bool given_back(struct recorder *r, struct gathered *g)
{
	if (g->batch.error)
		return ends(r, "cannot write: %s", strerror(-g->batch.error));
	if (g->batch.frames)
		batch_settle(&r->writer, &g->batch);
	for (unsigned i = 0; i < g->batch.frames; i++) {
		const struct reached *n = &g->reached[i];
		struct cursor *c = &r->own->cursor[n->lane];

		/* Once we are dropped the lane may have another life. */
		if (!n->life || c->life != n->life)
			continue;
		c->place = cursor_place(n->at, n->chunk);
		/* It is written down: the leader may use the cells again. */
		PUBLISH(cursor_at, &c->at, n->at);
	}
	if (g->batch.frames)
		room_tell(r);
	if (g->whole)
		ended_done(r, g->look);
	g->batch.frames = 0;
	g->whole = false;
	return true;
}

/* --- its life ------------------------------------------------------------------------ */

/* It is to end where the leader stood for that, or else where the lanes are now. */
static void last_note(struct recorder *r)
{
	uint32_t number = CONSUME(recorder_cut, &r->cut->number), high = section_lanes(r->from);
	bool stood = number != r->cuts && r->cut->image == CUT_ENDS;

	if (stood) {
		memcpy(r->last, r->cut->lane, sizeof(r->last));
		r->cuts = number;
	}
	for (uint32_t i = 0; i < high && !stood; i++) {
		const struct lane *l = &r->from->lane[i];

		/* None that we have yet to read has another after it. */
		r->last[i].life = CONSUME(lane_life, &l->life);
		r->last[i].at = CONSUME(lane_head, &l->head);
	}
}

/* The monitor has closed its end, or is gone: the session is over.  Or it has said a word. */
static bool is_over(struct recorder *r)
{
	struct pollfd p = { .fd = r->socket, .events = POLLIN };
	ssize_t n;

	if (r->asked[0] || poll(&p, 1, 0) <= 0)
		return false;
	n = recv(r->socket, r->asked, sizeof(r->asked) - 1, MSG_DONTWAIT);
	if (n > 0)
		last_note(r);
	return n <= 0;
}

/* Until the lanes may have something new, or a leader finds no room. */
static void rest(const struct recorder *r, uint32_t seen, uint64_t *ns)
{
	struct timespec t = { .tv_nsec = (long)*ns };

	MUST(*ns >= LOOK_FIRST_NS && *ns <= LOOK_LAST_NS);
	syscall(SYS_futex, &r->streams.conduct->change, FUTEX_WAIT, seen, &t, NULL, 0);
	*ns = *ns * 2 < LOOK_LAST_NS ? *ns * 2 : LOOK_LAST_NS;
}

/* What was written before is on the disk, as far as that is asked for. */
static bool sync_look(struct recorder *r)
{
	enum log_sync sync = r->m->options->sync;
	int result;

	if (sync == SYNC_NONE || (sync == SYNC_SECOND && now_ms() < r->synced_ms + SYNC_MS))
		return true;
	r->synced_ms = now_ms();
	result = log_writer_sync(&r->writer);
	return !result || ends(r, "cannot write: %s", strerror(-result));
}

/* What waits to be shipped is bounded. */
static bool spool_look(struct recorder *r)
{
	const struct log_writer *w = &r->writer;
	uint64_t written = w->before + w->offset;

	if (!r->most ||
	    written <= __atomic_load_n(&w->tail->acked, __ATOMIC_RELAXED) + r->most)
		return true;
	return ends(r, "%lu MiB wait to be shipped, as much as --spool allows",
		    (unsigned long)(r->most >> 20));
}

/* Whom we read died, and the recording ends with that. */
static bool is_dead(const struct recorder *r)
{
	return r->cut->died[0] && (!r->why[0] || !strcmp(r->why, RECORDER_LEFT));
}

/* One frame for itself. */
static int frame_write(struct recorder *r, struct gathered *g, enum log_kind kind,
		       const void *payload, uint32_t size)
{
	struct batch *b = &g->batch;
	struct log_frame *f;

	batch_empty(b);
	g->reached[0] = (struct reached){ 0 };
	f = batch_add(&r->writer, b, kind, payload, size);
	f->at = kind == LOG_END && r->why[0];
	f->life = kind == LOG_END && is_dead(r);
	batch_seal(f, payload);
	batch_write(&r->writer, b);
	batch_wait(&r->writer, b);
	b->frames = 0;
	if (!b->error)
		batch_settle(&r->writer, b);
	return b->error;
}

/* With the image that the segment begins with, which the next one does not. */
static int head_write(struct recorder *r, struct gathered *g)
{
	struct log_head *h = (struct log_head *)r->head.bytes;
	int result;

	r->writer.image = h->image;
	result = frame_write(r, g, LOG_HEAD, r->head.bytes, r->head.size);
	h->image = 0;
	return result;
}

/* Behind the cut all lanes begin anew, in a segment that can be read alone. */
static void cut_done(struct recorder *r)
{
	struct log_head *h = (struct log_head *)r->head.bytes;

	h->image = r->cut->image + 1;
	r->cuts = r->cut->number;
	r->cutting = false;
	/* The next one may be written. */
	PUBLISH(cut_made, &r->cut->made, r->cuts);
	for (uint32_t i = 0; i < LANES; i++)
		r->place[i].begins = r->place[i].life && !r->place[i].ended;
}

/* There is room for a batch, in this segment or the next. */
static bool segment_look(struct recorder *r, struct gathered *g, struct gathered *other)
{
	const char *bound = log_writer_bound(&r->writer);
	bool cuts;
	int result;

	if (bound)
		return ends(r, "there is as much as may be (%s)", bound);
	cuts = r->cutting && r->cut->image != CUT_ENDS && is_reached(r, r->cut->lane);
	if (!cuts && !log_writer_full(&r->writer))
		return true;
	batch_wait(&r->writer, &other->batch);
	result = r->m->options->sync == SYNC_NONE ? 0 : log_writer_sync(&r->writer);
	if (!result && !given_back(r, other))
		return false;
	if (!result)
		result = log_writer_turn(&r->writer);
	if (cuts)
		cut_done(r);
	if (!result)
		result = head_write(r, g);
	return !result || ends(r, "cannot write: %s", strerror(-result));
}

/* One look at all lanes, while what was found before is written; false: it ends. */
static bool look(struct recorder *r, unsigned turn, bool *any)
{
	struct gathered *g = &r->turn[turn], *other = &r->turn[!turn];
	bool whole = spool_look(r) && segment_look(r, g, other) && gather(r, g);

	*any = whole && g->batch.frames;
	if (*any)
		batch_write(&r->writer, &g->batch);
	batch_wait(&r->writer, &other->batch);
	return sync_look(r) && given_back(r, other) && whole &&
	       (r->streams.conduct->leader == r->leader || ends(r, RECORDER_LEFT));
}

/* It was asked to end, and has come to where the lanes were then. */
static bool is_done(struct recorder *r)
{
	return r->asked[0] && is_reached(r, r->last) && !ends(r, "%s", r->asked);
}

static void record(struct recorder *r)
{
	uint64_t ns = LOOK_FIRST_NS;
	bool over = false, any = true;

	for (unsigned turn = 0; !is_done(r) && (!over || any); turn = !turn) {
		/* What was told before the change is seen by the look. */
		uint32_t seen = CONSUME(conduct_change, &r->streams.conduct->change);

		over |= is_over(r);
		if (!look(r, turn, &any))
			return;
		ns = any ? LOOK_FIRST_NS : ns;
		if (!over && !r->full)
			rest(r, seen, &ns);
	}
}

/* Nobody reads on for who was replaced: what it told is over where that is all written down. */
static bool is_left(const struct recorder *r, uint32_t lane)
{
	const struct place *p = &r->place[lane];

	return p->life && !p->ended && !p->begins && p->life == r->from->lane[lane].life &&
	       p->at == CONSUME(lane_head, &r->from->lane[lane].head);
}

static int lanes_close(struct recorder *r)
{
	struct gathered *g = &r->turn[0];
	int result = 0;

	for (uint32_t i = 0; i < LANES && is_dead(r) && !result; i++) {
		batch_empty(&g->batch);
		if (!is_left(r, i))
			continue;
		frame_add(r, g, i, LOG_CLOSED, NULL, 0);
		batch_write(&r->writer, &g->batch);
		batch_wait(&r->writer, &g->batch);
		result = g->batch.error;
		if (!result)
			batch_settle(&r->writer, &g->batch);
	}
	return result;
}

static void finish(struct recorder *r)
{
	const char *why = r->why[0] ? r->why : "the session has ended";
	char died[FRAMES_WHY];
	int result;

	for (unsigned i = 0; i < 2; i++)
		batch_wait(&r->writer, &r->turn[i].batch);
	snprintf(died, sizeof(died), "%.60s; %.60s", r->cut->died, why);
	why = is_dead(r) ? died : why;
	result = lanes_close(r);
	streams_follow(r->m, ROW_LOG, false);
	if (!result)
		result = frame_write(r, &r->turn[0], LOG_END, why, (uint32_t)strlen(why));
	if (!result)
		result = log_writer_close(&r->writer);
	if (result)
		ends(r, "cannot write: %s", strerror(-result));
	if (r->why[0])
		send(r->socket, r->why, strlen(r->why), MSG_NOSIGNAL);
}

/* Where the session's leader stood for an image; lanes of which nothing more comes are over. */
static void places_take(struct recorder *r)
{
	for (uint32_t i = 0; i < LANES && r->image; i++) {
		const struct cursor *c = &r->own->cursor[i];

		if (!c->life)
			continue;
		r->place[i] = (struct place){ .life = c->life, .at = c->at, .head = c->at,
					      .chunk = place_chunk(c->place),
					      .begins = c->done != c->life };
		if (c->done == c->life)
			r->place[i].ended = r->place[i].closed = true;
	}
}

void recorder_run(struct recorder *r)
{
	struct record_bounds bounds = r->m->options->bounds;
	int result;

	setsid();
	prctl(PR_SET_NAME, "mve-record");
	signal(SIGXFSZ, SIG_IGN);
	descriptors_keep((int *[]){ &r->socket, &r->writer.folder, &r->writer.fd }, 3);
	bounds.images = r->m->options->images_ms;
	log_writer_begin(&r->writer, r->m->options->compress, &bounds);
	r->from = streams_part(r->m, r->leader);
	r->own = streams_part(r->m, ROW_LOG);
	places_take(r);
	result = head_write(r, &r->turn[0]);
	if (result)
		ends(r, "cannot write: %s", strerror(-result));
	record(r);
	finish(r);
	_exit(r->why[0] ? EXIT_NO : EXIT_OK);
}
