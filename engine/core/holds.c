/*
 * What keeps a lane's chunk from being written again.  A follower holds what its cursor
 * has not passed; a follower that keeps an image of itself holds what the image's cursor
 * has not, for there it may have to go on (inside/rewind/).
 *
 * The leader does not wait for an image.  Where it finds no room it says in its section that
 * the image is told nothing any more, and looks again.  But where the user has it wait for
 * followers a thread waits for one that has an image to read on in its lane, as on its way that
 * comes to a further one: else who is a whole ring behind, on a busy machine, could try nothing
 * again.  Where all of the lane is read others of the follower may stand for what is told there
 * next, and no image is waited for; nor by who feeds all lanes (`fed`), nor for long where the
 * follower reads nothing (inside/lanes/full.c); but one that has gone back to its image, until it
 * has a further one, or cannot have it: what is read again may have to be read once more.  Who
 * wakes an image first has its cursors stand in the follower's place, says so by the image's new
 * number, and then looks whether it was let go: one of the two sees the other.
 */
#include "engine/core/holds.h"
#include "engine/core/must.h"
#include "engine/core/pairs.h"

/* Where it stands, or from where on it would be read again. */
static bool cursor_holds(const struct streams *s, const struct lane *l, const struct cursor *c,
			 uint32_t serial)
{
	uint32_t life = __atomic_load_n(&l->life, __ATOMIC_RELAXED);
	uint32_t place = serial - __atomic_load_n(&l->base, __ATOMIC_RELAXED);

	/* cursor_begin has made `at` and `done` this stream's, this life's. */
	if (CONSUME(cursor_source, &c->source) != s->self ||
	    CONSUME(cursor_life, &c->life) != life)
		return true;
	/* The reader looks at nothing any more. */
	if (CONSUME(cursor_done, &c->done) == life)
		return false;
	/* What is before has been read.  Serials wrap. */
	return (int32_t)(place -
			 (uint32_t)(CONSUME(cursor_at, &c->at) / CHUNK_CELLS)) >= 0;
}

static bool is_told(const struct section *own, const struct section *its, uint32_t version)
{
	uint32_t image = LOOK(image, &its->image);

	return image && LOOK(image, &own->unkept[version]) != image;
}

/* The version, or its image, has not read the lane's chunk `serial`, or one before it. */
static bool version_holds(const struct streams *s, const struct section *own, uint32_t version,
			  uint32_t index, uint32_t serial)
{
	const struct section *its = streams_section(s, version);
	const struct lane *l = &own->lane[index];

	MUST(version < VERSIONS && index < LANES);
	/* The image first: where it has just been let go the cursors say what it needs. */
	return (is_told(own, its, version) && cursor_holds(s, l, &its->kept[index], serial)) ||
	       cursor_holds(s, l, &its->cursor[index], serial);
}

bool version_reads(const struct streams *s, const struct section *own, uint32_t version,
		   uint32_t index, uint32_t serial)
{
	MUST(version < VERSIONS && index < LANES);
	return cursor_holds(s, &own->lane[index],
			    &streams_section(s, version)->cursor[index], serial);
}

static uint64_t head_of(const struct section *own, uint32_t index)
{
	return __atomic_load_n(&own->lane[index].head, __ATOMIC_RELAXED);
}

/* It sleeps for what comes next in the lane. */
static bool is_asleep(const struct section *its, const struct section *own, uint32_t index)
{
	return __atomic_load_n(&its->asleep[index], __ATOMIC_RELAXED) ==
	       asleep_at(head_of(own, index));
}

static bool lane_is_unread(const struct section *own, const struct section *its, uint32_t version,
			   uint32_t index)
{
	const struct lane *l = &own->lane[index];
	const struct cursor *c = &its->cursor[index];

	MUST(version < VERSIONS && index < LANES);
	return __atomic_load_n(&l->readers, __ATOMIC_RELAXED) >> version & 1 &&
	       CONSUME(cursor_done, &c->done) != __atomic_load_n(&l->life, __ATOMIC_RELAXED) &&
	       CONSUME(cursor_at, &c->at) != head_of(own, index);
}

/* It goes on by itself for a while, and makes room, or comes to a further image. */
static bool is_behind(const struct section *own, const struct section *its, uint32_t version)
{
	uint32_t lanes = section_lanes(own);

	MUST(lanes <= LANES);
	for (uint32_t i = 0; i < lanes; i++)
		if (lane_is_unread(own, its, version, i))
			return true;
	return false;
}

/* With an image, of who tells in the lane.  Who sleeps in the middle of an event has no end. */
static bool image_is_waited_for(const struct streams *s, const struct section *own,
				uint32_t version, uint32_t index)
{
	const struct section *its = streams_section(s, version);
	bool needed = __atomic_load_n(&its->needed, __ATOMIC_RELAXED);

	if (s->conduct->when_full != WHEN_FULL_BLOCK)
		return false;
	if (index == LANES)
		return needed;
	if (is_asleep(its, own, index) &&
	    CONSUME(cursor_at, &its->cursor[index].at) != head_of(own, index))
		return false;
	return needed || is_behind(own, its, version);
}

/* Followers whose images are in the way, and need not be waited for. */
static uint32_t images_that_may_go(const struct streams *s, const struct section *own,
				   uint32_t index)
{
	uint32_t bits = streams_followers(s, own), may = 0;

	for (; bits; bits &= bits - 1) {
		uint32_t v = (uint32_t)__builtin_ctz(bits);
		const struct section *its = streams_section(s, v);

		if (v < VERSIONS && is_told(own, its, v) &&
		    !image_is_waited_for(s, own, v, index))
			may |= 1u << v;
	}
	return may;
}

bool images_may_go(const struct streams *s, const struct section *own, uint32_t index)
{
	return images_that_may_go(s, own, index);
}

bool images_let_go(const struct streams *s, struct section *own, uint32_t index)
{
	uint32_t may = images_that_may_go(s, own, index);

	for (uint32_t bits = may; bits; bits &= bits - 1) {
		uint32_t v = (uint32_t)__builtin_ctz(bits);

		ANNOUNCE(image, &own->unkept[v], LOOK(image, &streams_section(s, v)->image));
	}
	return may;
}

uint32_t held_by(const struct streams *s, const struct section *own, uint32_t index,
		 uint32_t serial)
{
	uint32_t bits = streams_followers(s, own), held = 0;

	/* Whoever sees the lane's `now` behind a seam sees who was added there. */
	bits &= __atomic_load_n(&own->lane[index].readers, __ATOMIC_RELAXED) | 1u << ROW_START;

	for (uint32_t v = 0; v < VERSIONS; v++)
		if (bits >> v & 1 && version_holds(s, own, v, index, serial))
			held |= 1u << v;
	return held;
}
