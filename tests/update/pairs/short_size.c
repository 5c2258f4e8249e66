/* A field of another size, by another name. */
// xf: transform struct entry { label from name; }
// refused: `label` of `struct entry` is `int` (4 bytes) now, and was `char [16]` (16 bytes)
struct entry {
#ifdef NEW
	int label;
#else
	char name[16];
#endif
};
static struct entry *entry;
static void make(void) { entry = calloc(1, sizeof(*entry)); }
static void show(void) { printf("%d\n", entry != NULL); }
