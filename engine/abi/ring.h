/*
 * The streams of a session: memory that every process of it maps.
 *
 * The first page is the monitor's (`struct conduct`): who leads, who follows,
 * which streams have ended.  Behind it each version has a section: its lanes
 * (written while it leads), its cursors (written while it follows) and the
 * chunks that its lanes are made of.  Each of these is a file of its own.  A process
 * maps its own section read-write and everything else read-only, by descriptors that
 * are open for reading only: a broken or hostile version can spoil nothing that others
 * write.  And there are sections for each *realm*, the processes that have the same
 * rights: a process has those of its own mapped, and no others.  So a worker that gave
 * up root can write nothing that a process of root is told, in any version.
 *
 * A lane is one thread's stream: a chain of chunks.  Only its thread writes it.
 * `head` counts the cells published; a reader's position counts the cells it has
 * taken; position / CHUNK_CELLS is the chunk's place in the chain.  The last cell
 * of a full chunk is an EVENT_TURN that names the next.  A chunk whose cells all
 * followers have taken is used again: by its own lane first, so a session whose
 * followers keep up lives in two chunks a lane, and by any lane that finds none
 * free, so that nobody waits for an idle one.  The chunk that a lane writes stays
 * its own; there are fewer lanes than chunks.
 *
 * Some chunks are spare: they are lent to a lane whose thread has begun to tell when no
 * other is free, one to a lane.  What has a number or is half told has to be told, since
 * followers may wait for it before they take what fills the ring; the thread waits
 * behind it, with nothing begun, until it can give another chunk in its place.
 *
 * Lanes have the same numbers in all versions: the twin of a thread has its lane.
 *
 * There may be more chunks than memory (--when-full spill): `away` of them have none.  What a
 * follower will not read soon is written to a file, and its memory is given to another chunk
 * (core/away.h); before somebody reads it it has memory again.  A chunk's number, its place in
 * the chain, and who holds it stay what they were: its owner's word says where it is.
 *
 * Raise RING_VERSION when a layout here changes.
 */
#ifndef MVE_ABI_RING_H
#define MVE_ABI_RING_H

#include <stdint.h>

#include "engine/abi/event.h"

#define RING_MAGIC	0x6d766552u	/* "Revm" */
#define RING_VERSION	17

/*
 * Limit (sessions): versions of a session at one time, the leader among them. Beyond: a
 * further follower is refused; one that has ended makes room.
 */
#define VERSIONS	8
#define ROW_START	(VERSIONS - 1)	/* of a stateless session: what its start told */
#define ROW_LOG		(VERSIONS - 2)	/* of a recorded session: how far it is written down */
/*
 * Limit (threads and processes): threads that are recorded at one time, of the processes
 * with one set of rights. Beyond: a further thread runs and is not recorded, its version's
 * followers are dropped as *unsupported*.
 */
#define LANES		2048
/*
 * Limit (threads and processes): sets of rights (users, groups, capabilities) of a server's
 * processes at one time, with followers. Beyond: a process with a further one is recorded
 * with those that it comes from, which a process of less rights can then write to.
 */
#define REALMS		16
#define LANES_ALL	(REALMS * LANES)	/* a lane in the session: realm * LANES + lane */
#define CHUNK_SIZE	32768
#define CHUNK_CELLS	(CHUNK_SIZE / CELL_SIZE)
/*
 * Limit (sessions): chunks of 32 KiB in a ring: 2 GiB. Beyond: --ring is refused.
 */
#define RING_CHUNKS_MAX	65536
/*
 * Limit (sessions): chunks of 32 KiB in a ring and on disk (--log-max): 16 GiB. Beyond:
 * --log-max is refused.
 */
#define CHUNKS_MAX	524288
#define CHUNK_NONE	0xffffffffu
/* Owners that are no lane: */
#define CHUNK_SPARE	0xffffffffu
#define CHUNK_AWAY	0xfffffffeu	/* it has no memory, and is nobody's */
/* Of a lane's chunk (lane + 1), or of one that its lane has given up meanwhile (0): */
#define CHUNK_OUT	0x40000000u	/* it stands in the file, and has no memory */
#define CHUNK_GOES	0x20000000u	/* it stands in the file; its memory comes or goes */
#define CHUNK_LEAVES	0x10000000u	/* it is being written to the file */
#define CHUNKS_SPARE(n)	((n) / 8)	/* of n */
#define RING_DEFAULT	(64u << 20)
#define LOG_MAX_DEFAULT	(4ull << 30)
#define LOG_MAX_UNASKED	(1ull << 30)	/* where nobody has said that anything is to be there */

/* LANE_CLAIMED: between two lives; `owner` may still be the one of the life before. */
enum lane_state { LANE_FREE, LANE_OPEN, LANE_CLOSED, LANE_CLAIMED };

/* Written by the lane's thread of the version that leads. */
struct lane {
	uint64_t head;		/* cells published */
	uint32_t state;		/* enum lane_state */
	uint32_t life;		/* how often the lane has been opened */
	uint32_t first;		/* chunk that holds cell 0 */
	uint32_t now;		/* chunk that is written */
	uint64_t oldest;	/* serial << 32 | first chunk not yet used again */
	int32_t owner;		/* the thread; 0: not begun */
	int32_t pid;
	uint32_t base;		/* serial of chunk `first` */
	uint32_t readers;	/* followers that may read it, as bits; ~0: whoever follows */
	uint64_t seam;		/* a cell where somebody was added to `readers` */
	uint32_t seam_chunk;	/* that holds it */
	uint32_t giving;	/* what its thread gives to others now and has not told: the
				   low half of its sequence number; 0: nothing */
};

/* Written by the thread that reads the lane; a page of none but its version. */
struct cursor {
	uint64_t at;		/* cells taken */
	/*
	 * The chunk that holds cell `at`; the lane's `first` if that is 0.  In the upper half
	 * which of the lane's it is, at / CHUNK_CELLS: who reads the two words while their
	 * thread writes them sees whether they belong together.
	 */
	uint64_t place;
	uint32_t life;		/* of the lane that is read */
	uint32_t done;		/* life that has been read to its end */
	int32_t owner;		/* 0: it has yet to come, also by an execve */
	int32_t pid;
	uint32_t source;	/* the version whose stream is read */
	uint32_t counted;	/* the chunk that was counted last, + 1: for an image */
	uint64_t pad[3];
};

/* It has seen the lane's head there, and sleeps until that is another. */
static inline uint32_t asleep_at(uint64_t head)
{
	return (uint32_t)head << 1 | 1;
}

static inline uint64_t cursor_place(uint64_t at, uint32_t chunk)
{
	return at / CHUNK_CELLS << 32 | chunk;
}

static inline uint32_t place_chunk(uint64_t place)
{
	return (uint32_t)place;
}

/* A version's part.  Chunks follow at SECTION_CHUNKS. */
struct section {
	uint32_t magic, version;
	uint32_t lanes_high;	/* lanes ever opened are below this */
	uint32_t chunk_hint;	/* where the search for a free chunk begins */
	uint32_t dropped;	/* followers that its leader has given up, as bits */
	uint32_t strayed;	/* because of a thread whose lane they do not read, as bits */
	uint64_t waits;		/* times that a lane waited for room, */
	uint64_t waited_ns;	/* and how long, of all threads */
	uint32_t leads_on;	/* though its stream has ended: nobody could take over
				   (takeover/heir.h) */
	uint32_t image;		/* a follower's image, which stands where `kept` says; 0: none */
	uint64_t wakes;		/* times that its leader's threads woke a reader of their lane */
	uint32_t full;		/* its leader's threads that wait for room */
	uint32_t room;		/* futex: counts what a full ring's threads wait for, of a
				   follower that it has given chunks back, of a leader drops */
	/*
	 * Where a lane's reader sleeps, as asleep_at() has it, or 0.  The lane's thread wakes it
	 * when it has told more (inside/lanes/sleep.h).  Not in the cursors, which change with
	 * each event: the leader looks here at each.
	 */
	uint32_t asleep[LANES];
	uint32_t unkept[VERSIONS];	/* a leader's: images of followers that it tells nothing
					   any more, for they were in its way */
	uint32_t needed;	/* the follower has gone back to the image, and may have to again */
	uint32_t pad0;
	uint64_t pad1[499];
	/*
	 * Where the lane's thread began to run a handler of a deadly signal, + 1, and where it
	 * left that, + 1; 0: it never did, it has not yet.
	 */
	uint64_t faulted[LANES], left[LANES];
	uint32_t reach[LANES];	/* a follower's: the last chunk of the lane, by its serial, that
				   it looks at; with a file only */
	struct lane lane[LANES];
	struct cursor cursor[LANES];
	struct cursor kept[LANES];	/* written by the monitor */
	uint32_t chunk_owner[CHUNKS_MAX];	/* lane + 1; 0 free; CHUNK_... */
	uint32_t chunk_next[CHUNKS_MAX];	/* in the lane's chain */
};

/*
 * Limit (sampling): calls of --mark. Beyond: refused.
 */
#define SEAM_CALLS	8

/* Where a request begins; written before the first process begins. */
struct seams {
	uint16_t call[SEAM_CALLS];	/* numbers; before such a call */
	uint32_t calls;
	uint32_t pad0;
	char path[256];		/* where this is opened, and not found; "": none */
};

/* Which connections followers hear of. */
enum sample { SAMPLE_ALL, SAMPLE_SHARE, SAMPLE_PEER, SAMPLE_WINDOW, SAMPLE_AUTO };

#define SHARE_ALL	10000	/* of `share` */

/* Written before the first process begins. */
struct sampling {
	uint32_t stateless;	/* no connection changes what another gets */
	uint32_t how;		/* enum sample */
	uint32_t share;		/* SAMPLE_AUTO: of the leader's time, what telling may cost */
	uint32_t window;	/* calls */
};

enum when_full { WHEN_FULL_DROP, WHEN_FULL_BLOCK };

/* Written by the monitor only. */
struct conduct {
	uint32_t magic, version;
	uint32_t chunks;	/* of each section */
	uint32_t when_full;
	uint32_t full_ms;	/* how long a full ring is waited for before a drop */
	uint32_t leader;
	uint32_t following;	/* versions that the leader must not overtake, as bits */
	uint32_t ended;		/* versions whose stream gets no more events, as bits */
	uint32_t park;		/* versions whose threads must stop, as bits */
	uint32_t crashed;	/* ended, and its last events may be last words */
	uint32_t change;	/* futex: counts every change of this page */
	uint32_t joins;		/* followers that came late */
	uint32_t next[VERSIONS];	/* whose stream goes on where this one ended */
	struct seams seams;
	struct sampling sampling;
	uint32_t puts_off;	/* versions whose runtime puts handlers off (TSan), as bits */
	uint32_t sections;	/* that are mapped, in each process */
	uint64_t maps;		/* at random: where what threads map begins, in all versions */
	uint32_t away;		/* of `chunks`, without memory; 0: there is no file */
	uint32_t spills;	/* there is one, and who sees to it */
	uint32_t mute;		/* versions that do not say what they look at (`reach`), as bits */
	uint32_t keeps;		/* versions that look at nothing, and hold all, as bits */
	uint32_t born[VERSIONS];	/* of all that ever were, who has the number */
	uint32_t births;	/* that there were */
	uint32_t one_at_a_time;	/* of each process one thread works (order/baton.c) */
	uint64_t pad[446];
};

_Static_assert(sizeof(struct lane) == 64 && sizeof(struct cursor) == 64, "lines");
_Static_assert(sizeof(struct conduct) <= 4096, "the monitor's page");
_Static_assert(sizeof(struct section) % 4096 == 0, "sections begin on pages");

#define CONDUCT_SIZE	4096u

/* Of a chunk, in its section. */
static inline uint64_t chunk_offset(uint32_t chunk)
{
	return sizeof(struct section) + (uint64_t)chunk * CHUNK_SIZE;
}

static inline uint64_t section_size(uint32_t chunks)
{
	return chunk_offset(chunks);
}

static inline uint64_t section_offset(uint32_t chunks, uint32_t version)
{
	return CONDUCT_SIZE + version * section_size(chunks);
}

static inline uint64_t streams_size(uint32_t chunks)
{
	return section_offset(chunks, VERSIONS);
}

#endif
