/* Statics of functions; variables that nobody changed are the new source's. */
#ifdef NEW
static int limit = 200, table[3] = { 7, 8, 9 };
static const char *const names[] = { "zero", "one", "two", "three" };
#else
static int limit = 100, table[2] = { 1, 2 };
static const char *const names[] = { "zero", "one", "two" };
#endif
static int changed = 1;
static const char *const *name;
static int counted(int add)
{
	static int count;
	return count += add;
}
static int other(int add)
{
	static int count = 10;
	return count += add;
}
static void make(void) { counted(5); other(1); changed = 3; name = &names[1]; }
static void show(void)
{
	printf("%d %d %d %d %d %s\n", counted(0), other(0), changed, limit, table[1], name[1]);
}
