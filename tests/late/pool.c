/*
 * A server with a pool of threads: one waits for connections and passes those that can be read
 * to four workers, which wait for them asleep.  As servers/kv it knows PUT and GET.
 *
 *	pool PORT cond|timed|sem
 */
#include <arpa/inet.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define WORKERS	4
#define JOBS	1024
#define KEYS	1024

struct connection {
	int fd;
	size_t have;
	char data[4096];
};

static pthread_mutex_t jobs_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t jobs_there = PTHREAD_COND_INITIALIZER;
static sem_t jobs_count;
static struct connection *jobs[JOBS];
static unsigned jobs_put, jobs_got;
static long value[KEYS];
static const char *how;
static int set;

/* V8 has a function of such a name, and is no sanitizer's runtime. */
int noop_interceptor_info(int kind)
{
	return kind + 1;
}

static void job_put(struct connection *c)
{
	pthread_mutex_lock(&jobs_lock);
	jobs[jobs_put++ % JOBS] = c;
	pthread_cond_signal(&jobs_there);
	pthread_mutex_unlock(&jobs_lock);
	if (!strcmp(how, "sem"))
		sem_post(&jobs_count);
}

static void job_wait(void)
{
	struct timespec end;

	if (strcmp(how, "timed")) {
		pthread_cond_wait(&jobs_there, &jobs_lock);
		return;
	}
	clock_gettime(CLOCK_REALTIME, &end);
	end.tv_sec += 600;
	pthread_cond_timedwait(&jobs_there, &jobs_lock, &end);
}

static struct connection *job_get(void)
{
	struct connection *c;

	/* As most do, this one does not expect to be told that nothing is there. */
	if (!strcmp(how, "sem") && sem_wait(&jobs_count))
		abort();
	pthread_mutex_lock(&jobs_lock);
	while (jobs_put == jobs_got)
		job_wait();
	c = jobs[jobs_got++ % JOBS];
	pthread_mutex_unlock(&jobs_lock);
	return c;
}

static void line_serve(int fd, const char *line)
{
	char reply[64] = "OK\n";
	unsigned key;
	long v;

	if (sscanf(line, "PUT key-%u %ld", &key, &v) == 2)
		value[key % KEYS] = v;
	else if (sscanf(line, "GET key-%u", &key) == 1)
		snprintf(reply, sizeof(reply), "VALUE %ld\n", value[key % KEYS]);
	if (write(fd, reply, strlen(reply)) < 0)
		return;
}

static void connection_serve(struct connection *c)
{
	struct epoll_event e = { .events = EPOLLIN | EPOLLONESHOT, .data.ptr = c };
	ssize_t n = read(c->fd, c->data + c->have, sizeof(c->data) - 1 - c->have);
	char *line = c->data, *end;

	if (n <= 0) {
		close(c->fd);
		free(c);
		return;
	}
	c->have += (size_t)n;
	c->data[c->have] = 0;
	for (; (end = strchr(line, '\n')); line = end + 1) {
		*end = 0;
		line_serve(c->fd, line);
	}
	c->have -= (size_t)(line - c->data);
	memmove(c->data, line, c->have);
	epoll_ctl(set, EPOLL_CTL_MOD, c->fd, &e);
}

static void *worker(void *unused)
{
	(void)unused;
	for (;;)
		connection_serve(job_get());
}

static void connection_begin(int fd)
{
	struct connection *c = calloc(1, sizeof(*c));
	struct epoll_event e = { .events = EPOLLIN | EPOLLONESHOT, .data.ptr = c };

	c->fd = fd;
	epoll_ctl(set, EPOLL_CTL_ADD, fd, &e);
}

int main(int argc, char **argv)
{
	struct sockaddr_in at = { .sin_family = AF_INET };
	int one = 1, fd = socket(AF_INET, SOCK_STREAM, 0);
	struct epoll_event e = { .events = EPOLLIN };
	pthread_t thread;

	if (argc < 3)
		return 2;
	how = argv[2];
	sem_init(&jobs_count, 0, 0);
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	at.sin_port = htons((uint16_t)atoi(argv[1]));
	at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (bind(fd, (struct sockaddr *)&at, sizeof(at)) || listen(fd, 64))
		return 1;
	set = epoll_create1(0);
	epoll_ctl(set, EPOLL_CTL_ADD, fd, &e);
	for (int i = 0; i < WORKERS; i++)
		pthread_create(&thread, NULL, worker, NULL);
	for (;;) {
		struct epoll_event got[16];
		int n = epoll_wait(set, got, 16, -1);

		for (int i = 0; i < n; i++)
			if (got[i].data.ptr)
				job_put(got[i].data.ptr);
			else
				connection_begin(accept(fd, NULL, NULL));
	}
}
