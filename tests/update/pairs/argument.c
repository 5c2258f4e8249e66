/* A thread's argument, and what it leads to, are made anew; nothing else leads there. */
// xf: transform thread serve { : struct client; }
// xf: transform struct client { extra = 0; }
// xf: transform struct part { extra = 0; }
#include <pthread.h>
struct part {
#ifdef NEW
	long extra;
#endif
	int number; };
struct client {
#ifdef NEW
	long extra;
#endif
	int number; char *name; struct part *part; };
static int asks[2], answers[2];
static void *serve(void *arg)
{
	struct client *c = arg;
	for (;;) {
		char x;
		mve_update_point("serve");
		if (read(asks[0], &x, 1) != 1)
			continue;
		printf("%d %s %d\n", c->number, c->name, c->part->number);
		write(answers[1], &x, 1);
	}
}
static void make(void)
{
	struct client *c = calloc(1, sizeof(*c));
	pthread_t id;
	c->number = 7;
	c->name = strdup("seven");
	c->part = calloc(1, sizeof(*c->part));
	c->part->number = 77;
	if (pipe(asks) || pipe(answers) || pthread_create(&id, NULL, serve, c))
		abort();
}
static void show(void)
{
	char x = 0;
	write(asks[1], &x, 1);
	while (read(answers[0], &x, 1) != 1)
		;
}
