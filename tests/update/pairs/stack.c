/* A pointer to what stands on a stack, which begins anew. */
// stays: leads to the stack of a thread
static int *there;
static void make(void) { there = &on_stack; }
static void show(void) { printf("%d\n", *there); }
