/* Functions by name: in the heap, in a table, static; one of libc's. */
static int one(int n) { return n + 1; }
#ifdef NEW
int between(int n) { return n; }
static int two(int n) { return n + 2000; }
#else
static int two(int n) { return n + 2; }
#endif
struct hook { int (*call)(int); void (*give)(void *); struct hook *next; };
static struct hook *hooks;
static int (*table[2])(int);
static void make(void)
{
	for (int i = 0; i < 3; i++) {
		struct hook *h = calloc(1, sizeof(*h));
		h->call = i % 2 ? two : one;
		h->give = free;
		h->next = hooks;
		hooks = h;
	}
	table[1] = two;
}
static void show(void)
{
	for (struct hook *h = hooks; h; h = h->next)
		printf("%d %d\n", h->call(1), h->give == free);
	printf("%d\n", table[1](5));
}
