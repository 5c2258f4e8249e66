/*
 * The streams of a session with followers: the monitor's page, the versions' sections,
 * and what the monitor does to the sections of versions.
 *
 * The page (struct conduct) is ours alone.  The sections are their versions';
 * we write there only before a version begins, while it stands still for a
 * takeover, and in the place of threads that have died.  What stands in a
 * section is believed as little as anything that a program could write.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "engine/abi/table.h"
#include "engine/core/must.h"
#include "engine/core/pairs.h"
#include "engine/core/ring.h"
#include "engine/outside/late/rows.h"
#include "engine/outside/late/kept.h"
#include "engine/outside/late/start_record.h"
#include "engine/outside/kernel/process.h"
#include "engine/outside/kernel/shared.h"
#include "engine/outside/log/replay.h"
#include "engine/outside/monitor/monitor.h"
#include "engine/outside/monitor/realms.h"
#include "engine/outside/monitor/say.h"
#include "engine/outside/monitor/streams.h"
#include "engine/outside/monitor/versions.h"
#include "engine/outside/spill/spill.h"
#include "engine/outside/takeover/takeover.h"

#define ZOMBIES_LOOKED	16	/* process table entries read in one sweep */

struct section *realm_part(const struct monitor *m, uint32_t realm, uint32_t version)
{
	MUST(realm < m->realms && version < VERSIONS);
	struct streams s = { m->realm[realm].conduct, version };

	return streams_section(&s, version);
}

struct section *streams_part(const struct monitor *m, uint32_t version)
{
	return realm_part(m, 0, version);
}

struct lane *lane_at(const struct monitor *m, uint32_t version, uint32_t lane)
{
	MUST(lane < LANES_ALL);
	return &realm_part(m, lane / LANES, version)->lane[lane % LANES];
}

struct cursor *cursor_at(const struct monitor *m, uint32_t version, uint32_t lane)
{
	MUST(lane < LANES_ALL);
	return &realm_part(m, lane / LANES, version)->cursor[lane % LANES];
}

uint32_t lane_next(const struct monitor *m, uint32_t version, uint32_t lane)
{
	for (; lane_is(m, lane); lane = (lane / LANES + 1) * LANES)
		if (lane % LANES < section_lanes(realm_part(m, lane / LANES, version)))
			return lane;
	return LANES_ALL;
}

uint32_t streams_dropped(const struct monitor *m, uint32_t version)
{
	uint32_t bits = 0;

	for (uint32_t r = 0; r < m->realms; r++)
		bits |= realm_part(m, r, version)->dropped;
	return bits;
}

uint32_t streams_strayed(const struct monitor *m, uint32_t version)
{
	uint32_t bits = 0;

	for (uint32_t r = 0; r < m->realms; r++)
		bits |= realm_part(m, r, version)->strayed;
	return bits;
}

uint64_t streams_waited_ns(const struct monitor *m, uint32_t version)
{
	uint64_t ns = 0;

	for (uint32_t r = 0; r < m->realms; r++)
		ns += realm_part(m, r, version)->waited_ns;
	return ns;
}

/* --- making them ----------------------------------------------------------------- */

static void conduct_fill(struct monitor *m, uint32_t chunks)
{
	struct conduct *c = m->conduct;

	MUST(chunks && chunks <= CHUNKS_MAX && m->versions <= VERSIONS);

	c->magic = RING_MAGIC;
	c->version = RING_VERSION;
	c->chunks = chunks;
	c->away = m->options->replay ? replay_away(m->options->replay) : spill_chunks();
	if (m->options->record)
		c->mute |= 1u << ROW_LOG;
	if (m->options->sampling.stateless)
		c->mute |= 1u << ROW_START;
	/* For those that come later, too; in a replay the ring has their room. */
	c->sections = m->options->replay ? m->versions : VERSIONS;
	c->when_full = m->options->when_full;
	c->full_ms = m->options->full_ms;
	c->one_at_a_time = m->options->one_at_a_time;
	c->seams = m->options->seams;
	c->sampling = m->options->sampling;
	for (uint32_t v = 0; v < VERSIONS; v++)
		c->next[v] = c->born[v] = v;
	c->births = VERSIONS;
}

/* The first thread's lane, and everybody's place at its beginning. */
static int lanes_begin(struct monitor *m)
{
	struct streams own = { m->conduct, 0 };
	uint32_t life;

	if (m->options->replay && m->options->replay->foam)
		return foam_lanes(m, m->options->replay->foam);
	MUST(lane_open(&own, ~0u) == 0);
	life = streams_part(m, 0)->lane[0].life;
	for (uint32_t v = 1; v < m->versions; v++) {
		struct streams s = { m->conduct, v };

		if (version_unused(&m->version[v]))
			continue;

		cursor_begin(&s, 0, life, 0);
		m->conduct->following |= 1u << v;
	}
	if (m->options->record) {
		cursor_begin(&(struct streams){ m->conduct, ROW_LOG }, 0, life, 0);
		m->conduct->following |= 1u << ROW_LOG;
	}
	start_record_begin(m);
	kept_begin(m);
	if (m->options->sampling.stateless)
		streams_part(m, 0)->lane[0].readers = m->conduct->following;
	return 0;
}

int streams_make(struct monitor *m)
{
	const struct replay *replay = m->options->replay;
	uint32_t chunks = replay ? replay_chunks(replay) :
			  (uint32_t)(m->options->ring_bytes / CHUNK_SIZE) + spill_chunks();
	void *room;
	int result;

	MUST(!m->conduct);
	if (getrandom(m->secret, sizeof(m->secret), 0) != sizeof(m->secret))
		return -EIO;
	room = realm_room(chunks);
	if (!room)
		return -errno;
	m->conduct = shared_make("mve-conduct", CONDUCT_SIZE, room, F_SEAL_FUTURE_WRITE,
				 &m->conduct_fd);
	if (!m->conduct)
		return -errno;
	m->realm[0].conduct = m->conduct;
	if (getrandom(&m->conduct->maps, sizeof(m->conduct->maps), 0) != sizeof(m->conduct->maps))
		return -EIO;
	conduct_fill(m, chunks);
	if (m->options->replay)
		replay_streams(m);
	result = realm_sections(m);
	return result ? result : lanes_begin(m);
}

struct conduct *streams_hide(struct monitor *m)
{
	struct conduct *made = m->conduct;

	MUST(made && m->realms == 1);
	m->conduct = NULL;
	m->realms = 0;
	return made;
}

void streams_show(struct monitor *m, struct conduct *made)
{
	MUST(!m->conduct && !m->realms && made == m->realm[0].conduct);
	m->conduct = made;
	m->realms = 1;
}

void streams_unmake(struct monitor *m)
{
	MUST(m->conduct);	/* no process has them */
	realms_close(m);
	munmap(m->conduct, streams_size(m->conduct->chunks));
	close(m->conduct_fd);
	m->conduct = NULL;
	m->realm[0].conduct = NULL;
}

/* --- the monitor's page -------------------------------------------------------------- */

void streams_changed(struct monitor *m)
{
	/* What was changed is seen by who sees the count. */
	BOTH_BY(conduct_change, fetch_add, &m->conduct->change, 1);
	syscall(SYS_futex, &m->conduct->change, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

void streams_led(struct monitor *m)
{
	syscall(SYS_futex, &m->conduct->leader, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

void streams_mark(struct monitor *m, uint32_t version, bool follows)
{
	MUST(version < VERSIONS && (!follows || version != m->leader || version == ROW_START));
	if (follows)
		BOTH_BY(conduct_bits, fetch_or, &m->conduct->following, 1u << version);
	else
		BOTH_BY(conduct_bits, fetch_and, &m->conduct->following, ~(1u << version));
}

void streams_follow(struct monitor *m, uint32_t version, bool follows)
{
	streams_mark(m, version, follows);
	streams_changed(m);
}

/* --- how far behind ------------------------------------------------------------------- */

uint64_t streams_lane_unread(const struct monitor *m, uint32_t version, uint32_t source,
			     uint32_t index)
{
	const struct cursor *c = cursor_at(m, version, index);
	const struct lane *l = lane_at(m, source, index);
	uint64_t head = CONSUME(lane_head, &l->head);
	uint64_t at = CONSUME(cursor_at, &c->at);

	if (c->done == l->life || l->state == LANE_FREE || !(l->readers >> version & 1))
		return 0;
	if (c->life != l->life || c->source != source)
		return head;
	return head > at ? head - at : 0;
}

bool streams_lane_waits(const struct monitor *m, uint32_t version, uint32_t source,
			uint32_t index)
{
	const struct section *own = realm_part(m, index / LANES, version);
	uint32_t asleep = __atomic_load_n(&own->asleep[index % LANES], __ATOMIC_RELAXED);

	return asleep == asleep_at(CONSUME(lane_head, &lane_at(m, source, index)->head));
}

/* It grows with each cell that the version takes; a lane's next life may make it less. */
uint64_t streams_taken(const struct monitor *m, uint32_t version)
{
	uint64_t cells = 0;

	LANES_EACH(m, m->leader, i)
		cells += CONSUME(cursor_at, &cursor_at(m, version, i)->at);
	return cells;
}

uint64_t streams_unread(const struct monitor *m, uint32_t version, uint32_t source)
{
	uint64_t cells = 0;

	LANES_EACH(m, source, i)
		cells += streams_lane_unread(m, version, source, i);
	return cells;
}

/* The version whose stream is still read before the leader's; or the leader. */
static uint32_t source_of(const struct monitor *m, uint32_t version)
{
	uint32_t source = streams_part(m, version)->cursor[0].source;

	MUST(version != m->leader);

	return source < m->versions && source != version ? source : m->leader;
}

/* Cells that the leader has published and the version has not taken. */
bool streams_lag(const struct monitor *m, uint32_t version, uint64_t *cells)
{
	uint32_t source;

	*cells = 0;
	if (!m->conduct || version == m->leader)
		return false;
	source = source_of(m, version);
	*cells = streams_unread(m, version, m->leader);
	if (source != m->leader)
		*cells += streams_unread(m, version, source);
	return true;
}

/* --- in the place of the dead --------------------------------------------------------- */

/* A process that has ended but was not yet collected is dead, too. */
static bool thread_dead(int32_t pid, int32_t tid, unsigned *looks)
{
	if (pid <= 0 || tid <= 0)
		return false;
	if (syscall(SYS_tgkill, pid, tid, 0) < 0)
		return errno == ESRCH;
	if (pid != tid || *looks >= ZOMBIES_LOOKED)
		return false;
	++*looks;
	return thread_ended(pid, tid);
}

static void lanes_sweep(struct monitor *m, unsigned *looks)
{
	if (m->options->replay)		/* its threads are of another day */
		return;
	LANES_EACH(m, m->leader, i) {
		struct lane *l = lane_at(m, m->leader, i);
		uint32_t open = LANE_OPEN, life = l->life;

		/* The owner of this life, not of the one before. */
		if (CONSUME(lane_state, &l->state) == LANE_OPEN &&
		    thread_dead(l->pid, l->owner, looks) && l->life == life)
			BOTH_IF(lane_state, &l->state, &open, LANE_CLOSED);
	}
}

static void cursors_sweep(struct monitor *m, uint32_t version, unsigned *looks)
{
	LANES_EACH(m, m->leader, i) {
		struct cursor *c = cursor_at(m, version, i);
		const struct lane *l = lane_at(m, m->leader, i);
		int32_t owner = __atomic_load_n(&c->owner, __ATOMIC_RELAXED);
		uint32_t life = c->life;

		/* Read to its end in the stream of the leader before this one. */
		if (l->state == LANE_CLOSED && !l->head && c->done == l->life)
			c->source = m->leader;
		/* It has not said that it comes again behind an execve. */
		if (l->state == LANE_CLOSED && life == l->life && c->done != life &&
		    thread_dead(c->pid, owner, looks) &&
		    __atomic_load_n(&c->owner, __ATOMIC_RELAXED) == owner)
			PUBLISH(cursor_done, &c->done, life);
	}
}

/* Lanes whose thread died without a word are closed, cursors likewise. */
void streams_sweep(struct monitor *m)
{
	unsigned looks = 0;

	lanes_sweep(m, &looks);
	for (uint32_t v = 0; v < m->versions; v++)
		if (m->conduct->following >> v & 1)
			cursors_sweep(m, v, &looks);
}

/* The last that it told is its process' end (a thread's lets others work, one at a time). */
static bool lane_says_end(const struct monitor *m, uint32_t lane)
{
	const struct section *s = realm_part(m, lane / LANES, m->leader);
	uint64_t head = CONSUME(lane_head, &s->lane[lane % LANES].head);
	uint32_t chunk = __atomic_load_n(&s->lane[lane % LANES].now, __ATOMIC_RELAXED);
	const struct call_desc *d;
	const struct event *e;

	if (!head || chunk >= m->conduct->chunks)
		return false;
	e = (const void *)((const uint8_t *)s + chunk_offset(chunk) +
			   (head - 1) % CHUNK_CELLS * CELL_SIZE);
	d = e->kind == EVENT_CALL ? call_find(e->call) : NULL;
	return d && call_ends(d) && !call_has(d, TRAIT_YIELDS);
}

bool streams_process_ends(const struct monitor *m, uint32_t lane)
{
	pid_t pid = lane_at(m, m->leader, lane)->pid;

	LANES_EACH(m, m->leader, i)
		if (lane_at(m, m->leader, i)->pid == pid && lane_says_end(m, i))
			return true;
	return false;
}

bool streams_process_over(const struct monitor *m, uint32_t lane)
{
	const struct lane *its = lane_at(m, m->leader, lane);
	unsigned looks = 0;

	if (its->state == LANE_OPEN)
		return false;
	LANES_EACH(m, m->leader, i) {
		const struct lane *l = lane_at(m, m->leader, i);

		if (l->state == LANE_OPEN && l->pid == its->pid &&
		    (m->options->replay || !thread_dead(l->pid, l->owner, &looks)))
			return false;
	}
	return true;
}

/* The version has come to where the leader's process was, in all its threads. */
static bool process_read(const struct monitor *m, uint32_t version, pid_t pid)
{
	LANES_EACH(m, m->leader, i)
		if (lane_at(m, m->leader, i)->pid == pid &&
		    streams_lane_unread(m, version, m->leader, i))
			return false;
	return true;
}

bool streams_process_read(const struct monitor *m, uint32_t version, pid_t pid)
{
	LANES_EACH(m, m->leader, i) {
		const struct cursor *c = cursor_at(m, version, i);
		uint32_t source = c->source;

		if (c->pid == pid && source < m->versions &&
		    c->life == lane_at(m, source, i)->life &&
		    streams_lane_unread(m, version, source, i))
			return false;
	}
	return true;
}

/*
 * A process of the leader's that a signal killed has told no end.  Who waits for it is
 * told of it, and ends the twin (follow_reaped); but nobody need wait, and the parent of a
 * vfork cannot while the twin is there.
 */
void streams_end_twins(struct monitor *m, const struct version *v)
{
	const struct version *leader = &m->version[m->leader];
	unsigned looks = 0;

	MUST(v->index != m->leader);	/* it ends processes */

	if (takeover_switched(m) || (!version_alive(leader) && !m->finishing))
		return;
	LANES_EACH(m, m->leader, i) {
		const struct cursor *c = cursor_at(m, v->index, i);
		const struct lane *l = lane_at(m, m->leader, i);

		/* The head is the last one. */
		if (CONSUME(lane_state, &l->state) == LANE_CLOSED &&
		    c->life == l->life && c->done != l->life && c->source == m->leader &&
		    c->at >= l->head && l->pid != leader->server && c->pid > 0 &&
		    c->pid != v->server &&
		    (m->options->replay ? streams_process_over(m, i) :
					  thread_dead(l->pid, l->pid, &looks)) &&
		    process_read(m, v->index, l->pid) && version_kill_one(v, c->pid))
			say_log("twin", "%d of %s: the leader's %d was killed", c->pid, v->name,
				l->pid);
	}
}

/* --- the same random bytes for twins -------------------------------------------------- */

#define ROTATE(x, n) ((x) << (n) | (x) >> (64 - (n)))

static void sip_round(uint64_t v[4])
{
	v[0] += v[1];
	v[1] = ROTATE(v[1], 13) ^ v[0];
	v[0] = ROTATE(v[0], 32);
	v[2] += v[3];
	v[3] = ROTATE(v[3], 16) ^ v[2];
	v[0] += v[3];
	v[3] = ROTATE(v[3], 21) ^ v[0];
	v[2] += v[1];
	v[1] = ROTATE(v[1], 17) ^ v[2];
	v[2] = ROTATE(v[2], 32);
}

/*
 * What AT_RANDOM holds must be the same in twins, and must not be known from
 * another program's: SipHash-2-4 of the program's place, under a secret.
 */
uint64_t streams_seed(struct version *v, uint32_t lane, uint32_t half)
{
	const uint64_t *key = v->monitor->secret;
	uint64_t word[2] = { (uint64_t)v->execs[lane % LANES_ALL] << 32 | lane << 1 | half,
			     8ull << 56 };
	uint64_t s[4] = { key[0] ^ 0x736f6d6570736575, key[1] ^ 0x646f72616e646f6d,
			  key[0] ^ 0x6c7967656e657261, key[1] ^ 0x7465646279746573 };

	for (int i = 0; i < 2; i++) {
		s[3] ^= word[i];
		sip_round(s);
		sip_round(s);
		s[0] ^= word[i];
	}
	s[2] ^= 0xff;
	for (int i = 0; i < 4; i++)
		sip_round(s);
	return s[0] ^ s[1] ^ s[2] ^ s[3];
}
