/* ... and nobody says which. */
// refused: is open
struct value { int kind; union { char *text; long number; } u; };
static struct value *value;
static void make(void) { value = calloc(1, sizeof(*value)); value->u.text = strdup("x"); }
static void show(void) { printf("%s\n", value->u.text); }
