/* A union whose members are told by a field beside it. */
// xf: transform struct value { u.text if old->kind == old_TEXT; u.number if old->kind == old_NUMBER; }
enum kind { NUMBER, TEXT };
struct value { enum kind kind;
#ifdef NEW
	union { char *text; long number; double real; } u;
#else
	union { int number; char *text; } u;
#endif
};
static struct value values[2];
static void make(void)
{
	values[0].kind = NUMBER;
	values[0].u.number = -17;
	values[1].kind = TEXT;
	values[1].u.text = strdup("seventeen");
}
static void show(void) { printf("%ld %s\n", (long)values[0].u.number, values[1].u.text); }
