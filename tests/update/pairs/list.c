/* Links in the middle of what they link. */
// xf: transform struct link { next : struct job.link; prev : struct job.link; }
// xf: transform struct job { started = true; }
struct link { struct link *next, *prev; };
struct job {
#ifdef NEW
	bool started;
#endif
	int id; struct link link; };
static struct link *head;
static void make(void)
{
	struct job *last = NULL;
	for (int i = 0; i < 20; i++) {
		struct job *j = calloc(1, sizeof(*j));
		j->id = i;
#ifdef NEW
		j->started = true;
#endif
		if (last) {
			j->link.prev = &last->link;
			last->link.next = &j->link;
		}
		if (!head)
			head = &j->link;
		last = j;
	}
}
// xf: transform variable head { : struct job.link; }
static void show(void)
{
	struct link *l = head;
	for (; l->next; l = l->next) {
		struct job *j = (struct job *)((char *)l - offsetof(struct job, link));
		printf("%d ", j->id);
#ifdef NEW
		printf("%d ", j->started);
#endif
	}
	for (; l; l = l->prev)
		printf("%d ", ((struct job *)((char *)l - offsetof(struct job, link)))->id);
	printf("\n");
}
