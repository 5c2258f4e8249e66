/* ... and nobody says. */
// refused: leads to nobody knows what
struct box { void *data; };
static struct box *box;
static void make(void) { box = calloc(1, sizeof(*box)); box->data = malloc(3); }
static void show(void) { printf("%d\n", box->data != NULL); }
