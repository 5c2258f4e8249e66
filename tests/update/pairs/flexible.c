/* An array at the end, as long as there is room. */
// xf: transform struct e { seen = 1; }
struct e { int x;
#ifdef NEW
	long seen;
#endif
};
struct row { int n;
#ifdef NEW
	int width;
#endif
	struct e at[]; };
// xf: transform struct row { width = old->n * 2; }
static struct row *rows[2];
static void make(void)
{
	for (int r = 0; r < 2; r++) {
		int n = 3 + r * 4;
		rows[r] = calloc(1, sizeof(struct row) + (size_t)n * sizeof(struct e));
		rows[r]->n = n;
#ifdef NEW
		rows[r]->width = n * 2;
#endif
		for (int i = 0; i < n; i++) {
			rows[r]->at[i].x = i * i;
#ifdef NEW
			rows[r]->at[i].seen = 1;
#endif
		}
	}
}
static void show(void)
{
	for (int r = 0; r < 2; r++)
		for (int i = 0; i < rows[r]->n; i++)
#ifdef NEW
			printf("%d %d %ld\n", rows[r]->at[i].x, rows[r]->width, rows[r]->at[i].seen);
#else
			printf("%d\n", rows[r]->at[i].x);
#endif
}
