/* Bit-fields, in another place. */
#ifdef NEW
struct flags { unsigned c : 9, a : 3; long x; unsigned b : 1; };
#else
struct flags { unsigned a : 3, b : 1, c : 9; int x; };
#endif
static struct flags *f;
static void make(void) { f = calloc(2, sizeof(*f)); f[1].a = 5; f[1].b = 1; f[1].c = 300; f[1].x = 4; }
static void show(void) { printf("%d %d %d %d\n", f[1].a, f[1].b, f[1].c, (int)f[1].x); }
