/* A variable of another kind, which C makes anew; a structure without a name has its fields there. */
// xf: transform variable n { new->count = *old; new->half = OLD(both).a / 2; }
#ifdef NEW
static struct { int count, half; } n;
#else
static int n;
#endif
static struct { int a, b; } both;
static void make(void)
{
	both.a = 10;
#ifdef NEW
	n.count = 7;
	n.half = 5;
#else
	n = 7;
#endif
}
static void show(void)
{
#ifdef NEW
	printf("%d %d %d\n", n.count, n.half, both.a);
#else
	printf("%d %d\n", n, both.a);
#endif
}
