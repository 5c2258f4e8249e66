/*
 * A model of edges: what threads of a leader give each other by calls has the same order in a
 * follower (engine/inside/lanes/edge.c, order/edges.c).
 *
 * Each of THREADS threads makes CALLS calls on one object: it gives, takes, or is about to give
 * and a signal comes first.  Who gives marks the object and finds who marked it before; makes the
 * call; tells, with an edge to that one.  Who takes makes the call, looks at the mark, tells.
 * The follower's threads read what was told and wait at edges alone.  Checked in every order of
 * steps: what had been given when a call took is done in the follower before it takes there,
 * and nobody waits for ever.
 *
 * -DFAULT=N breaks the protocol in one place; spin must then find an error.
 */
#define FAULT_CHAIN	1	/* who gives has no edge to who gave before */
#define FAULT_LATE	2	/* it marks the object behind its call */
#define FAULT_CUT	3	/* who was about to give tells nothing of it */
#define FAULT_EARLY	4	/* who takes looks before its call */
#define FAULT_PLACE	5	/* the mark leads behind the place */

#ifndef FAULT
#define FAULT 0
#endif

#define NOBODY	THREADS

typedef lane {
	byte head, at;		/* told by the leader, done by the follower */
	byte to[CALLS], place[CALLS];	/* the edge of each event */
	byte takes[CALLS];
	byte needs0[CALLS], needs1[CALLS], needs2[CALLS];	/* what had been given by then */
};

lane lanes[THREADS];
byte by = NOBODY, at;		/* the mark: an edge */
byte told;			/* leader's threads that are over */
byte given[3];			/* of each thread: behind its last call that gave; a ghost */

inline mark()
{
	atomic {
#if FAULT == FAULT_CHAIN
		skip;
#else
		to = by;
		place = at;
#endif
		by = me;
#if FAULT == FAULT_PLACE
		at = lanes[me].head + 1
#else
		at = lanes[me].head
#endif
	}
}

inline look()
{
	atomic { to = by; place = at }
}

inline tell(take)
{
	atomic {
		lanes[me].to[lanes[me].head] = to;
		lanes[me].place[lanes[me].head] = place;
		lanes[me].takes[lanes[me].head] = take;
		lanes[me].needs0[lanes[me].head] = n0;
		lanes[me].needs1[lanes[me].head] = n1;
		lanes[me].needs2[lanes[me].head] = n2;
		lanes[me].head++;
		n0 = 0; n1 = 0; n2 = 0
	}
}

proctype leader(byte me)
{
	byte n, to = NOBODY, place, n0, n1, n2;

	do
	:: n == CALLS -> break
	:: n < CALLS ->		/* gives */
		n++;
		to = NOBODY;
#if FAULT != FAULT_LATE
		mark();
#endif
		given[me] = lanes[me].head + 1;
#if FAULT == FAULT_LATE
		mark();
#endif
		tell(0)
	:: n < CALLS ->		/* a signal comes first */
		n++;
		to = NOBODY;
		mark();
#if FAULT != FAULT_CUT
		tell(0)
#endif
	:: n < CALLS ->		/* takes */
		n++;
#if FAULT == FAULT_EARLY
		look();
#endif
		atomic { n0 = given[0]; n1 = given[1]; n2 = given[2] };
#if FAULT != FAULT_EARLY
		look();
#endif
		tell(1)
	od;
	told++
}

#define TO	lanes[me].to[n]
#define DONE	(TO == NOBODY || TO == me || lanes[TO].at > lanes[me].place[n])

proctype follower(byte me)
{
	byte n;

	do
	:: atomic { n < lanes[me].head && DONE ->
		if
		:: lanes[me].takes[n] ->
			assert(me == 0 || lanes[0].at >= lanes[me].needs0[n]);
			assert(me == 1 || lanes[1].at >= lanes[me].needs1[n]);
#if THREADS > 2
			assert(me == 2 || lanes[2].at >= lanes[me].needs2[n])
#endif
		:: else
		fi;
		n++;
		lanes[me].at = n }
	:: atomic { n == lanes[me].head && told == THREADS -> break }
	od
}

init {
	byte i;

	atomic {
		do
		:: i == THREADS -> break
		:: i < THREADS ->
			run leader(i);
			run follower(i);
			i++
		od
	}
}
