/* Addresses of what is made anew, where no type says that there are any. */
// xf: transform struct child { extra = 0; }
// xf: transform struct list { kept : opaque; }
// says: warning: what `items` of `struct list` leads to has no type, and 2 addresses of `struct child` are in it
// says: warning: what `kept` of `struct list` leads to has no type, and 1 addresses of `struct child` are in it
struct child {
#ifdef NEW
	long extra;
#endif
	int n; };
struct list { char *items; void *kept; };
static struct child *first, *second;
static struct list list;
static void make(void)
{
	first = calloc(1, sizeof(*first));
	second = calloc(1, sizeof(*second));
	list.items = calloc(4, sizeof(first));
	list.kept = calloc(4, sizeof(first));
	memcpy(list.items, &first, sizeof(first));
	memcpy(list.items + sizeof(first), &second, sizeof(first));
	memcpy((char *)list.kept + sizeof(first), &first, sizeof(first));
	first->n = 1;
	second->n = 2;
}
static void show(void)
{
	printf("%d %d %d %d\n", first->n, second->n, list.items != NULL, list.kept != NULL);
}
