/* An allocation that two pointers say different things of. */
// xf: transform struct a { more = 1; }
// stays: which is
struct a { int n;
#ifdef NEW
	long more;
#endif
};
struct b { char *text; };
static struct a *as_a;
static struct b *as_b;
static void make(void) { as_a = calloc(2, 16); as_b = (struct b *)as_a; }
static void show(void) { printf("%d\n", as_a != NULL && as_b->text == NULL); }
