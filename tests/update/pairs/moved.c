/* Fields in another order, one gone, one by another name; a list. */
// xf: transform struct node { label from name; }
struct node {
#ifdef NEW
	struct node *next; short b; char *label; long a;
#else
	long a; int gone; char *name; short b; struct node *next;
#endif
};
static struct node *first;
static void make(void)
{
	for (int i = 0; i < 100; i++) {
		struct node *n = calloc(1, sizeof(*n));
		char text[20];
		sprintf(text, "node %d", i);
		n->a = i * 1000000007l;
		n->b = (short)-i;
#ifdef NEW
		n->label = strdup(text);
#else
		n->name = strdup(text);
#endif
		n->next = first;
		first = n;
	}
}
static void show(void)
{
	for (struct node *n = first; n; n = n->next)
#ifdef NEW
		printf("%ld %d %s\n", n->a, n->b, n->label);
#else
		printf("%ld %d %s\n", n->a, n->b, n->name);
#endif
}
