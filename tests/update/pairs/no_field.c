/* A field that is not there. */
// xf: transform struct entry { labl = 1; label = 2; }
// refused: did you mean `label`?
struct entry { int n;
#ifdef NEW
	int label;
#endif
};
static struct entry *entry;
static void make(void) { entry = calloc(1, sizeof(*entry)); }
static void show(void) { printf("%d\n", entry != NULL); }
