/* A variable by C, out of others. */
// xf: transform variable total { *new = OLD(hits) + OLD(misses); }
// xf: transform variable names { for (int i = 0; i < 2; i++) (*new)[i] = mve_migrated(OLD(list)[i].name); }
struct named { char *name; };
#ifdef NEW
static long total;
static char *names[2];
static void make(void) { total = 12; names[0] = "x"; names[1] = "y"; }
static void show(void) { printf("%ld %s %s\n", total, names[0], names[1]); }
#else
static int hits, misses;
static struct named list[2];
static void make(void) { hits = 5; misses = 7; list[0].name = strdup("x"); list[1].name = strdup("y"); }
static void show(void) { printf("%d\n", hits + misses + !list[0].name); }
#endif
