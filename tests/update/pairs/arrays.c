/* Arrays that grow, of two dimensions, in a structure and alone. */
#ifdef NEW
#define N 8
#else
#define N 5
#endif
struct grid { int at[N][3]; char name[N * 2]; };
static struct grid *grid;
static long table[N];
static void make(void)
{
	grid = calloc(1, sizeof(*grid));
	for (int i = 0; i < 5; i++)
		for (int k = 0; k < 3; k++)
			grid->at[i][k] = i * 10 + k;
	strcpy(grid->name, "a grid");
	table[4] = 44;
}
static void show(void)
{
	printf("%s %ld %ld\n", grid->name, table[4], table[N - 1]);
	for (int i = 0; i < N; i++)
		printf("%d %d %d\n", grid->at[i][0], grid->at[i][1], grid->at[i][2]);
}
