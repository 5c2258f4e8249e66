/*
 * A model of how a leader's threads sleep for room in a full ring, and are woken: what
 * engine/inside/lanes/full.c does.  Memory is that of sleep.pml: what a thread writes leaves its
 * store buffer later (`at` and `given`), and a system call or an atomic step empties it.
 *
 * Each thread of the leader needs a chunk so many times; the follower gives CHUNKS back, one by
 * one.  With DROP thread 0 drops the follower instead of waiting.  Checked in every order of
 * steps: nobody sleeps for ever, without the look at each FULL_LOOK_NS.
 *
 * -DFAULT=N breaks the protocol in one place; spin must then find an error.
 */
#define FAULT_BARRIER	1	/* who gives looks at `wants` (`full`) before that can be seen */
#define FAULT_SEE	2	/* who waits reads the count behind its look for room */
#define FAULT_DROP	3	/* who drops the follower tells nobody */

#ifndef FAULT
#define FAULT 0
#endif

byte at, given;			/* chunks given back: in the follower's buffer, in memory */
byte count;			/* `room`, in its buffer */
byte used;			/* by the leader */
byte wants, room, own;		/* who waits; counts: the follower's, the leader's own */
bool dropped;
bool waiting[THREADS];

#define ROOM	(dropped || given > used)

inline wake()
{
	atomic {
		waiting[0] = false;
		waiting[THREADS - 1] = false
	}
}

/* A store leaves its buffer. */
proctype buffer()
{
end:	do
	:: atomic { given < at -> given++ }
	:: atomic { given == at && room != count -> room = count }
	od
}

proctype follower()
{
	byte n;

	do
	:: n == CHUNKS -> break
	:: n < CHUNKS ->
		at++;
		n++;
		count++;
#if FAULT != FAULT_BARRIER
		atomic { given = at; room = count };
#endif
		if
		:: wants -> wake()
		:: else
		fi
	od
}

/* had: there was room, and it is ours. */
inline chunk()
{
	d_step {
		had = ROOM;
		if
		:: had && !dropped -> used++
		:: else
		fi
	}
}

inline see()
{
	seen = room;
	mine = own
}

proctype thread(byte me)
{
	byte n, seen, mine;
	bool had;

	do
	:: n == NEEDS -> break
	:: n < NEEDS ->
		wants++;
		had = false;
		do
		:: had -> break
		:: !had ->
#if FAULT != FAULT_SEE
			see();
#endif
			chunk();
#if FAULT == FAULT_SEE
			see();
#endif
			if
			:: had
#if DROP
			:: !had && me == 0 ->
				dropped = true;
#if FAULT != FAULT_DROP
				own++;
				if
				:: wants -> wake()
				:: else
				fi
#endif
#endif
			:: !had && !(DROP && me == 0) ->
				/* The futex: its look and its queue are one step. */
				atomic { waiting[me] = (room == seen && own == mine) };
				!waiting[me]
			fi
		od;
		wants--;
		n++
	od
}

init
{
	byte n;

	atomic {
		run buffer();
		run follower();
		for (n : 0 .. THREADS - 1) {
			run thread(n)
		}
	}
}
