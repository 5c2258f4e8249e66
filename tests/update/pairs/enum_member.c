/* The user's C compares a value of the old build with a name that has another number by now. */
// xf: transform struct dot { bright = old->c == red; }
// refused: `red` of `enum color` was 0 and is 1 in the new build
enum color {
#ifdef NEW
	black,
#endif
	red, green };
static struct dot {
	enum color c;
#ifdef NEW
	int bright;
#endif
} *dot;
static void make(void) { dot = calloc(1, sizeof(*dot)); }
static void show(void) { printf("%d\n", dot->c == red); }
