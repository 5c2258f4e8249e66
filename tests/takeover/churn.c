/*
 * churn PORT WAY: a server whose threads hand connections to each other, for tests of
 * taking over while connections come and go.  GET and PUT of servers/kv, with whole lines
 * in a packet or not.  Connections are allocated by one thread and freed by another, so
 * twins' addresses differ.  WAY:
 *
 *	sockets	a thread for each connection
 *	edges	threads on one epoll set, edge-triggered, one shot
 *	queue	one thread waits and queues, others sleep on a condition
 *	programs	a process for each connection; every other one executes this program
 *		again, with the connection's number behind WAY
 *	descriptors	the same by a descriptor of the program, opened at the start
 *	helpers	a process for each connection, with one of its own that it kills
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define THREADS		4
#define KEYS		64
#define READY		1024
#define LINE		128

struct client {
	int fd;
	size_t have;
	char line[4096];
};

static pthread_mutex_t keys_lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned long value[KEYS];
static int listener, set, keys_fd = -1, program_fd = -1;

static void must(int ok, const char *what)
{
	if (ok)
		return;
	perror(what);
	exit(1);
}

/* Processes have the keys in a file. */
static void value_put(unsigned key, unsigned long n)
{
	value[key] = n;
	must(keys_fd < 0 || pwrite(keys_fd, &n, sizeof(n), key * sizeof(n)) == sizeof(n), "put");
}

static unsigned long value_get(unsigned key)
{
	unsigned long n = value[key];

	must(keys_fd < 0 || pread(keys_fd, &n, sizeof(n), key * sizeof(n)) >= 0, "get");
	return n;
}

static int answer(int fd, const char *line)
{
	unsigned key;
	unsigned long n;
	char out[LINE];
	int length;

	pthread_mutex_lock(&keys_lock);
	if (sscanf(line, "PUT key-%u %lu", &key, &n) == 2 && key < KEYS) {
		value_put(key, n);
		length = snprintf(out, sizeof(out), "OK\n");
	} else if (sscanf(line, "GET key-%u", &key) == 1 && key < KEYS) {
		length = snprintf(out, sizeof(out), "VALUE %lu\n", value_get(key));
	} else {
		length = snprintf(out, sizeof(out), "ERROR\n");
	}
	pthread_mutex_unlock(&keys_lock);
	return write(fd, out, (size_t)length) == length;
}

/* What has come; false: the connection is over. */
static int serve(struct client *c, int once)
{
	char *end;

	do {
		ssize_t n = read(c->fd, c->line + c->have, sizeof(c->line) - c->have);

		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			return 1;
		if (n <= 0)
			return 0;
		c->have += (size_t)n;
		while ((end = memchr(c->line, '\n', c->have))) {
			*end++ = 0;
			if (!answer(c->fd, c->line))
				return 0;
			c->have -= (size_t)(end - c->line);
			memmove(c->line, end, c->have);
		}
	} while (!once);
	return 1;
}

static void client_end(struct client *c)
{
	close(c->fd);
	free(c);
}

static struct client *client_accept(int flags)
{
	int fd = accept4(listener, NULL, NULL, flags);
	struct client *c = fd < 0 ? NULL : calloc(1, sizeof(*c));

	if (c)
		c->fd = fd;
	return c;
}

static void watch(int op, int fd, struct client *c, uint32_t events)
{
	struct epoll_event e = { .events = events, .data.ptr = c };

	must(!epoll_ctl(set, op, fd, &e), "epoll_ctl");
}

static void thread_make(void *(*run)(void *), void *with)
{
	pthread_t thread;

	must(!pthread_create(&thread, NULL, run, with), "pthread_create");
	pthread_detach(thread);
}

/* --- sockets ------------------------------------------------------------------------ */

static void *one_socket(void *with)
{
	while (serve(with, 1))
		;
	client_end(with);
	return NULL;
}

static void sockets(void)
{
	for (;;) {
		struct client *c = client_accept(0);

		if (c)
			thread_make(one_socket, c);
	}
}

/* --- edges -------------------------------------------------------------------------- */

#define EDGE	(EPOLLIN | EPOLLET | EPOLLONESHOT)

static void *edge_thread(void *unused)
{
	struct epoll_event e;
	struct client *c;

	while (epoll_wait(set, &e, 1, -1) == 1 || errno == EINTR) {
		c = e.data.ptr;
		if (!c) {
			while ((c = client_accept(SOCK_NONBLOCK)))
				watch(EPOLL_CTL_ADD, c->fd, c, EDGE);
			watch(EPOLL_CTL_MOD, listener, NULL, EDGE);
		} else if (serve(c, 0)) {
			watch(EPOLL_CTL_MOD, c->fd, c, EDGE);
		} else {
			client_end(c);
		}
	}
	return unused;
}

static void edges(void)
{
	watch(EPOLL_CTL_ADD, listener, NULL, EDGE);
	for (int i = 1; i < THREADS; i++)
		thread_make(edge_thread, NULL);
	edge_thread(NULL);
}

/* --- queue -------------------------------------------------------------------------- */

static pthread_mutex_t ready_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t ready_more = PTHREAD_COND_INITIALIZER;
static struct client *ready[READY];
static unsigned ready_first, ready_end;

static void *queue_thread(void *unused)
{
	struct client *c;

	for (;;) {
		pthread_mutex_lock(&ready_lock);
		while (ready_first == ready_end)
			pthread_cond_wait(&ready_more, &ready_lock);
		c = ready[ready_first++ % READY];
		pthread_mutex_unlock(&ready_lock);
		if (serve(c, 0))
			watch(EPOLL_CTL_MOD, c->fd, c, EPOLLIN | EPOLLONESHOT);
		else
			client_end(c);
	}
	return unused;
}

static void queue_put(struct client *c)
{
	pthread_mutex_lock(&ready_lock);
	ready[ready_end++ % READY] = c;
	pthread_cond_signal(&ready_more);
	pthread_mutex_unlock(&ready_lock);
}

static void queue(void)
{
	struct epoll_event e;
	struct client *c;

	watch(EPOLL_CTL_ADD, listener, NULL, EPOLLIN);
	for (int i = 0; i < THREADS; i++)
		thread_make(queue_thread, NULL);
	while (epoll_wait(set, &e, 1, -1) == 1 || errno == EINTR) {
		if (e.data.ptr)
			queue_put(e.data.ptr);
		else
			while ((c = client_accept(SOCK_NONBLOCK)))
				watch(EPOLL_CTL_ADD, c->fd, c, EPOLLIN | EPOLLONESHOT);
	}
}

/* --- programs ----------------------------------------------------------------------- */

static void ended(int sig)
{
	int was = errno, status;

	(void)sig;
	while (waitpid(-1, &status, WNOHANG) > 0)
		if (status) {	/* nobody is to be killed */
			dprintf(2, "a process ended with %#x\n", (unsigned)status);
			_exit(3);
		}
	errno = was;
}

/* Its helper does nothing, and is killed in the end; nobody waits for it. */
static void with_helper(struct client *c)
{
	pid_t helper;

	signal(SIGCHLD, SIG_DFL);
	helper = fork();
	must(helper >= 0, "fork");
	while (!helper)
		pause();
	while (serve(c, 1))
		;
	kill(helper, SIGTERM);
	exit(0);
}

static void one_program(struct client *c, char **argv, int again)
{
	char fd[16];
	char *args[] = { argv[0], argv[1], argv[2], fd, NULL };

	if (!strcmp(argv[2], "helpers"))
		with_helper(c);
	snprintf(fd, sizeof(fd), "%d", c->fd);
	if (again && program_fd >= 0)
		fexecve(program_fd, args, environ);
	else if (again)
		execv(argv[0], args);
	must(!again, "execve");
	while (serve(c, 1))
		;
	exit(0);
}

static void programs(char **argv)
{
	struct sigaction act = { .sa_handler = ended, .sa_flags = SA_RESTART | SA_NOCLDSTOP };

	must(!sigaction(SIGCHLD, &act, NULL), "sigaction");
	for (unsigned n = 0;; n++) {
		struct client *c = client_accept(0);
		pid_t pid = c ? fork() : 0;

		must(pid >= 0, "fork");
		if (c && !pid)
			one_program(c, argv, n % 2);
		if (c)
			client_end(c);
	}
}

int main(int argc, char **argv)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int one = 1, blocks;

	if (argc < 3)
		return 2;
	if (!strcmp(argv[2], "descriptors"))
		must((program_fd = open(argv[0], O_RDONLY | O_CLOEXEC)) >= 0, argv[0]);
	if (!strcmp(argv[2], "programs") || !strcmp(argv[2], "helpers") || program_fd >= 0)
		keys_fd = open("churn.keys", O_RDWR | O_CREAT, 0600);
	if (argc == 4) {
		struct client c = { .fd = atoi(argv[3]) };

		one_program(&c, argv, 0);
	}
	blocks = !strcmp(argv[2], "sockets") || keys_fd >= 0;
	a.sin_port = htons((uint16_t)atoi(argv[1]));
	signal(SIGPIPE, SIG_IGN);
	listener = socket(AF_INET, SOCK_STREAM | (blocks ? 0 : SOCK_NONBLOCK), 0);
	setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	must(!bind(listener, (struct sockaddr *)&a, sizeof(a)) && !listen(listener, 64), "listen");
	set = epoll_create1(0);
	if (keys_fd >= 0)
		programs(argv);
	else if (blocks)
		sockets();
	else if (!strcmp(argv[2], "edges"))
		edges();
	else
		queue();
	return 1;
}
