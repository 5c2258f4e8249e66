/* Pointers into the middle: of an array that moves, of a variable, of a text, to an end. */
struct cell { int n;
#ifdef NEW
	long more;
#endif
};
// xf: transform struct cell { more = 0; }
static struct cell *cells, *third, *end, *in_fixed, fixed[4];
static char *text, *word, *constant;
static int *field;
static void make(void)
{
	cells = calloc(5, sizeof(*cells));
	for (int i = 0; i < 5; i++)
		cells[i].n = i * 11;
	for (int i = 0; i < 4; i++)
		fixed[i].n = i * 7;
	third = &cells[3];
	end = &cells[5];
	in_fixed = &fixed[2];
	field = &cells[4].n;
	text = strdup("some words");
	word = text + 5;
	constant = "a constant";
}
static void show(void)
{
	printf("%d %d %d %d %s %s %s\n", third->n, (int)(end - cells), in_fixed->n, *field, word, text,
		constant);
}
