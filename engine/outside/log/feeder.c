/*
 * The feeder: a process beside the monitor that fills the first version's section from a
 * recording, frame after frame, as its leader did.  A follower does not see the difference:
 * lanes have the same numbers, lives and places.
 *
 * Each lane is fed by itself.  Where its next life cannot begin, since the follower has not read
 * the last one to its end, and before a clone that names such a life, what is behind waits in the
 * lane's own row (ahead.h), and other lanes go on: among them are those that the follower needs
 * to come there.  It does, for what a life depends on was done before the lane had another.
 *
 * Where the ring is full all wait.  What the recorder found in one look at all lanes stands behind
 * one another, whatever order it had; the ring is larger than the recorded one by two such looks
 * (replay_chunks).
 *
 * A life that no twin will come to read is over: its thread's process ended first, in the
 * follower, or who made it was killed in the leader before it told of it.  In a session such a
 * lane is not used again; here it was, for the recorder had read it.
 *
 * When all is read it ends, and with it the leader of the session, so to say.  A recording that
 * still grows is read as it comes: which lives clones will name is not known then, and a life that
 * none has named waits for the end.
 */
#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <linux/membarrier.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "engine/abi/edge.h"
#include "engine/abi/table.h"
#include "engine/core/must.h"
#include "engine/core/pairs.h"
#include "engine/core/ring.h"
#include "engine/outside/kernel/process.h"
#include "engine/outside/log/ahead.h"
#include "engine/outside/log/aside.h"
#include "engine/outside/log/feeder.h"
#include "engine/outside/monitor/say.h"
#include "engine/outside/monitor/streams.h"

#define FIRST_LIFE	1		/* of lane 0: the first thread's */
#define FOLLOWER	1		/* the version that is fed */
#define FRAMES_EACH	64		/* of the recording, between two looks at rows */
#define WAIT_NS		2000000		/* for room, at most: then we look again; */
#define WAIT_LAST_NS	20000000	/* where it grows longer each time, up to this */
#define STUCK_MS	200		/* nothing is fed: time to look what is ahead */

/* What became of a frame. */
enum outcome {
	FRAME_FED,
	FRAME_ROOM,	/* the ring is full */
	FRAME_WAITS,	/* for what other lanes have, or a life's end; others go on */
};

/* Of the lane's life that clones of the recording name. */
struct named {
	uint32_t life;		/* the last that was fed; */
	uint32_t by, by_life;	/* in which lane */
};

struct feeder {
	struct monitor *m;
	struct replay *replay;
	struct streams streams;
	struct section *own, *its;
	struct writer writer[LANES];
	uint64_t last[LANES];	/* where the last event begins that the lane has */
	struct named named[LANES];
	uint64_t calls[LANES];	/* of the lane's life */
	struct ahead ahead;
	struct stand stand;
	const struct log_frame *now;	/* that waits for room */
	uint32_t round;		/* of the last frame that was read */
	bool read;		/* all of the recording is */
	uint64_t stuck_ms;	/* nothing was fed since; 0: something was */
	long wait_ns;
};

static struct feeder ours;

/* What the leader had mapped, of two sections: of more than twice a ring, as there were more. */
uint32_t replay_chunks(const struct replay *r)
{
	uint64_t each = (replay_span(r) - CONDUCT_SIZE) / 2 - sizeof(struct section);
	uint64_t chunks = each / CHUNK_SIZE;

	return chunks < CHUNKS_MAX ? (uint32_t)chunks : CHUNKS_MAX;
}

/* As large a part of them as of the leader's has no memory: nobody gives it any here. */
uint32_t replay_away(const struct replay *r)
{
	const struct log_head *h = &r->program.head;

	return (uint32_t)((uint64_t)replay_chunks(r) * h->away / h->chunks);
}

uint64_t replay_span(const struct replay *r)
{
	return section_offset(r->program.head.chunks, r->program.head.sections);
}

/* --- one frame ----------------------------------------------------------------------- */

/* It makes no sense from here on: the rest is not fed. */
static enum outcome wrong(struct feeder *f, const struct log_frame *frame, const char *what)
{
	struct fed *fed = f->replay->fed;

	fed->whole = fed->read = fed->torn = 1;
	snprintf(fed->why, sizeof(fed->why), "frame %lu, lane %u: %s",
		 (unsigned long)frame->number, frame->lane, what);
	return FRAME_ROOM;
}

static void lane_sleeper_wake(struct feeder *f, uint32_t lane)
{
	if (LIGHT(sleeper, &f->its->asleep[lane]))
		syscall(SYS_futex, &f->own->lane[lane].head, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

/*
 * The twin that reads there is dead; who has yet to come comes while its process lives.  A thread
 * that executes a program is gone, too, and has said before that it comes again (roles/exec.c).
 */
static bool reader_over(const struct cursor *c)
{
	int32_t pid = CONSUME(cursor_pid, &c->pid);
	int32_t owner = __atomic_load_n(&c->owner, __ATOMIC_RELAXED);
	bool over = pid > 0 && (owner > 0 ? thread_ended(pid, owner) : process_over(pid));

	return over && CONSUME(cursor_pid, &c->pid) == pid &&
	       __atomic_load_n(&c->owner, __ATOMIC_RELAXED) == owner;
}

/* Who is to make the life's twin has read on, or is dead. */
static bool maker_over(const struct feeder *f, const struct named *n)
{
	const struct cursor *c = &f->its->cursor[n->by];

	if (f->own->lane[n->by].life != n->by_life)
		return true;
	/* Else it has yet to come itself. */
	return c->life == n->by_life && (c->done == n->by_life || reader_over(c));
}

/* ... and what is ahead can be known. */
static bool is_stuck(const struct feeder *f)
{
	const struct frames *frames = &f->replay->frames;

	return (!frames->tail || frames->over) && f->stuck_ms && now_ms() >= f->stuck_ms + STUCK_MS;
}

/* The lane's life is closed, and no twin will read it to its end. */
static bool life_forsaken(struct feeder *f, uint32_t lane)
{
	const struct cursor *c = &f->its->cursor[lane];
	const struct named *n = &f->named[lane];
	uint32_t life = f->own->lane[lane].life;
	bool over;

	if (c->life == life)
		return reader_over(c);
	if (n->life != life)
		return is_stuck(f) && !ahead_names(&f->ahead, f->now, f->stand.part,
						   &f->replay->frames, lane, life);
	over = maker_over(f, n);
	/* It may have come to the clone meanwhile. */
	return over && CONSUME(cursor_life, &c->life) != life;
}

static void life_forsake(struct feeder *f, uint32_t lane)
{
	struct streams its = { f->m->conduct, FOLLOWER };

	if (f->its->cursor[lane].life != f->own->lane[lane].life)
		cursor_begin(&its, lane, f->own->lane[lane].life, 0);
	cursor_done(&its, lane);
}

/* The last life of the lane is read to its end. */
static bool life_over(struct feeder *f, uint32_t lane)
{
	const struct cursor *c = &f->its->cursor[lane];
	uint32_t life = f->own->lane[lane].life;

	if (f->own->lane[lane].state != LANE_CLOSED)
		return true;
	if (life_forsaken(f, lane))
		life_forsake(f, lane);
	return c->life == life && CONSUME(cursor_done, &c->done) == life;
}

/* Another thread of the lane's process has a twin. */
static bool process_read(const struct feeder *f, uint32_t lane)
{
	bool any = false;

	for (uint32_t i = 0; i < section_lanes(f->own) && !any; i++)
		any = i != lane && f->own->lane[i].pid == f->own->lane[lane].pid &&
		      CONSUME(cursor_life, &f->its->cursor[i].life) == f->own->lane[i].life;
	return any;
}

/*
 * A thread that its process died of before the one that made it had told so: no clone names it,
 * and nobody comes to read what it did.  Once all is fed that is known.
 */
static void unnamed_forsake(struct feeder *f)
{
	for (uint32_t i = 0; i < section_lanes(f->own) && f->replay->fed->died[0]; i++) {
		uint32_t life = f->own->lane[i].life;

		if (life && f->named[i].life != life && process_read(f, i) &&
		    CONSUME(cursor_life, &f->its->cursor[i].life) != life) {
			life_forsake(f, i);
			f->replay->fed->calls -= f->calls[i];
		}
	}
}

static enum outcome lane_begin(struct feeder *f, const struct log_frame *frame)
{
	struct lane *lane = &f->own->lane[frame->lane];

	/* It was said again, where a segment begins with an image. */
	if (lane->life == frame->life && f->writer[frame->lane].lane)
		return FRAME_FED;
	/* The first one is open from the start. */
	if (lane->life != frame->life) {
		if (lane->state == LANE_OPEN && lane->head)
			return wrong(f, frame, "it begins anew before its end");
		/* Nobody came to have it: the clone failed. */
		if (lane->state == LANE_OPEN)
			lane_cancel(&f->streams, frame->lane);
		if (!life_over(f, frame->lane))
			return FRAME_WAITS;
		if (!lane_open_at(&f->streams, frame->lane, frame->life))
			return FRAME_ROOM;
		f->calls[frame->lane] = 0;
	}
	writer_attach(&f->writer[frame->lane], &f->streams, frame->lane);
	f->writer[frame->lane].fed = true;
	return FRAME_FED;
}

/* A thread that is not the first may end its process, and the first alone itself. */
static void first_see(struct feeder *f, const struct log_frame *frame, const struct event *e)
{
	struct fed *fed = f->replay->fed;
	bool first = !frame->lane && frame->life == FIRST_LIFE;

	if (frame->pid != f->replay->program.head.pid)
		return;
	if (e->kind == EVENT_CALL && call_ends(call_find(e->call)) &&
	    (first || e->call == CALL_exit_group))
		fed->first_ends = frame->lane + 1;
	else if (fed->first_ends == frame->lane + 1)
		fed->first_ends = 0;
}

static void event_see(struct feeder *f, const struct log_frame *frame, const struct event *e,
		      uint64_t at)
{
	uint32_t lane, life;

	f->replay->fed->calls += e->kind == EVENT_CALL;
	f->calls[frame->lane] += e->kind == EVENT_CALL;
	if (e->kind == EVENT_MORE)
		return;
	f->last[frame->lane] = at;
	if (event_bears(e, &lane, &life))
		f->named[lane] = (struct named){ life, frame->lane, frame->life };
	first_see(f, frame, e);
}

/* --- what an event waits for --------------------------------------------------------- */

/* The life that it is about has yet to begin: its child's, or that which it comes behind. */
static bool life_waits(const struct feeder *f, const struct event *e)
{
	uint64_t edge = e->arg[EDGE_ARG];
	uint32_t lane, life, ahead;

	if (event_bears(e, &lane, &life) && (int32_t)(life - f->own->lane[lane].life) > 0)
		return true;
	if (!(e->flags & EVENT_AFTER))
		return false;
	lane = edge_lane(edge) % LANES;
	life = (uint32_t)(edge >> (EDGE_PLACE_BITS + 1)) % (1u << EDGE_LIFE_BITS);
	ahead = (life + EDGE_LIVES - 1 - f->own->lane[lane].life % EDGE_LIVES) % EDGE_LIVES;
	return ahead && ahead < EDGE_LIVES / 2;
}

/* A fork, or a clock's second: threads of the process look whether others are before it. */
static bool is_for_all(const struct event *e)
{
	uint32_t lane, life;

	return e->flags & (EVENT_CLOCK | EVENT_TICK) ||
	       (event_bears(e, &lane, &life) && e->arg[CLONE_COPIES_ARG]);
}

/* An event of the frame that is not fed comes before that number. */
static bool frame_before(const struct feeder *f, const struct log_frame *frame, uint64_t seq)
{
	const struct event *e = frame_payload(frame);
	uint32_t cells = frame->kind == LOG_CELLS ? frame->size / CELL_SIZE : 0;
	const struct writer *w = &f->writer[frame->lane];
	uint32_t i = 0;

	if (w->lane && w->lane->life == frame->life && w->head > frame->at)
		i = (uint32_t)(w->head - frame->at);
	for (; i < cells; i += event_span(&e[i], cells - i))
		if (e[i].kind != EVENT_MORE && (e[i].seq & ORDER_MASK))
			return (e[i].seq & ORDER_MASK) < (seq & ORDER_MASK);
	return false;
}

/* Of the recording more is to be read than what is there of the frame's round and the next. */
static bool round_ends_ahead(const struct feeder *f, const struct log_frame *frame)
{
	return !f->read && !f->stand.is_held && (int32_t)(f->round - frame->round) < 2 &&
	       (!f->now || ahead_room(&f->ahead, f->now));
}

/* What other threads of the process had told or begun by then, as far as the recorder saw it. */
static bool others_before(const struct feeder *f, const struct log_frame *frame, uint64_t seq)
{
	const struct log_frame *other;

	if (round_ends_ahead(f, frame))
		return true;
	for (uint32_t i = 0; i < LANES && f->ahead.frames; i++) {
		other = ahead_first(&f->ahead, i);
		if (other && i != frame->lane && other->pid == frame->pid &&
		    frame_before(f, other, seq))
			return true;
	}
	return f->now && f->now->lane != frame->lane && f->now->pid == frame->pid &&
	       frame_before(f, f->now, seq);
}

static bool event_waits(const struct feeder *f, const struct log_frame *frame,
			const struct event *e)
{
	return life_waits(f, e) || (is_for_all(e) && others_before(f, frame, e->seq));
}

/* --- cells ---------------------------------------------------------------------------- */

/* Cells from `from` on, before the first event that has to wait. */
static uint32_t cells_free(struct feeder *f, const struct log_frame *frame, uint32_t from)
{
	const struct event *e = frame_payload(frame);
	uint32_t cells = frame->size / CELL_SIZE, i = from;

	while (i < cells && !event_waits(f, frame, &e[i])) {
		event_see(f, frame, &e[i], frame->at + i);
		i += event_span(&e[i], cells - i);
	}
	return i - from;
}

/* Cells as the leader has written them; they fit into the chunk, before its turn. */
static void cells_put(struct writer *w, const void *cells, uint32_t n)
{
	MUST(n && writer_at(w) + n < CHUNK_CELLS);
	memcpy(w->cell, cells, (size_t)n * CELL_SIZE);
	writer_move(w, w->cell, w->cell + n);
}

/* The lane is in the life of the frame, and comes to its first cell, or is among its cells. */
static bool cells_fit(const struct writer *w, const struct log_frame *frame)
{
	uint64_t end = frame->at + frame->size / CELL_SIZE;

	return w->lane->life == frame->life && w->head >= frame->at && w->head < end &&
	       writer_at(w) + (end - w->head) <= CHUNK_CELLS - 1;
}

/* Behind what was told: nobody waits for what is given and stands there. */
static void giving_put(struct feeder *f, const struct log_frame *frame)
{
	struct lane *lane = &f->own->lane[frame->lane];

	if (lane->life == frame->life)
		PUBLISH(lane_giving, &lane->giving, frame->giving);
}

/* Of a frame that was fed in part the rest. */
static enum outcome cells_feed(struct feeder *f, const struct log_frame *frame)
{
	struct writer *w = &f->writer[frame->lane];
	const struct event *cells = frame_payload(frame);
	uint32_t from, n;

	if (!w->lane)
		return wrong(f, frame, "it has not begun");
	if (w->owes)
		writer_settle(w);
	if (frame->at == w->head + 1 && writer_at(w) == CHUNK_CELLS - 1 && !writer_turn(w))
		return FRAME_ROOM;
	if (!cells_fit(w, frame))
		return wrong(f, frame, "it does not go on where it was");
	from = (uint32_t)(w->head - frame->at);
	n = cells_free(f, frame, from);
	__atomic_store_n(&w->lane->pid, frame->pid, __ATOMIC_RELAXED);
	__atomic_store_n(&w->lane->owner, frame->tid, __ATOMIC_RELAXED);
	if (n) {
		cells_put(w, cells + from, n);
		lane_sleeper_wake(f, frame->lane);
	}
	if (from + n < frame->size / CELL_SIZE)
		return FRAME_WAITS;
	giving_put(f, frame);
	return FRAME_FED;
}

static enum outcome frame_feed(struct feeder *f, const struct log_frame *frame)
{
	MUST(frame->lane < LANES);
	if (frame->kind == LOG_OPEN)
		return lane_begin(f, frame);
	if (frame->kind == LOG_CELLS)
		return frame->size ? cells_feed(f, frame) : FRAME_FED;
	if (frame->kind == LOG_GIVES)
		giving_put(f, frame);
	if (frame->kind == LOG_CLOSED && f->own->lane[frame->lane].state == LANE_OPEN) {
		lane_close(&f->streams, frame->lane);
		lane_sleeper_wake(f, frame->lane);
	}
	return FRAME_FED;
}

/* --- all of them --------------------------------------------------------------------- */

/* What waits in rows; false: the ring is full, and nobody else is fed. */
static bool rows_feed(struct feeder *f, bool *any)
{
	const struct log_frame *frame;
	enum outcome now = FRAME_FED;

	for (uint32_t i = 0; f->ahead.frames && i < LANES && now != FRAME_ROOM; i++) {
		now = FRAME_FED;
		while (now == FRAME_FED && (frame = ahead_first(&f->ahead, i)) &&
		       (now = frame_feed(f, frame)) == FRAME_FED) {
			ahead_take(&f->ahead, i);
			*any = true;
		}
	}
	return now != FRAME_ROOM;
}

/* The recorder's word of the end. */
static void end_see(struct fed *fed, const struct log_frame *end)
{
	fed->ended = 1;
	fed->early = end->at != 0;
	if (end->life)
		snprintf(fed->died, sizeof(fed->died), "%.*s", (int)end->size,
			 (const char *)frame_payload(end));
}

static bool frame_next(struct feeder *f)
{
	struct fed *fed = f->replay->fed;

	if (f->now || f->read)
		return f->now;
	f->now = stand_next(&f->stand, &f->replay->frames, &fed->until);
	fed->frames += f->now != NULL;
	f->read = !f->now && !f->stand.is_held && f->replay->frames.over;
	fed->read = f->read;
	if (f->replay->frames.tail)	/* what was before is in our memory */
		__atomic_store_n(&f->replay->tail->taken, f->replay->frames.segment,
				 __ATOMIC_RELAXED);
	if (f->now) {
		fed->ended = fed->early = 0;
		if (f->now->kind == LOG_END)
			end_see(fed, f->now);
		fed->lost = frames_lost(&f->replay->frames);
		if (fed->lost)
			snprintf(fed->why, sizeof(fed->why), "%s",
				 frames_wrong(&f->replay->frames));
	}
	if (f->now && f->now->kind != LOG_END)
		f->round = f->now->round;
	return f->now;
}

/* The recording's next, or to its lane's row; false: it waits. */
static bool frame_pass(struct feeder *f)
{
	bool waits = ahead_first(&f->ahead, f->now->lane);
	enum outcome now = waits ? FRAME_WAITS : frame_feed(f, f->now);

	if (now == FRAME_ROOM || (now == FRAME_WAITS && !ahead_add(&f->ahead, f->now)))
		return false;
	f->now = NULL;
	return true;
}

static void feed_end(struct feeder *f)
{
	struct fed *fed = f->replay->fed;

	if (fed->whole || !f->read || f->ahead.frames)
		return;
	fed->torn = f->replay->frames.torn;
	if (fed->torn)
		memcpy(fed->why, f->replay->frames.why, sizeof(fed->why));
	unnamed_forsake(f);
	fed->whole = 1;
}

/* All that there is room for. */
static bool feed(struct feeder *f)
{
	bool any = false, more = true;

	while (more && !f->replay->fed->whole && rows_feed(f, &any)) {
		unsigned n = 0;

		while (n < FRAMES_EACH && !f->replay->fed->whole && frame_next(f) && frame_pass(f))
			n++;
		more = n > 0;
		any |= more;
	}
	feed_end(f);
	if (any) {
		f->stuck_ms = 0;
		f->wait_ns = WAIT_NS;
	} else if (!f->stuck_ms) {
		f->stuck_ms = now_ms();
	}
	return any;
}

/* The follower makes room, or comes to the end of a lane. */
static void room_wait(struct feeder *f)
{
	struct timespec t = { .tv_nsec = f->wait_ns };
	uint32_t seen;

	if (f->replay->frames.tail && f->wait_ns < WAIT_LAST_NS)
		f->wait_ns *= 2;

	ANNOUNCE_BY(full, fetch_add, &f->own->full, 1);
	seen = LOOK(full, &f->its->room);
	if (!feed(f))
		syscall(SYS_futex, &f->its->room, FUTEX_WAIT, seen, &t, NULL, 0);
	__atomic_fetch_sub(&f->own->full, 1, __ATOMIC_RELAXED);
}

/* --- its life ------------------------------------------------------------------------ */

static bool is_followed(const struct feeder *f)
{
	return CONSUME(conduct_bits, &f->m->conduct->following) >> FOLLOWER & 1;
}

/*
 * An event that does not fit into its chunk goes on in the next.  Where a recording is cut, or has
 * ended before its session, its
 * rest may be missing, and the follower waits for it: cells of such events, once it stands there.
 */
static uint64_t open_cells(const struct feeder *f)
{
	const struct fed *fed = f->replay->fed;
	uint32_t high = section_lanes(f->own);
	uint64_t cells = 0;

	for (uint32_t i = 0; i < high && (fed->torn || fed->early); i++) {
		uint64_t at = CONSUME(cursor_at, &f->its->cursor[i].at);
		uint64_t head = f->own->lane[i].head;

		if (writer_at(&f->writer[i]) == CHUNK_CELLS - 1 && at >= f->last[i] && at <= head)
			cells += head - at;
	}
	return cells;
}

static bool is_over(struct feeder *f)
{
	if (!is_followed(f) || __atomic_load_n(&f->replay->fed->rests, __ATOMIC_RELAXED))
		return true;
	if (!f->replay->fed->whole)
		return false;
	f->replay->fed->open = open_cells(f);
	return streams_unread(f->m, FOLLOWER, 0) <= f->replay->fed->open &&
	       !stand_is_watched(&f->replay->fed->until, f->its);
}

static _Noreturn void feeder_run(struct feeder *f)
{
	setsid();
	prctl(PR_SET_NAME, "mve-feed");
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	f->wait_ns = WAIT_NS;
	aside_begin();
	descriptors_keep((int *[]){ &f->replay->frames.folder, &f->replay->frames.fd }, 2);
	/* A sleeper is to see what we write. */
	syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED, 0, 0);
	while (!is_over(f))
		if (!feed(f)) {
			room_wait(f);
			stand_look(&f->stand, &f->replay->fed->until, f->its);
			__atomic_fetch_add(&f->replay->fed->looks, 1, __ATOMIC_RELAXED);
		}
	_exit(EXIT_OK);
}

pid_t feeder_begin(struct monitor *m, struct replay *r)
{
	pid_t pid;

	r->fed = mmap(NULL, sizeof(*r->fed), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
		      -1, 0);
	if (r->fed == MAP_FAILED)
		return -errno;
	MUST(m->versions > FOLLOWER);
	if (r->until_event || r->until_ns)
		stand_ask(m, r->until_event, r->until_ns);
	ours.m = m;
	ours.replay = r;
	ours.streams = (struct streams){ m->conduct, 0 };
	ours.own = streams_part(m, 0);
	ours.stand.events = r->before;
	ours.its = streams_part(m, FOLLOWER);
	pid = fork();
	if (!pid)
		feeder_run(&ours);
	return pid < 0 ? -errno : pid;
}
