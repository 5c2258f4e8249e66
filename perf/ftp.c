/*
 * The load for vsftpd: anonymous logins, each of which fetches one file again
 * and again, every time over a new passive data connection.
 *
 *	ftp --port=N --path=FILE --bytes=N [--requests=N] [--connections=N]
 *	    [--stay]
 *
 * Every file must be --bytes long.  The clock starts when all are logged in.
 * Prints "requests R seconds S p50_us X p99_us Y"; with --stay the connections
 * stand until standard input ends, so that the server's processes can be looked
 * at before they go.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define CONNECTIONS_MAX	100
#define REQUESTS_MAX	10000000L
#define QUIET_S		15	/* no reply for so long: the server hangs */

static struct {
	int port, connections, stay;
	long requests, bytes;
	const char *path;
} opt = { .connections = 4, .requests = 1000, .path = "file" };

static pthread_barrier_t all_in;
static uint32_t *took_ns;

struct user {
	pthread_t thread;
	int fd, number;
	size_t have;
	char in[2048];
};

static void fail(const char *what)
{
	fprintf(stderr, "ftp: %s: %s\n", what, strerror(errno));
	exit(3);
}

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static int connect_to(int port)
{
	const struct sockaddr_in to = {
		.sin_family = AF_INET,
		.sin_port = htons((uint16_t)port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	const struct timeval quiet = { QUIET_S, 0 };
	const int one = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &quiet, sizeof(quiet));
	if (fd < 0 || connect(fd, (const void *)&to, sizeof(to)))
		fail("connect");
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	return fd;
}

/* The next line of the control connection must begin with the code. */
static void expect(struct user *u, const char *code, char line[200])
{
	char *end;
	size_t len;

	while (!(end = memchr(u->in, '\n', u->have))) {
		const ssize_t got = recv(u->fd, u->in + u->have, sizeof(u->in) - u->have, 0);

		if (got <= 0)
			fail("recv");
		u->have += (size_t)got;
	}
	*end = 0;
	len = (size_t)(end + 1 - u->in);
	snprintf(line, 200, "%.199s", u->in);
	memmove(u->in, end + 1, u->have -= len);
	if (strncmp(line, code, strlen(code))) {
		fprintf(stderr, "ftp: wrong reply: %.80s\n", line);
		exit(1);
	}
}

static void say(struct user *u, const char *words)
{
	if (send(u->fd, words, strlen(words), MSG_NOSIGNAL) != (ssize_t)strlen(words))
		fail("send");
}

static void log_in(struct user *u)
{
	char line[200];

	u->fd = connect_to(opt.port);
	expect(u, "220", line);
	say(u, "USER anonymous\r\n");
	do {
		expect(u, "", line);
		if (!strncmp(line, "331", 3))
			say(u, "PASS x\r\n");
	} while (strncmp(line, "230", 3));
	say(u, "TYPE I\r\n");
	expect(u, "200", line);
}

static void fetch(struct user *u)
{
	static __thread char data[1 << 16];
	char line[200], ask[200];
	int high, low, fd;
	long total = 0;
	ssize_t got;

	say(u, "PASV\r\n");
	expect(u, "227", line);
	if (!strchr(line, '(') || sscanf(strchr(line, '('), "(%*d,%*d,%*d,%*d,%d,%d", &high,
					 &low) != 2)
		fail("PASV");
	fd = connect_to(high * 256 + low);
	snprintf(ask, sizeof(ask), "RETR %s\r\n", opt.path);
	say(u, ask);
	expect(u, "150", line);
	while ((got = recv(fd, data, sizeof(data), 0)) > 0)
		total += got;
	close(fd);
	expect(u, "226", line);
	if (total != opt.bytes) {
		fprintf(stderr, "ftp: wrong length: %ld\n", total);
		exit(1);
	}
}

static void *user_run(void *arg)
{
	struct user *u = arg;

	log_in(u);
	pthread_barrier_wait(&all_in);
	for (long i = u->number; i < opt.requests; i += opt.connections) {
		const uint64_t asked = now_ns();

		fetch(u);
		took_ns[i] = (uint32_t)(now_ns() - asked);
	}
	return NULL;
}

static int by_size(const void *a, const void *b)
{
	const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return x < y ? -1 : x > y;
}

static int parse_option(const char *arg)
{
	const char *is = strchr(arg, '=');
	const size_t len = is ? (size_t)(is - arg) : 0;

	if (!strcmp(arg, "--stay"))
		return opt.stay = 1;
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
	else
		return 0;
#undef NAMED
	return 1;
}

static int parse(int argc, char **argv)
{
	for (int i = 1; i < argc; i++)
		if (!parse_option(argv[i]))
			return 0;
	return opt.port > 0 && opt.port < 65536 && opt.requests > 0 &&
	       opt.requests <= REQUESTS_MAX && opt.connections > 0 &&
	       opt.connections <= CONNECTIONS_MAX;
}

static void report(double seconds)
{
	qsort(took_ns, (size_t)opt.requests, sizeof(*took_ns), by_size);
	printf("requests %ld seconds %.6f p50_us %.1f p99_us %.1f\n", opt.requests, seconds,
	       took_ns[opt.requests / 2] / 1e3, took_ns[opt.requests * 99 / 100] / 1e3);
	fflush(stdout);
}

int main(int argc, char **argv)
{
	static struct user users[CONNECTIONS_MAX];
	uint64_t start;

	if (!parse(argc, argv)) {
		fprintf(stderr, "usage: ftp --port=N --path=FILE --bytes=N [--requests=N]"
			" [--connections=N] [--stay]\n");
		return 2;
	}
	took_ns = calloc((size_t)opt.requests, sizeof(*took_ns));
	if (!took_ns)
		fail("start");
	pthread_barrier_init(&all_in, NULL, (unsigned int)opt.connections + 1);
	for (int i = 0; i < opt.connections; i++) {
		users[i].number = i;
		if (pthread_create(&users[i].thread, NULL, user_run, &users[i]))
			fail("pthread_create");
	}
	pthread_barrier_wait(&all_in);
	start = now_ns();
	for (int i = 0; i < opt.connections; i++)
		pthread_join(users[i].thread, NULL);
	report((double)(now_ns() - start) / 1e9);
	while (opt.stay && getchar() != EOF)
		;
	return 0;
}
