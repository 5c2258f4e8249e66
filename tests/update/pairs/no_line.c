/* A line that is none. */
// xf: transform struct entry { label is 5; }
// refused: this is no line of a transform
struct entry { int n, label; };
static struct entry *entry;
static void make(void) { entry = calloc(1, sizeof(*entry)); }
static void show(void) { printf("%d\n", entry != NULL); }
