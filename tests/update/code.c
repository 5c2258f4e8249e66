/*
 * A server between whose two builds nothing but code changed: what it keeps in places whose type
 * nobody knows leads into the build, and must lead into the new one.
 *
 * The main thread waits in epoll_wait(), a worker for a condition.  A line of a client is a
 * command: `job` is done by the worker, `call` by a function behind a void pointer, `sorted` by
 * one that libc was given, `signals` tells how often a handler ran; each answer names the build.
 */
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "servers/kv/threads/kv.h"

#ifdef NEW
#define BUILD "new"
#else
#define BUILD "old"
#endif

struct plugin {
	void *call, *counter;	/* of a function, of a variable: nothing says so */
};

struct client {
	int fd;
	size_t n;
	char line[LINE_SIZE];
};

static void *plugins[2];
static unsigned calls, signals;
static const char *const names[] = { "first", "second" };
static int set, listening;
#ifdef NEW
static unsigned of_the_new_one;		/* places of variables are others */
#endif
/* The new one's own: nobody changes it. */
static const char *table[] = {
	"first",
#ifdef NEW
	"second",
#endif
};
#ifdef UNLIKE
struct unlike {
	int a;
#ifdef NEW
	int b;
#endif
} unlike;
#endif

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t work = PTHREAD_COND_INITIALIZER;
static struct job {
	struct job *next;
	int fd;
} *jobs;
static unsigned jobs_done;

static void answer(int fd, const char *what, unsigned n)
{
	char text[LINE_SIZE];
	int len = snprintf(text, sizeof(text), "%s %s %u\n", BUILD, what, n);

	send_all(fd, text, (size_t)len);
}

static void signalled(int signal)
{
	(void)signal;
	signals += sizeof(BUILD) - 1;
}

/* It is in two pieces: what it hardly ever does the compiler puts elsewhere. */
__attribute__((cold, noreturn, noinline)) static void lacks(const void *counter)
{
	fprintf(stderr, "no counter: %p\n", counter);
	abort();
}

static unsigned called(void *counter)
{
	if (!counter)
		lacks(&calls);
#ifdef NEW
	of_the_new_one++;
#endif
	return ++*(unsigned *)counter;
}

static void *worker(void *arg)
{
	unsigned *done = arg;	/* a variable of the build */

	pthread_mutex_lock(&lock);
	for (;;) {
		struct job *job = jobs;

		if (!job) {
			pthread_cond_wait(&work, &lock);
			continue;
		}
		jobs = job->next;
		answer(job->fd, "job", ++*done);
		free(job);
	}
	return arg;
}

static void job_add(int fd)
{
	struct job *job = calloc(1, sizeof(*job));

	job->fd = fd;
	pthread_mutex_lock(&lock);
	job->next = jobs;
	jobs = job;
	pthread_cond_signal(&work);
	pthread_mutex_unlock(&lock);
}

static void command(struct client *c)
{
	struct plugin *p = plugins[1];

	if (!strcmp(c->line, "job"))
		job_add(c->fd);
	else if (!strcmp(c->line, "call"))
		answer(c->fd, names[1], ((unsigned (*)(void *))p->call)(p->counter));
	else if (!strcmp(c->line, "signals"))
		answer(c->fd, "signals", signals);
	else if (!strcmp(c->line, "table"))
		answer(c->fd, table[sizeof(table) / sizeof(table[0]) - 1], 0);
	else
		answer(c->fd, "unknown", 0);
}

static void client_serve(struct client *c)
{
	ssize_t n = recv(c->fd, c->line + c->n, sizeof(c->line) - 1 - c->n, 0);

	if (n <= 0) {
		close(c->fd);
		free(c);
		return;
	}
	c->n += (size_t)n;
	c->line[c->n] = 0;
	if (!memchr(c->line, '\n', c->n))
		return;
	*strchr(c->line, '\n') = 0;
	c->n = 0;
	command(c);
}

static void client_new(void)
{
	struct client *c = calloc(1, sizeof(*c));
	struct epoll_event e = { .events = EPOLLIN, .data.ptr = c };

	c->fd = accept(listening, NULL, NULL);
	epoll_ctl(set, EPOLL_CTL_ADD, c->fd, &e);
}

static void begin(unsigned port)
{
	struct epoll_event e = { .events = EPOLLIN };
	struct sigaction action = { .sa_handler = signalled, .sa_flags = SA_RESTART };
	struct plugin *p = calloc(1, sizeof(*p));
	pthread_t id;

	*p = (struct plugin){ (void *)called, &calls };
	plugins[1] = p;
	sigaction(SIGUSR1, &action, NULL);
	set = epoll_create1(EPOLL_CLOEXEC);
	pthread_create(&id, NULL, worker, &jobs_done);
	listening = listen_on(port);
	epoll_ctl(set, EPOLL_CTL_ADD, listening, &e);
}

int main(int argc, char **argv)
{
	struct epoll_event e;

	mve_update_epoll(true);
	mve_update_conditions(true);
	if (!mve_updating())
		begin((unsigned)atoi(argv[argc - 1]));
	for (;;) {
		if (epoll_wait(set, &e, 1, -1) < 1)
			continue;
		if (e.data.ptr)
			client_serve(e.data.ptr);
		else
			client_new();
	}
}
