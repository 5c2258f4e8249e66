/* A type that is not there. */
// xf: transform struct entri { label = 1; }
// refused: `struct entri` is no type of either build
static int n;
static void make(void) { n = 1; }
static void show(void) { printf("%d\n", n); }
