/* A variable of another kind, of which nothing is said. */
// refused: say what it is: transform variable n { *new = C; }
#ifdef NEW
static struct { int count; } n;
#else
static int n;
#endif
static void make(void)
{
#ifdef NEW
	n.count = 7;
#else
	n = 7;
#endif
}
static void show(void)
{
#ifdef NEW
	printf("%d\n", n.count);
#else
	printf("%d\n", n);
#endif
}
