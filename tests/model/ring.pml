/*
 * A model of the ring's protocol: what engine/core/ring.c does with lanes, chunks
 * and cursors, in steps as small as others can come between and tell.  Names are
 * those of the code.  tests/model/ring.sh has the sizes that it is checked with.
 *
 * Two threads of the leader open a lane, write a life's events, close it, and do so
 * again.  Each follower has a reader for each lane; follower 0 is
 * dropped at some moment.  Checked in every order of steps:
 *
 *	a reader takes every event of a life once, in order, and none of another
 *	  life; while it looks at a cell nobody writes there (look)
 *	a lane gets no new life before all have read the one before (lives_apart)
 *	nobody waits for ever: not for a dropped follower, nor for room that an idle
 *	  lane has (an end that is not the end of all is an error to spin)
 *
 * Left out: payloads, streams of more than one version (tests/unit/ring.c has
 * them), and memory weaker than sequential (ring_threads.c).
 *
 * -DFAULT=N breaks the protocol in one place; spin must then find an error.
 */
#define FAULT_HELD	1	/* the writer forgets a follower's cursor */
#define FAULT_CLAIM	2	/* a claimed lane is not looked at again */
#define FAULT_SERIAL	3	/* serials begin anew with each life */
#define FAULT_EARLY	4	/* a reader gives a cell back, then reads it */
#define FAULT_HOARD	5	/* an idle lane's chunks are nobody else's */
#define FAULT_UNBORN	6	/* a lane that has had no life yet is looked at as others */
#define FAULT_DROP	7	/* a dropped follower's cursor still counts */
#define FAULT_ORDER	8	/* a cursor's new life is told before its place */
#define FAULT_END	9	/* a reader looks at the head, then whether it is the last */

#ifndef FAULT
#define FAULT 0
#endif

#define CELLS	3		/* of a chunk; the last is for the turn */
#define NONE	99		/* no chunk */
#define TURN	100		/* + the next chunk */
#define ID(l, life, n) (1 + (l) * 40 + (life) * 8 + (n))

/* What a function leaves in its variables is not a different state. */
#define CLEAR(stores) atomic { stores }

#define EVENTS(l) ((l) -> EVENTS_1 : EVENTS_0)

#define FREE	0
#define OPEN	1
#define CLOSED	2
#define CLAIMED	3

typedef Lane {
	byte head, state, life, first, now, base;
	byte oldest, serial;	/* one word */
};

typedef Cursor {
	byte at, life, done;
};

typedef Follower {
	Cursor on[LANES];
	bit dropped;
};

Lane lane[LANES];
Follower f[FOLLOWERS];
byte cell[CHUNKS * CELLS];
byte owner[CHUNKS];
byte next[CHUNKS];
byte writing;			/* threads that have not ended */

/* What a waiting thread looks for; all of it at once, which only wakes it. */
#if FAULT == FAULT_DROP
#define GONE(k)		false
#else
#define GONE(k)		f[k].dropped
#endif
#define HOLDS(k, l, s) (!GONE(k) && (f[k].on[l].life != lane[l].life || \
	(f[k].on[l].done != lane[l].life && (s) - lane[l].base >= f[k].on[l].at / CELLS)))
#if FOLLOWERS > 1
#define HELD(l, s)	(HOLDS(0, l, s) || HOLDS(1, l, s))
#else
#define HELD(l, s)	HOLDS(0, l, s)
#endif
#define TAKEABLE(l)	(lane[l].life && lane[l].oldest != lane[l].now && \
			 !HELD(l, lane[l].serial))
#define OPENABLE(l)	((lane[l].state == FREE && ROOM(l)) || (lane[l].state == CLOSED && \
			 !HELD(l, lane[l].base + lane[l].head / CELLS)))
#if FAULT == FAULT_HOARD
#define LANE_ROOM(l)	TAKEABLE(l)
#elif LANES > 1
#define LANE_ROOM(l)	(TAKEABLE(0) || TAKEABLE(1))
#else
#define LANE_ROOM(l)	TAKEABLE(0)
#endif
#if CHUNKS > 2
#define ROOM(l)		(!owner[0] || !owner[1] || !owner[2] || LANE_ROOM(l))
#else
#define ROOM(l)		(!owner[0] || !owner[1] || LANE_ROOM(l))
#endif
#if LANES > 1
#define ANY_OPENABLE	(OPENABLE(0) || OPENABLE(1))
#else
#define ANY_OPENABLE	OPENABLE(0)
#endif

/* --- chunks ------------------------------------------------------------------- */

/* held: a follower still needs the chunk. */
inline held_by(l, s)
{
	seen = lane[l].life;
	place = s - lane[l].base;
	held = false;
	k = 0;
	do
	:: k < FOLLOWERS && !held ->
		if
#if FAULT == FAULT_HELD
		:: k == FOLLOWERS - 1 && f[k].on[l].life == seen
#endif
		:: GONE(k)
		:: else ->
			held = (f[k].on[l].life != seen);
			if
			:: held
			:: else -> held = (f[k].on[l].done != seen &&
					   place >= f[k].on[l].at / CELLS)
			fi
		fi;
		k++
	:: else -> break
	od;
	CLEAR(seen = 0; place = 0; k = 0)
}

inline oldest_look(l)
{
	d_step {
		old = lane[l].oldest;
		serial = lane[l].serial
	};
#if FAULT == FAULT_UNBORN
	more = (old != lane[l].now)
#else
	more = (old != lane[l].now && lane[l].life)
#endif
}

inline oldest_pop(l)
{
	after = next[old];
	d_step {
		popped = (lane[l].oldest == old && lane[l].serial == serial);
		if
		:: popped ->
			lane[l].oldest = after;
			lane[l].serial = lane[l].serial + 1
		:: else
		fi;
		after = 0
	}
}

/* chunk: the lane's oldest, or NONE. */
inline oldest_take(l)
{
	chunk = NONE;
	oldest_look(l);
	do
	:: more && chunk == NONE ->
		held_by(l, serial);
		if
		:: held -> break
		:: else
		fi;
		oldest_pop(l);
		if
		:: popped -> chunk = old
		:: else -> oldest_look(l)
		fi
	:: else -> break
	od;
	CLEAR(old = 0; serial = 0; more = 0; popped = 0; held = 0)
}

inline chunk_claim()
{
	d_step {
		chunk = 0;
		do
		:: chunk < CHUNKS && owner[chunk] -> chunk++
		:: else -> break
		od;
		if
		:: chunk < CHUNKS -> owner[chunk] = true
		:: else -> chunk = NONE
		fi
	}
}

inline chunk_find(l)
{
	chunk_claim();
	i = 0;
	do
	:: chunk == NONE && i < LANES ->
#if FAULT != FAULT_HOARD
		oldest_take(i);
#endif
		i++
	:: else -> break
	od;
	i = 0
}

inline chunk_take(l)
{
	oldest_take(l);
	if
	:: chunk == NONE -> chunk_find(l)
	:: else ->
		taken = chunk;
		do
		:: chunk != NONE ->
			oldest_take(l);
			if
			:: chunk != NONE -> owner[chunk] = false
			:: else
			fi
		:: else -> break
		od;
		CLEAR(chunk = taken; taken = 0)
	fi
}

/* --- lanes --------------------------------------------------------------------- */

inline lane_unread(l)
{
	held_by(l, lane[l].base + lane[l].head / CELLS)
}

/* claimed: the lane is ours. */
inline lane_claim(l)
{
	claimed = false;
	held = false;
	was = lane[l].state;
	if
	:: was == CLOSED -> lane_unread(l)
	:: else
	fi;
	if
	:: (was == FREE || was == CLOSED) && !held ->
		d_step {
			claimed = (lane[l].state == was);
			if
			:: claimed -> lane[l].state = CLAIMED
			:: else
			fi
		}
	:: else
	fi;
#if FAULT != FAULT_CLAIM
	if
	:: claimed && was == CLOSED ->
		lane_unread(l);
		if
		:: held ->
			lane[l].state = CLOSED;
			claimed = false
		:: else
		fi
	:: else
	fi;
#endif
	CLEAR(was = 0; held = 0)
}

inline lane_empty(l)
{
	oldest_look(l);
	do
	:: more ->
		oldest_pop(l);
		if
		:: popped -> owner[old] = false
		:: else
		fi;
		oldest_look(l)
	:: else -> break
	od;
	CLEAR(chunk = old; old = 0; serial = 0; popped = 0)
}

/* Nobody is still in the life before. */
inline lives_apart(l)
{
	d_step {
		k = 0;
		do
		:: k < FOLLOWERS ->
			assert(f[k].dropped || f[k].on[l].done == lane[l].life);
			k++
		:: else -> break
		od;
		k = 0
	}
}

inline lane_begin(l)
{
	lives_apart(l);
	d_step {
		lane[l].first = chunk;
		lane[l].now = chunk;
#if FAULT == FAULT_SERIAL
		lane[l].base = 1;
#else
		lane[l].base = lane[l].base + lane[l].head / CELLS + 1;
#endif
	};
	d_step {
		lane[l].oldest = chunk;
		lane[l].serial = lane[l].base;
		lane[l].head = 0
	};
	lane[l].life = lane[l].life + 1
}

/* mine: the lane that is open, or NONE. */
inline lane_open()
{
	mine = 0;
	do
	:: mine < LANES ->
		lane_claim(mine);
		if
		:: claimed -> break
		:: else -> mine++
		fi
	:: else -> break
	od;
	claimed = 0;
	if
	:: mine == LANES -> mine = NONE
	:: mine < LANES ->
		if
		:: lane[mine].life -> lane_empty(mine)
		:: else -> chunk_find(mine)
		fi;
		if
		:: chunk == NONE ->
			lane[mine].state = FREE;
			mine = NONE
		:: else ->
			lane_begin(mine);
			lane[mine].state = OPEN
		fi
	fi;
	chunk = 0
}

/* --- the writer ------------------------------------------------------------------ */

/* Waits for room, as the code's callers do. */
inline turn(l)
{
	chunk_take(l);
	do
	:: chunk == NONE ->
		ROOM(l);
		chunk_take(l)
	:: else -> break
	od;
	atomic {
		cell[lane[l].now * CELLS + CELLS - 1] = TURN + chunk;
		next[lane[l].now] = chunk
	};
	lane[l].now = chunk;
	d_step {
		lane[l].head = lane[l].head + 1;
		chunk = 0
	}
}

inline write(l, n)
{
	if
	:: lane[l].head % CELLS == CELLS - 1 -> turn(l)
	:: else
	fi;
	cell[lane[l].now * CELLS + lane[l].head % CELLS] = ID(l, lane[l].life, n);
	lane[l].head = lane[l].head + 1
}

proctype thread(byte lives)
{
	byte n, i, k, mine, was, chunk, old, serial, after, seen, taken;
	short place;
	bool held, popped, more, claimed;

	do
	:: lives ->
		lane_open();
		do
		:: mine == NONE ->
			ANY_OPENABLE;
			lane_open()
		:: else -> break
		od;
		do
		:: n < EVENTS(mine) ->
			write(mine, n);
			n++
		:: else -> break
		od;
		lane[mine].state = CLOSED;
		CLEAR(n = 0; mine = 0; lives--)
	:: else -> break
	od;
	writing--
}

/* --- the reader -------------------------------------------------------------------- */

#define C	f[me].on[l]

/* A step of a reader; one that has been dropped does nothing any more. */
#define STEP(action) \
	atomic { \
		if \
		:: f[me].dropped -> goto end \
		:: else -> action \
		fi \
	}

inline cursor_begin()
{
#if FAULT == FAULT_ORDER
	STEP(C.life = C.life + 1);
#endif
	STEP(C.at = 0; C.done = 0);
#if FAULT != FAULT_ORDER
	STEP(C.life = C.life + 1)
#endif
}

/* Reads the cell at pos, which is published. */
inline look()
{
	STEP(chunk = (pos -> chunk : lane[l].first);
	     what = cell[chunk * CELLS + pos % CELLS]);
#if FAULT == FAULT_EARLY
	STEP(C.at = lane[l].head);
#endif
	/* It has not changed under our eyes, and is what must come next. */
	STEP(assert(what == cell[chunk * CELLS + pos % CELLS]);
	     if
	     :: pos % CELLS == CELLS - 1 ->
		     assert(what >= TURN && what < TURN + CHUNKS);
		     chunk = what - TURN
	     :: else ->
		     assert(what == ID(l, C.life, taken));
		     taken++
	     fi;
	     pos++;
	     what = 0;
	     C.at = pos)
}

proctype reader(byte me, l)
{
	byte pos, what, taken, chunk;

	do
	:: f[me].dropped -> break
	:: lane[l].life == C.life && !writing -> break
	:: lane[l].life > C.life ->
		STEP(assert(lane[l].life == C.life + 1));
		cursor_begin();
		do
		:: lane[l].head > pos -> look()
#if FAULT == FAULT_END
		:: lane[l].head == pos ->
			if
			:: lane[l].state == CLOSED -> break
#else
		:: lane[l].state == CLOSED ->
			if
			:: lane[l].head == pos -> break
#endif
			:: else
			fi
		:: f[me].dropped -> goto end
		od;
		STEP(assert(taken == EVENTS(l)));
		STEP(C.done = C.life; pos = 0; taken = 0; chunk = 0)
	od;
end:	skip;
	CLEAR(pos = 0; what = 0; taken = 0; chunk = 0)
}

/* Follower 0 is dropped at some moment, the end at the latest. */
proctype monitor()
{
	byte i;

	d_step {
		f[0].dropped = true;
		/* What it has in its cursors does not matter any more. */
		do
		:: i < LANES ->
			f[0].on[i].at = 0;
			f[0].on[i].life = 0;
			f[0].on[i].done = 0;
			i++
		:: else -> break
		od;
		i = 0
	}
}

init
{
	byte n, m;

	atomic {
		run thread(LIVES_0);
		writing = 1;
		if
		:: LIVES_1 ->
			run thread(LIVES_1);
			writing = 2
		:: else
		fi;
		for (n : 0 .. FOLLOWERS - 1) {
			for (m : 0 .. LANES - 1) {
				run reader(n, m)
			}
		};
		if
		:: DROP -> run monitor()
		:: else
		fi
	}
}
