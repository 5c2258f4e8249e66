/*
 * kv, version 1: a small key-value server, for demonstrations and tests.
 *
 *	kv-v1 PORT	serves 127.0.0.1; with PORT 0 the kernel picks one
 *
 * The first line of its output is "kv: ready on port N".  A request and its
 * reply are a line each:
 *
 *	PUT key value	OK
 *	GET key		VALUE value, or NONE
 *	anything else	ERROR and why
 *
 * One thread, one epoll set, and all memory has its place from the beginning
 * but the clients' buffers.  A client's next request is looked at only when its
 * last reply has gone, so one that never reads stops nobody else.  SIGTERM and
 * SIGINT end the server with status 0.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

#define PAIRS		4096	/* one more key is refused */
#define LINE_SIZE	512	/* a request with its newline */
#define KEY_SIZE	64
#define REPLY_SIZE	(LINE_SIZE + 16)
#define EVENTS		64

struct pair {
	char key[KEY_SIZE];	/* "": free */
	char value[LINE_SIZE];
};

struct client {
	int fd;
	bool writing;		/* waits until its reply can go on */
	size_t in_len, out_len;
	char in[LINE_SIZE], out[REPLY_SIZE];
};

static struct pair store[PAIRS];
static int poll_fd;

/* The pair of a key, or the free one where it belongs; NULL: full. */
static struct pair *store_find(const char *key)
{
	unsigned hash = 5381;

	for (const char *c = key; *c; c++)
		hash = hash * 33 + (unsigned char)*c;
	for (unsigned i = 0; i < PAIRS; i++) {
		struct pair *p = &store[(hash + i) % PAIRS];

		if (!*p->key || !strcmp(p->key, key))
			return p;
	}
	return NULL;
}

/* --- requests ------------------------------------------------------------------ */

static int put(const char *key, const char *value, char *out)
{
	struct pair *p;

	if (!value || strlen(key) >= KEY_SIZE)
		return sprintf(out, "ERROR usage: PUT key value\n");
	p = store_find(key);
	if (!p)
		return sprintf(out, "ERROR full\n");
	strcpy(p->key, key);
	strcpy(p->value, value);	/* no longer than the line it came in */
	return sprintf(out, "OK\n");
}

static int get(const char *key, const char *value, char *out)
{
	struct pair *p = store_find(key);

	if (value)
		return sprintf(out, "ERROR usage: GET key\n");
	if (!p || !*p->key)
		return sprintf(out, "NONE\n");
	return sprintf(out, "VALUE %s\n", p->value);
}

/* What tests build into one version, and not into another. */
#ifdef KV_OTHER
#define OTHER	"OTHER"
#else
#define OTHER	"\n"	/* never a word */
#endif

static void plant(const char *verb)
{
#ifdef KV_CRASH
	if (!strcmp(verb, "CRASH"))
		*(volatile int *)16 = 0;
#endif
#ifdef KV_ABORT
	if (!strcmp(verb, "ABORT"))
		abort();
#endif
#ifdef KV_EXIT
	if (!strcmp(verb, "EXIT"))
		exit(3);
#endif
#ifdef KV_HANG
	while (!strcmp(verb, "HANG"))
#ifdef KV_MAPS
		munmap(mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), 4096)
#endif
		;
#endif
#ifdef KV_EXTRA
	if (!strcmp(verb, "EXTRA"))
		fputs("kv: extra\n", stderr);
#endif
	(void)verb;
}

/* Writes the reply to one line, at most REPLY_SIZE; its length. */
static int answer(char *line, char *out)
{
	char *verb = strtok(line, " \r"), *key = strtok(NULL, " \r");
	char *value = key ? strtok(NULL, "\r") : NULL;

	plant(verb ? verb : "");
	if (verb && !strcmp(verb, OTHER))
		return sprintf(out, "OTHER\n");
	if (verb && key && !strcmp(verb, "PUT"))
		return put(key, value, out);
	if (verb && key && !strcmp(verb, "GET"))
		return get(key, value, out);
	return sprintf(out, "ERROR unknown request\n");
}

/* --- clients --------------------------------------------------------------------- */

/* Takes one line out of what has come; false when there is none. */
static bool client_answer(struct client *c)
{
	char *end = memchr(c->in, '\n', c->in_len);

	if (!end)
		return false;
	*end++ = 0;
	c->out_len = (size_t)answer(c->in, c->out);
	c->in_len -= (size_t)(end - c->in);
	memmove(c->in, end, c->in_len);
	return true;
}

static bool client_write(struct client *c)
{
	ssize_t n = send(c->fd, c->out, c->out_len, MSG_NOSIGNAL);

	if (n < 0)
		return errno == EAGAIN;
	c->out_len -= (size_t)n;
	memmove(c->out, c->out + n, c->out_len);
	return true;
}

/* Waits for the client to read when a reply is stuck, else for a request. */
static bool client_wait(struct client *c)
{
	bool writing = c->out_len > 0;
	struct epoll_event want = { .events = writing ? EPOLLOUT : EPOLLIN, .data.ptr = c };

	if (writing == c->writing)
		return true;
	c->writing = writing;
	return epoll_ctl(poll_fd, EPOLL_CTL_MOD, c->fd, &want) == 0;
}

/* False when the client is done: it closed, failed, or sent too long a line. */
static bool client_serve(struct client *c)
{
	ssize_t n;

	if (!c->out_len) {
		n = recv(c->fd, c->in + c->in_len, LINE_SIZE - c->in_len, 0);
		if (n <= 0)
			return n < 0 && errno == EAGAIN;
		c->in_len += (size_t)n;
	}
	while (c->out_len || client_answer(c)) {
		if (!client_write(c))
			return false;
		if (c->out_len)
			break;
	}
	return (c->out_len || c->in_len < LINE_SIZE) && client_wait(c);
}

static void client_close(struct client *c)
{
	close(c->fd);
	free(c);
}

static void client_accept(int listening)
{
	int fd = accept4(listening, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	struct client *c = fd < 0 ? NULL : calloc(1, sizeof(*c));
	struct epoll_event want = { .events = EPOLLIN, .data.ptr = c };

	if (c) {
		c->fd = fd;
		if (epoll_ctl(poll_fd, EPOLL_CTL_ADD, fd, &want) < 0)
			client_close(c);
	} else if (fd >= 0) {
		close(fd);
	}
}

/* --- the server -------------------------------------------------------------------- */

static int listen_on(uint16_t port)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_port = htons(port),
				 .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), on = 1;
	socklen_t len = sizeof(a);

	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (bind(fd, (struct sockaddr *)&a, len) < 0 || listen(fd, 64) < 0 ||
	    getsockname(fd, (struct sockaddr *)&a, &len) < 0)
		return -1;
	printf("kv: ready on port %d\n", ntohs(a.sin_port));
	fflush(stdout);
	return fd;
}

/* A descriptor that is ready when the server is to end. */
static int stop_open(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigprocmask(SIG_BLOCK, &set, NULL);
	return signalfd(-1, &set, SFD_CLOEXEC);
}

/* Their events carry the address of the descriptor, a client's the client. */
static void serve(int listening, int stopping)
{
	struct epoll_event event[EVENTS];
	struct epoll_event stop = { .events = EPOLLIN, .data.ptr = &stopping };
	struct epoll_event come = { .events = EPOLLIN, .data.ptr = &listening };

	epoll_ctl(poll_fd, EPOLL_CTL_ADD, stopping, &stop);
	epoll_ctl(poll_fd, EPOLL_CTL_ADD, listening, &come);
	for (;;) {
		int n = epoll_wait(poll_fd, event, EVENTS, -1);

		for (int i = 0; i < n; i++) {
			void *who = event[i].data.ptr;

			if (who == &stopping)
				return;
			if (who == &listening)
				client_accept(listening);
			else if (!client_serve(who))
				client_close(who);
		}
	}
}

int main(int argc, char **argv)
{
	char *end;
	unsigned long port = argc == 2 ? strtoul(argv[1], &end, 10) : ~0ul;
	int listening, stopping;

	if (port > UINT16_MAX || *end || end == argv[1]) {
		fputs("usage: kv-v1 PORT\n", stderr);
		return 2;
	}
	poll_fd = epoll_create1(EPOLL_CLOEXEC);
	stopping = stop_open();
	listening = listen_on((uint16_t)port);
	if (poll_fd < 0 || stopping < 0 || listening < 0) {
		fprintf(stderr, "kv: cannot serve port %lu: %s\n", port, strerror(errno));
		return 1;
	}
	serve(listening, stopping);
	puts("kv: ended");
	return 0;
}
