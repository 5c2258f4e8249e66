/* ... or only of one of its members. */
// xf: transform struct value { u.text if old->kind == 1; }
// refused: the union is open: when is it `u.number`?
struct value { int kind; union { char *text; long number; } u; };
static struct value *value;
static void make(void) { value = calloc(1, sizeof(*value)); value->u.text = strdup("x"); }
static void show(void) { printf("%s\n", value->u.text); }
