/*
 * A model of a tick's number: an event shows a tick just when its number is greater
 * (engine/inside/lanes/tick.c: tick_number; event.h: seq_shown).
 *
 * One thread reads a clock TICKS times, and draws a number for each, so that a lock, which has the
 * last number that was drawn, is on one side of it, too.  Another tells EVENTS events, each a call,
 * which draws a number, or a lock.  Checked in every order of steps: who has a greater number than
 * the tick shows it, and who has a smaller one does not.
 *
 * -DFAULT=N breaks the protocol in one place; spin must then find an error.
 */
#define FAULT_DRAWN	1	/* a number is drawn while a tick's is */
#define FAULT_LOOK	2	/* who has drawn one does not look again */
#define FAULT_LAST	3	/* a lock may have the tick's own number */

#ifndef FAULT
#define FAULT 0
#endif

byte last;		/* number that was drawn */
byte ticks;		/* twice; and one more while a number is drawn for one */
byte number[TICKS];	/* of each tick, when it is told; ghosts from here on */
byte told;
byte over;

inline draw(to)
{
	atomic { last++; to = last }
}

active proctype clock()
{
	byte n, unused;

	do
	:: told == TICKS -> break
	:: else ->
#if FAULT != FAULT_DRAWN
		ticks++;
#endif
		draw(n);
#if FAULT != FAULT_LAST
		draw(unused);
#endif
		ticks = ticks + 2;
		atomic {
#if FAULT != FAULT_DRAWN
			ticks--;
#endif
			number[told] = n;
			told++
		}
	od;
	over++
}

active proctype other()
{
	byte n, now, events, shown[EVENTS], seq[EVENTS];

	do
	:: events == EVENTS -> break
	:: else ->
again:
		atomic { ticks % 2 == 0 -> now = ticks };
		if
		:: draw(n)
		:: n = last
		fi;
#if FAULT != FAULT_LOOK
		if
		:: now != ticks -> goto again
		:: else
		fi;
#endif
		seq[events] = n;
		shown[events] = now / 2;
		events++
	od;
	over == 1;
	for (events : 0 .. EVENTS - 1) {
		for (n : 0 .. TICKS - 1) {
			assert((seq[events] > number[n]) == (shown[events] > n));
			assert(seq[events] != number[n])
		}
	}
}
