/* A function that is in use, and gone. */
// stays: leads to old_way()
static int (*way)(void);
#ifdef NEW
static int new_way(void) { return 2; }
static void make(void) { way = new_way; }
#else
int old_way(void) { return 1; }
static void make(void) { way = old_way; }
#endif
static void show(void) { printf("%d\n", way()); }
