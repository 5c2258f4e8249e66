/*
 * The feeder: a process beside the monitor that fills the first version's section from a
 * recording, frame after frame, as its leader did.  A follower does not see the difference:
 * lanes have the same numbers, lives and places.
 *
 * It waits for the follower where a ring is full, and where a lane's life is to begin whose last
 * one has yet to be read to its end.  Neither waits for ever.  What the recorder found in one look
 * at all lanes stands behind one another, whatever order it had; the ring is larger than the
 * recorded one by two such looks (replay_chunks).  And what came before a life's end stands before
 * the next one's beginning.
 *
 * When all is read it ends, and with it the leader of the session, so to say.
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

#include "engine/abi/table.h"
#include "engine/core/must.h"
#include "engine/core/pairs.h"
#include "engine/core/ring.h"
#include "engine/outside/log/aside.h"
#include "engine/outside/log/feeder.h"
#include "engine/outside/monitor/say.h"
#include "engine/outside/monitor/streams.h"

#define FIRST_LIFE	1		/* of lane 0: the first thread's */
#define FOLLOWER	1		/* the version that is fed */
#define AHEAD_BYTES	(64u << 20)	/* of a recording, in which ends are looked for */
#define WAIT_NS		2000000		/* for room, at most: then we look again */

struct feeder {
	struct monitor *m;
	struct replay *replay;
	struct streams streams;
	struct section *own, *its;
	struct writer writer[LANES];
	uint64_t last[LANES];	/* where the last event begins that the lane has */
	const struct log_frame *now;	/* that waits for room */
	struct stand stand;
	uint64_t looked;	/* whose number that had when ends were looked for */
	uint64_t sum, since_ms;	/* the follower stands, where this says, since then; or 0 */
};

static struct feeder ours;

/* What the leader had mapped, of two sections: of more than twice a ring, as there were more. */
uint32_t replay_chunks(const struct replay *r)
{
	uint64_t each = (replay_span(r) - CONDUCT_SIZE) / 2 - sizeof(struct section);
	uint64_t chunks = each / CHUNK_SIZE;

	return chunks < CHUNKS_MAX ? (uint32_t)chunks : CHUNKS_MAX;
}

uint64_t replay_span(const struct replay *r)
{
	return section_offset(r->program.head.chunks, r->program.head.sections);
}

/* --- one frame ----------------------------------------------------------------------- */

/* It makes no sense from here on: the rest is not fed. */
static bool wrong(struct feeder *f, const struct log_frame *frame, const char *what)
{
	struct fed *fed = f->replay->fed;

	fed->whole = fed->torn = 1;
	snprintf(fed->why, sizeof(fed->why), "frame %lu, lane %u: %s",
		 (unsigned long)frame->number, frame->lane, what);
	return true;
}

static void lane_sleeper_wake(struct feeder *f, uint32_t lane)
{
	if (LIGHT(sleeper, &f->its->asleep[lane]))
		syscall(SYS_futex, &f->own->lane[lane].head, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

/* False: its last life is not read to its end. */
static bool lane_begin(struct feeder *f, const struct log_frame *frame)
{
	struct lane *lane = &f->own->lane[frame->lane];

	/* The first one is open from the start. */
	if (lane->life != frame->life && lane->state == LANE_OPEN)
		return wrong(f, frame, "it begins anew before its end");
	if (lane->life != frame->life && !lane_open_at(&f->streams, frame->lane, frame->life))
		return false;
	writer_attach(&f->writer[frame->lane], &f->streams, frame->lane);
	return true;
}

static void events_see(struct feeder *f, const struct log_frame *frame)
{
	const struct event *e = frame_payload(frame);
	uint32_t cells = frame->size / CELL_SIZE;

	for (uint32_t i = 0; i < cells; i += event_cells(e[i].size % (CHUNK_SIZE + 1))) {
		f->replay->fed->calls += e[i].kind == EVENT_CALL;
		if (e[i].kind == EVENT_MORE)
			continue;
		f->last[frame->lane] = frame->at + i;
		if (!frame->lane && frame->life == FIRST_LIFE)
			f->replay->fed->first_ends = e[i].kind == EVENT_CALL &&
						     call_ends(call_find(e[i].call));
	}
}

/* Cells as the leader has written them; they fit into the chunk, before its turn. */
static void cells_put(struct writer *w, const void *cells, uint32_t n)
{
	MUST(n && w->cell + n < CHUNK_CELLS);
	memcpy(w->chunk + w->cell * CELL_SIZE, cells, (size_t)n * CELL_SIZE);
	w->cell += n;
	w->head += n;
	/* A reader that sees the head sees the cells. */
	PUBLISH(lane_head, &w->lane->head, w->head);
}

static bool cells_feed(struct feeder *f, const struct log_frame *frame)
{
	struct writer *w = &f->writer[frame->lane];

	if (!w->lane)
		return wrong(f, frame, "it has not begun");
	if (w->owes)
		writer_settle(w);
	if (frame->at == w->head + 1 && w->cell == CHUNK_CELLS - 1 && !writer_turn(w))
		return false;
	if (frame->at != w->head || w->lane->life != frame->life ||
	    w->cell + frame->size / CELL_SIZE > CHUNK_CELLS - 1)
		return wrong(f, frame, "it does not go on where it was");
	__atomic_store_n(&w->lane->pid, frame->pid, __ATOMIC_RELAXED);
	__atomic_store_n(&w->lane->owner, frame->tid, __ATOMIC_RELAXED);
	cells_put(w, frame_payload(frame), frame->size / CELL_SIZE);
	lane_sleeper_wake(f, frame->lane);
	events_see(f, frame);
	return true;
}

/* False: there is no room for it yet. */
static bool frame_feed(struct feeder *f, const struct log_frame *frame)
{
	MUST(frame->lane < LANES);
	if (frame->kind == LOG_OPEN)
		return lane_begin(f, frame);
	if (frame->kind == LOG_CELLS)
		return cells_feed(f, frame);
	if (frame->kind == LOG_CLOSED && f->own->lane[frame->lane].state == LANE_OPEN) {
		lane_close(&f->streams, frame->lane);
		lane_sleeper_wake(f, frame->lane);
	}
	return true;
}

static bool frame_next(struct feeder *f)
{
	struct fed *fed = f->replay->fed;

	f->now = stand_next(&f->stand, &f->replay->frames, &fed->until);
	fed->frames += f->now != NULL;
	if (f->now)
		return true;
	if (f->stand.is_held)
		return false;
	fed->whole = 1;
	fed->torn = f->replay->frames.torn;
	memcpy(fed->why, f->replay->frames.why, sizeof(fed->why));
	return false;
}

/* All that there is room for. */
static bool feed(struct feeder *f)
{
	bool any = false;

	while (!f->replay->fed->whole && (f->now || frame_next(f)) && frame_feed(f, f->now)) {
		f->now = NULL;
		any = true;
	}
	return any;
}

/* The follower makes room, or comes to the end of a lane. */
static void room_wait(struct feeder *f)
{
	struct timespec t = { .tv_nsec = WAIT_NS };
	uint32_t seen;

	ANNOUNCE_BY(full, fetch_add, &f->own->full, 1);
	seen = LOOK(full, &f->its->room);
	if (!feed(f))
		syscall(SYS_futex, &f->its->room, FUTEX_WAIT, seen, &t, NULL, 0);
	__atomic_fetch_sub(&f->own->full, 1, __ATOMIC_RELAXED);
}

/* --- lanes that nobody comes to read ------------------------------------------------- */

/*
 * Who was killed told no end, and its lane was closed when somebody saw it: by then others may
 * have begun.  So ends are looked for in what is still to come, if no cells come before them.
 */
static void ends_ahead(struct feeder *f)
{
	static bool more[LANES];
	const struct log_frame *h;
	struct frames ahead;
	uint64_t bytes = 0;

	if (!f->now || f->now->kind != LOG_OPEN || f->looked == f->now->number)
		return;
	f->looked = f->now->number;
	memset(more, 0, sizeof(more));
	frames_copy(&f->replay->frames, &ahead);
	while (bytes < AHEAD_BYTES && (h = frames_next(&ahead))) {
		struct lane *l = &f->own->lane[h->lane % LANES];
		bool ends = h->kind == LOG_CLOSED && !more[h->lane % LANES];

		more[h->lane % LANES] |= h->kind == LOG_OPEN || h->kind == LOG_CELLS;
		if (ends && l->state == LANE_OPEN && l->life == h->life && l->head == h->at)
			frame_feed(f, h);
		bytes += log_frame_size(h->size);
	}
	frames_close(&ahead);
}

/* A twin has come to the lane: it reads it, or has ended and the monitor sees to it. */
static bool lane_has_reader(const struct feeder *f, uint32_t lane)
{
	const struct cursor *c = &f->its->cursor[lane];

	return c->life == f->own->lane[lane].life && CONSUME(cursor_pid, &c->pid);
}

/* What is told is read by all who read: a sum that changes while anybody reads on, or 0. */
static uint64_t all_read(const struct feeder *f)
{
	uint32_t high = section_lanes(f->own);
	uint64_t sum = 1;

	for (uint32_t i = 0; i < high; i++) {
		const struct cursor *c = &f->its->cursor[i];

		if (lane_has_reader(f, i) && streams_lane_unread(f->m, FOLLOWER, 0, i))
			return 0;
		sum = sum * 31 + c->at + c->life + (uint64_t)(uint32_t)c->pid;
	}
	return sum;
}

/* Closed, and its thread's twin has not come: its process was killed before. */
static void lanes_forsake(struct feeder *f)
{
	uint32_t high = section_lanes(f->own);

	for (uint32_t i = 0; i < high; i++) {
		if (f->own->lane[i].state != LANE_CLOSED || lane_has_reader(f, i))
			continue;
		cursor_begin(&(struct streams){ f->m->conduct, FOLLOWER }, i,
			     f->own->lane[i].life, 0);
		cursor_done(&(struct streams){ f->m->conduct, FOLLOWER }, i);
	}
}

/*
 * A lane is to have another life, and its last one has no reader.  In a session such a lane is
 * not used again; here it was, for the recorder had read it.  Its thread's twin may still come,
 * as long as something moves: it is waited for half as long as one that stands still.
 */
static void forsaken_look(struct feeder *f)
{
	uint64_t sum = f->now && f->now->kind == LOG_OPEN ? all_read(f) : 0;

	if (!sum || sum != f->sum) {
		f->sum = sum;
		f->since_ms = now_ms();
	} else if (now_ms() >= f->since_ms + f->m->options->still_ms / 2) {
		lanes_forsake(f);
		f->sum = 0;
	}
}

static bool is_followed(const struct feeder *f)
{
	return CONSUME(conduct_bits, &f->m->conduct->following) >> FOLLOWER & 1;
}

/*
 * An event that does not fit into its chunk goes on in the next.  Where a recording is cut its
 * rest may be missing, and the follower waits for it: cells of such events, once it stands there.
 */
static uint64_t open_cells(const struct feeder *f)
{
	uint32_t high = section_lanes(f->own);
	uint64_t cells = 0;

	for (uint32_t i = 0; i < high && f->replay->fed->torn; i++) {
		uint64_t at = CONSUME(cursor_at, &f->its->cursor[i].at);
		uint64_t head = f->own->lane[i].head;

		if (f->writer[i].cell == CHUNK_CELLS - 1 && at >= f->last[i] && at <= head)
			cells += head - at;
	}
	return cells;
}

static bool is_over(struct feeder *f)
{
	if (!is_followed(f))
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
	aside_begin();
	descriptors_keep((int *[]){ &f->replay->frames.folder, &f->replay->frames.fd }, 2);
	/* A sleeper is to see what we write. */
	syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED, 0, 0);
	while (!is_over(f))
		if (!feed(f)) {
			room_wait(f);
			ends_ahead(f);
			forsaken_look(f);
			stand_look(&f->stand, &f->replay->fed->until, f->its);
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
	ours.its = streams_part(m, FOLLOWER);
	pid = fork();
	if (!pid)
		feeder_run(&ours);
	return pid < 0 ? -errno : pid;
}
