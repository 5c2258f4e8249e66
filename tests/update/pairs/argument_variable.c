/* Threads' arguments are places in variables, whose type nobody has to say. */
// xf: transform struct slot { extra = 0; }
#include <pthread.h>
struct slot {
#ifdef NEW
	long extra;
#endif
	int number; };
#ifdef NEW
static long pad[100];
#endif
static struct { int before; struct slot slot[3]; } slots;
static int asks[2], answers[2];
static void *serve(void *arg)
{
	struct slot *s = arg;
	for (;;) {
		char x;
		mve_update_point("serve");
		if (read(asks[0], &x, 1) != 1)
			continue;
		printf("%d %d\n", s->number, s == &slots.slot[1]);
		write(answers[1], &x, 1);
	}
}
static void make(void)
{
	pthread_t id;
	for (int i = 0; i < 3; i++)
		slots.slot[i].number = 10 + i;
	if (pipe(asks) || pipe(answers) || pthread_create(&id, NULL, serve, &slots.slot[1]))
		abort();
}
static void show(void)
{
	char x = 0;
#ifdef NEW
	pad[0]++;
#endif
	write(asks[1], &x, 1);
	while (read(answers[0], &x, 1) != 1)
		;
}
