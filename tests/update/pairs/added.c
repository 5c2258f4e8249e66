/* A field that is new has the value that the transform says; the rest comes along. */
// xf: transform struct item { count = 3; twice = { return 2 * old->id; } }
struct item { int id;
#ifdef NEW
	long count; int twice;
#endif
	char name[16]; };
static struct item *items[4];
static void make(void)
{
	for (int i = 0; i < 4; i++) {
		items[i] = calloc(1, sizeof(struct item));
		items[i]->id = i + 1;
		sprintf(items[i]->name, "item %d", i);
#ifdef NEW
		items[i]->count = 3;
		items[i]->twice = 2 * (i + 1);
#endif
	}
}
static void show(void)
{
	for (int i = 0; i < 4; i++) {
		printf("%d %s", items[i]->id, items[i]->name);
#ifdef NEW
		printf(" %ld %d", items[i]->count, items[i]->twice);
#endif
		printf("\n");
	}
}
