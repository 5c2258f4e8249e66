/* Values with other numbers; one with another name. */
// xf: transform enum color { crimson = red; }
#ifdef NEW
enum color { blue = 1, red = 5, green = 9 };
#define CRIMSON red
#else
enum color { red, green, blue, crimson };
#define CRIMSON crimson
#endif
struct dot { enum color c; int at; } dots[4];
static enum color *more;
static void make(void)
{
	more = malloc(3 * sizeof(*more));
	more[0] = green, more[1] = red, more[2] = CRIMSON;
	for (int i = 0; i < 4; i++)
		dots[i] = (struct dot){ i == 0 ? red : i == 1 ? green : i == 2 ? blue : CRIMSON, i };
}
static const char *name(enum color c)
{
	return c == red || c == CRIMSON ? "red" : c == green ? "green" : c == blue ? "blue" : "?";
}
static void show(void)
{
	for (int i = 0; i < 4; i++)
		printf("%s %d\n", name(dots[i].c), dots[i].at);
	for (int i = 0; i < 3; i++)
		printf("%s\n", name(more[i]));
}
