/*
 * The load for servers: an exact number of requests over a fixed number of
 * connections on loopback, each connection asking again as soon as it is
 * answered (a closed loop).  A row of protos[] is a protocol.
 *
 *	load PROTOCOL --port=N [--requests=N] [--connections=N] [--each=N]
 *	     [--rate=N] [--path=/x] [--files=N] [--bytes=N] [--keys=N]
 *	     [--gets=PERCENT]
 *
 * --each	a connection ends after so many requests, another begins
 * --rate	so many requests a second, whether those before are answered or
 *		not (an open loop); a request's time counts from when it was due
 * http		GET of --path by keep-alive; the body must be --bytes long, or
 *		with --bytes=0 as long as the reply says.  With --files the paths
 *		are --path with 0, 1, ... behind it, one after the other
 * memcached	--gets per cent get, the rest set, of --keys keys and values
 *		of --bytes; with --gets=0 the keys in order, to fill the server
 *
 * Every reply is checked; a wrong one ends the load with exit 1 and a word.
 * The clock starts when all connections stand.  Prints
 * "requests R seconds S p50_us X p99_us Y".
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define CONNECTIONS_MAX	1000
#define REQUESTS_MAX	100000000L
#define BYTES_MAX	8192
#define BUFFER_BYTES	(BYTES_MAX + 4096)
#define BODY_BYTES	(256 << 10)	/* are read at once */
#define QUIET_MS	15000	/* no reply for so long: the server hangs */

struct conn {
	int fd;
	int is_get;
	uint64_t asked_ns;
	long answers;
	size_t have;
	long left;		/* of a body, behind what is in `in` */
	char in[BUFFER_BYTES];
};

struct proto {
	const char *name;
	/* Writes the next request, at most BUFFER_BYTES; its length. */
	size_t (*ask)(struct conn *c, char *out);
	/* Length of the whole reply, also if more of it is to come than `in` can
	 * hold; 0 it is not known yet; -1 it is wrong. */
	long (*reply)(const struct conn *c);
};

static struct {
	const struct proto *proto;
	int port, connections, gets;
	long requests, keys, bytes, each, rate, files;
	const char *path;
} opt = {
	.connections = 50, .gets = 90, .requests = 10000, .keys = 1000,
	.bytes = 100, .path = "/",
};

static char value[BYTES_MAX];

static void fail(const char *what)
{
	fprintf(stderr, "load: %s: %s\n", what, strerror(errno));
	exit(3);
}

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/* http */

static size_t http_ask(struct conn *c, char *out)
{
	static long serial;
	char number[24] = "";

	(void)c;
	if (opt.files)
		snprintf(number, sizeof(number), "%ld", serial++ % opt.files);
	return (size_t)snprintf(out, BUFFER_BYTES,
				"GET %.2000s%s HTTP/1.1\r\nHost: localhost\r\n\r\n",
				opt.path, number);
}

static long http_reply(const struct conn *c)
{
	const char *end = memmem(c->in, c->have, "\r\n\r\n", 4);
	const char *length;
	long bytes;

	if (!end)
		return 0;
	length = strcasestr(c->in, "\r\nContent-Length:");
	if (strncmp(c->in, "HTTP/1.1 200", 12) || !length || length > end)
		return -1;
	bytes = atol(length + 17);
	return opt.bytes && bytes != opt.bytes ? -1 : end + 4 - c->in + bytes;
}

/* memcached */

static uint32_t next_random(void)
{
	static uint32_t state = 12345;

	state = state * 1664525u + 1013904223u;
	return state >> 8;
}

static size_t memcached_ask(struct conn *c, char *out)
{
	static long serial;
	const long key = (opt.gets ? (long)next_random() : serial++) % opt.keys;
	size_t len;

	c->is_get = (int)(next_random() % 100) < opt.gets;
	if (c->is_get)
		return (size_t)sprintf(out, "get key:%08ld\r\n", key);
	len = (size_t)sprintf(out, "set key:%08ld 0 0 %ld\r\n", key, opt.bytes);
	memcpy(out + len, value, (size_t)opt.bytes);
	memcpy(out + len + opt.bytes, "\r\n", 2);
	return len + (size_t)opt.bytes + 2;
}

static long memcached_reply(const struct conn *c)
{
	const char *line = memmem(c->in, c->have, "\r\n", 2);
	long key, bytes, total;

	if (!line)
		return 0;
	if (!c->is_get)
		return strncmp(c->in, "STORED\r\n", 8) ? -1 : 8;
	if (sscanf(c->in, "VALUE key:%ld 0 %ld", &key, &bytes) != 2 ||
	    bytes != opt.bytes)
		return -1;
	total = line + 2 - c->in + bytes + 7;	/* \r\nEND\r\n */
	if ((long)c->have < total)
		return 0;
	return memcmp(c->in + total - 7, "\r\nEND\r\n", 7) ? -1 : total;
}

static const struct proto protos[] = {
	{ "http", http_ask, http_reply },
	{ "memcached", memcached_ask, memcached_reply },
};

/* The loop */

static void conn_open(struct conn *c, int epoll)
{
	const struct sockaddr_in to = {
		.sin_family = AF_INET,
		.sin_port = htons((uint16_t)opt.port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	struct epoll_event ev = { .events = EPOLLIN, .data.ptr = c };
	const int one = 1;

	c->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (c->fd < 0 || connect(c->fd, (const void *)&to, sizeof(to)))
		fail("connect");
	setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	if (epoll_ctl(epoll, EPOLL_CTL_ADD, c->fd, &ev))
		fail("epoll_ctl");
}

static void conn_ask(struct conn *c, uint64_t due_ns)
{
	char out[BUFFER_BYTES];
	const size_t len = opt.proto->ask(c, out);

	c->asked_ns = due_ns ? due_ns : now_ns();
	if (send(c->fd, out, len, MSG_NOSIGNAL) != (ssize_t)len)
		fail("send");
}

static long conn_read(struct conn *c, char *to, size_t room)
{
	const ssize_t got = recv(c->fd, to, room, 0);

	if (got <= 0) {
		errno = got ? errno : ECONNRESET;
		fail("recv");
	}
	return got;
}

/* 1 when a whole reply has come. */
static int conn_hear(struct conn *c)
{
	static char rest[BODY_BYTES];
	long len;

	if (c->left) {
		c->left -= conn_read(c, rest, c->left < BODY_BYTES ? (size_t)c->left : BODY_BYTES);
		return !c->left;
	}
	c->have += (size_t)conn_read(c, c->in + c->have, BUFFER_BYTES - 1 - c->have);
	c->in[c->have] = 0;
	len = opt.proto->reply(c);
	if (len < 0 || (len && (size_t)len < c->have) ||
	    (!len && c->have == BUFFER_BYTES - 1)) {
		fprintf(stderr, "load: wrong reply: %.80s\n", c->in);
		exit(1);
	}
	if (!len)
		return 0;
	c->left = len - (long)c->have;
	c->have = 0;
	return !c->left;
}

struct drive {
	struct conn *idle[CONNECTIONS_MAX];
	int idles;
	long asked;
	uint64_t start_ns;
};

static uint64_t due_ns(const struct drive *d)
{
	return opt.rate ? d->start_ns + (uint64_t)d->asked * 1000000000u / (uint64_t)opt.rate : 0;
}

/* Those that are due, as long as a connection has nothing to do. */
static void ask_due(struct drive *d)
{
	while (d->idles && d->asked < opt.requests && due_ns(d) <= now_ns()) {
		conn_ask(d->idle[--d->idles], due_ns(d));
		d->asked++;
	}
}

static int wait_for(const struct drive *d, int epoll, struct epoll_event *ev, int most)
{
	struct timespec ts = { QUIET_MS / 1000, 0 };
	uint64_t now = now_ns(), due = d->idles && d->asked < opt.requests ? due_ns(d) : 0;
	int n;

	if (due)
		ts = (struct timespec){ 0, due > now ? (long)(due - now) % 1000000000 : 0 };
	n = epoll_pwait2(epoll, ev, most, &ts, NULL);
	if (n < 0 || (!n && !due)) {
		errno = n ? errno : ETIMEDOUT;
		fail("waiting for replies");
	}
	return n;
}

static void drive(struct conn *conns, int epoll, uint32_t *took_ns)
{
	static struct drive d;
	long heard = 0;

	for (int i = opt.connections; i--;)
		d.idle[d.idles++] = &conns[i];
	d.start_ns = now_ns();
	while (heard < opt.requests) {
		struct epoll_event ev[64];
		int n;

		ask_due(&d);
		n = wait_for(&d, epoll, ev, 64);
		for (int i = 0; i < n; i++) {
			struct conn *c = ev[i].data.ptr;

			if (!conn_hear(c))
				continue;
			took_ns[heard++] = (uint32_t)(now_ns() - c->asked_ns);
			if (opt.each && ++c->answers % opt.each == 0) {
				close(c->fd);
				conn_open(c, epoll);
			}
			d.idle[d.idles++] = c;
		}
	}
}

static int by_size(const void *a, const void *b)
{
	const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return x < y ? -1 : x > y;
}

static int usage(void)
{
	fprintf(stderr, "usage: load http|memcached --port=N [--requests=N]"
		" [--connections=N]\n\t[--each=N] [--rate=N] [--path=/x] [--files=N]"
		" [--bytes=N] [--keys=N]\n\t[--gets=PERCENT]\n");
	return 2;
}

static int parse_option(const char *arg)
{
	const char *is = strchr(arg, '=');
	const size_t len = is ? (size_t)(is - arg) : 0;

#define NAMED(name) (len == strlen("--" name) && !strncmp(arg, "--" name, len))
	if (NAMED("port"))
		opt.port = atoi(is + 1);
	else if (NAMED("requests"))
		opt.requests = atol(is + 1);
	else if (NAMED("connections"))
		opt.connections = atoi(is + 1);
	else if (NAMED("path"))
		opt.path = is + 1;
	else if (NAMED("bytes"))
		opt.bytes = atol(is + 1);
	else if (NAMED("keys"))
		opt.keys = atol(is + 1);
	else if (NAMED("each"))
		opt.each = atol(is + 1);
	else if (NAMED("rate"))
		opt.rate = atol(is + 1);
	else if (NAMED("files"))
		opt.files = atol(is + 1);
	else if (NAMED("gets"))
		opt.gets = atoi(is + 1);
	else
		return 0;
#undef NAMED
	return 1;
}

static int parse(int argc, char **argv)
{
	for (size_t i = 0; i < sizeof(protos) / sizeof(protos[0]); i++)
		if (argc > 1 && !strcmp(argv[1], protos[i].name))
			opt.proto = &protos[i];
	for (int i = 2; i < argc; i++)
		if (!parse_option(argv[i]))
			return 0;
	return opt.proto && opt.port > 0 && opt.port < 65536 &&
	       opt.requests > 0 && opt.requests <= REQUESTS_MAX &&
	       opt.connections > 0 && opt.connections <= CONNECTIONS_MAX &&
	       opt.each >= 0 && opt.rate >= 0 && opt.rate <= 10000000 && opt.files >= 0 &&
	       opt.bytes >= 0 && opt.bytes <= BYTES_MAX && opt.keys > 0 &&
	       opt.keys <= 100000000L;
}

int main(int argc, char **argv)
{
	struct conn *conns;
	uint32_t *took_ns;
	uint64_t start, end;
	int epoll;

	if (!parse(argc, argv))
		return usage();
	memset(value, 'v', sizeof(value));
	epoll = epoll_create1(EPOLL_CLOEXEC);
	conns = calloc((size_t)opt.connections, sizeof(*conns));
	took_ns = calloc((size_t)opt.requests, sizeof(*took_ns));
	if (epoll < 0 || !conns || !took_ns)
		fail("start");
	for (int i = 0; i < opt.connections; i++)
		conn_open(&conns[i], epoll);
	start = now_ns();
	drive(conns, epoll, took_ns);
	end = now_ns();
	qsort(took_ns, (size_t)opt.requests, sizeof(*took_ns), by_size);
	printf("requests %ld seconds %.6f p50_us %.1f p99_us %.1f\n",
	       opt.requests, (double)(end - start) / 1e9,
	       took_ns[opt.requests / 2] / 1e3,
	       took_ns[opt.requests * 99 / 100] / 1e3);
	return 0;
}
