/* Void pointers: by a condition, opaque, and of a variable. */
// xf: transform struct box {
// xf:	data : struct a if old->kind == 1; data : struct b if old->kind == 2;
// xf:	cookie : opaque;
// xf: }
// xf: transform struct b { more = 7; }
// xf: transform variable any { : struct b; }
struct a { int n; };
struct b {
#ifdef NEW
	int more;
#endif
	char *text; };
struct box { int kind; void *data, *cookie; };
static struct box *boxes;
static void *any;
static struct a *made_a(int n) { struct a *a = malloc(sizeof(*a)); a->n = n; return a; }
static struct b *made_b(const char *t)
{
	struct b *b = calloc(1, sizeof(*b));
	b->text = strdup(t);
#ifdef NEW
	b->more = 7;
#endif
	return b;
}
static void make(void)
{
	boxes = calloc(2, sizeof(*boxes));
	boxes[0] = (struct box){ 1, made_a(5), malloc(4) };
	boxes[1] = (struct box){ 2, made_b("b"), NULL };
	any = made_b("any");
}
static void show(void)
{
	printf("%d %s %s %d\n", ((struct a *)boxes[0].data)->n, ((struct b *)boxes[1].data)->text,
		((struct b *)any)->text, boxes[0].cookie != NULL);
#ifdef NEW
	printf("%d %d\n", ((struct b *)boxes[1].data)->more, ((struct b *)any)->more);
#endif
}
