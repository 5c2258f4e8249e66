/* C that does not compile: the place is that of the transform file. */
// xf: transform struct entry {
// xf:	label = old->labels + 1;
// xf: }
// refused: .xf:2:
struct entry { int n;
#ifdef NEW
	int label;
#endif
};
static struct entry *entry;
static void make(void) { entry = calloc(1, sizeof(*entry)); }
static void show(void) { printf("%d\n", entry != NULL); }
