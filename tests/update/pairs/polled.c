/* Data of epoll registrations: of what is made anew, a variable, and what is a number. */
// xf: transform struct conn { extra = 0; }
#include <sys/epoll.h>
struct conn {
#ifdef NEW
	long extra;
#endif
	int number; struct conn *next; };
#ifdef NEW
static long pad[100];
#endif
static struct conn *conns;
static int epoll_fd, pipes[4][2], variable;
static void watch(int n, uint32_t events, uint64_t data)
{
	struct epoll_event e = { .events = EPOLLIN | events, .data.u64 = data };
	if (pipe(pipes[n]) || epoll_ctl(epoll_fd, EPOLL_CTL_ADD, pipes[n][0], &e))
		abort();
}
static struct conn *conn(int number)
{
	struct conn *c = calloc(1, sizeof(*c));
	c->number = number;
	c->next = conns;
	return conns = c;
}
static void make(void)
{
	epoll_fd = epoll_create1(0);
	variable = 3;
	watch(0, 0, (uint64_t)conn(1));
	watch(1, EPOLLEXCLUSIVE, (uint64_t)conn(2));
	watch(2, 0, (uint64_t)&variable);
	watch(3, 0, 4);
}
static struct epoll_event asked(int n)
{
	struct epoll_event e;
	char x = 0;
	write(pipes[n][1], &x, 1);
	while (epoll_wait(epoll_fd, &e, 1, -1) != 1)
		;
	read(pipes[n][0], &x, 1);
	return e;
}
static void show(void)
{
#ifdef NEW
	pad[0]++;
#endif
	printf("%d\n", ((struct conn *)asked(0).data.ptr)->number);
	printf("%d\n", ((struct conn *)asked(1).data.ptr)->number);
	printf("%d\n", (*(int *)asked(2).data.ptr)++ == variable - 1);
	printf("%d\n", (int)asked(3).data.u64);
}
