/* A number that its new type cannot be. */
// stays: is 70000, which no
#ifdef NEW
short count;
#else
int count;
#endif
static void make(void) { count = 70000 & 0x1ffff; }
static void show(void) { printf("%d\n", (int)count); }
