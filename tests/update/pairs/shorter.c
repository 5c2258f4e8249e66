/* An array that becomes shorter, and is used. */
// stays: element 6 is used
#ifdef NEW
static int table[4];
#else
static int table[8];
#endif
static void make(void) { table[3] = 3; if (sizeof(table) > 16) table[6] = 6; }
static void show(void) { printf("%d\n", table[3]); }
