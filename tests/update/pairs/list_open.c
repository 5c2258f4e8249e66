/* ... and nobody says so. */
// stays: leads into
struct link { struct link *next; };
struct job { int id; struct link link; };
static struct link *head;
static void make(void)
{
	struct job *j = calloc(1, sizeof(*j));
	j->id = 4;
	head = &j->link;
}
static void show(void)
{
	printf("%d\n", ((struct job *)((char *)head - offsetof(struct job, link)))->id);
}
