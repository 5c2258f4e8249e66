/*
 * A model of how a follower's thread sleeps on its lane's head, and is woken: what
 * engine/inside/lanes/sleep.c does, in steps as small as others can come between and tell.
 * tests/model/sleep.sh checks it.
 *
 * Memory is a processor's of x86: what a thread writes it sees at once, others when it leaves
 * the store buffer, in its order (`told` and `head`, `place` and `asleep`).  A system call empties
 * the buffer of who makes it; membarrier empties everybody's.  The futex looks at its word and
 * queues who waits in one step.
 *
 * The leader tells events and looks behind each whether a twin sleeps.  The monitor adds the
 * followers at some moment; each reads to the end.  Checked in every order of steps: nobody
 * sleeps for ever (an end that is not the end of all is an error to spin), and there are no
 * more calls to wake than sleeps.
 *
 * -DFAULT=N breaks the protocol in one place; spin must then find an error.
 */
#define FAULT_BARRIER	1	/* who goes to sleep makes no barrier for the leader */
#define FAULT_LOOK	2	/* and does not look once more */
#define FAULT_WHERE	3	/* `asleep` only says that it sleeps, not where */
#define FAULT_FIND	4	/* the leader never looks again who follows */
#define FAULT_EARLY	5	/* it looks at the sleepers, then tells */
#define FAULT_AGAIN	6	/* it wakes whoever sleeps, though it has */
#define FAULT_SEEN	7	/* and who has seen this event, as if it had to */

#ifndef FAULT
#define FAULT 0
#endif

byte told, head;			/* the leader's events: in its buffer, in memory */
byte place[FOLLOWERS], asleep[FOLLOWERS];	/* where a follower sleeps: the same */
bool waiting[FOLLOWERS];		/* in the futex's queue */
byte following, change;			/* the conduct's */
byte sleeps, wakes;

#if FAULT == FAULT_WHERE
#define ASLEEP_AT(head)	1
#else
#define ASLEEP_AT(head)	((head) + 1)
#endif

/* A store leaves its buffer. */
proctype buffers()
{
	byte v;

end:	do
	:: atomic { head < told -> head++ }
	:: atomic { place[0] != asleep[0] -> asleep[0] = place[0] }
#if FOLLOWERS > 1
	:: atomic { place[1] != asleep[1] -> asleep[1] = place[1] }
#endif
	od
}

inline wake()
{
	atomic {
		head = told;
		wakes++;
		v = 0;
		do
		:: v < FOLLOWERS -> waiting[v] = false; v++
		:: else -> break
		od;
		v = 0;
		/* Who follows is found anew with each change, and then woken again. */
		assert(wakes <= sleeps + change)
	}
}

inline look()
{
	if
#if FAULT == FAULT_FIND
	:: as_of == 255 ->
#else
	:: as_of != change ->
#endif
		as_of = change;
		count = following;
		woken[0] = 0;
		woken[FOLLOWERS - 1] = 0
	:: else
	fi;
	v = 0;
	rouse = false;
	do
	:: v < count ->
		atomic {
			now = asleep[v];
			if
			:: !now
#if FAULT != FAULT_AGAIN
			:: now && now == woken[v]
#endif
#if FAULT != FAULT_SEEN && FAULT != FAULT_WHERE
			:: now && now == ASLEEP_AT(told)
#endif
			:: else ->
				woken[v] = now;
				rouse = true
			fi;
			now = 0;
			v++
		}
	:: else -> break
	od;
	v = 0;
	if
	:: rouse -> wake()
	:: else
	fi
}

proctype leader()
{
	byte woken[FOLLOWERS], as_of = 255, count, v, now;
	bool rouse;

	do
	:: told < EVENTS ->
#if FAULT == FAULT_EARLY
		look();
#endif
		told++;
#if FAULT != FAULT_EARLY
		look()
#endif
	:: else -> break
	od
}

proctype follower(byte me)
{
	byte taken, seen;

	do
	:: taken == EVENTS -> break
	:: taken < EVENTS ->
		seen = head;
		if
		:: seen > taken -> taken++
		:: else ->
			atomic {
				place[me] = ASLEEP_AT(seen);
				sleeps++
			};
			/* The barrier, or the wait's own system call. */
			atomic {
				asleep[me] = place[me];
#if FAULT != FAULT_BARRIER
				head = told
#endif
			};
			atomic {
#if FAULT == FAULT_LOOK
				waiting[me] = true
#else
				waiting[me] = (head == seen)
#endif
			};
			!waiting[me];
			place[me] = 0
		fi
	od
}

/* Who is added is in the bits before the count is new, and begins behind that. */
init
{
	byte n;

	run buffers();
	run leader();
	do
	:: n < FOLLOWERS ->
		following = n + 1;
		change++;
		run follower(n);
		n++
	:: else -> break
	od
}
