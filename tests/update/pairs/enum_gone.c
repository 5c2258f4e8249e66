/* A value that the new build has not, and nobody says what it is now. */
// refused: `dropped` is no value of `enum state`
enum state { on,
#ifndef NEW
	dropped,
#endif
	off };
static enum state now;
static void make(void) { now = off; }
static void show(void) { printf("%d\n", now == off); }
