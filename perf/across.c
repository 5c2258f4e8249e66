/*
 * The load across a change of the server: connections on loopback that ask for one value after
 * the other, each as soon as it is answered, until standard input ends.  A connection that is
 * lost is counted, and tried again each millisecond.
 *
 *	across redis|memcached --port=N [--connections=N] [--keys=N] [--every=MS]
 *
 * Prints "begun S" as soon as all stand (of CLOCK_MONOTONIC), at its end the answers in each
 * --every, a line each, and then
 * "lost N missing N refused N longest_ms N": connections, values that were not there (an answer,
 * too), answers that were none, and the longest time in which nobody had one.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define CONNECTIONS_MAX	1000
#define SPANS_MAX	100000
#define LINE_BYTES	512
#define QUIET_S		100	/* no reply for so long: the server hangs */

enum answer { ANSWER_VALUE, ANSWER_MISSING, ANSWER_REFUSED };

struct user {
	FILE *file;
	uint32_t random;
	char line[LINE_BYTES];
};

struct proto {
	const char *name;
	const char *ask;	/* a key */
	const char *value;	/* how the line before a value begins, ... */
	int bytes_word;		/* ... which of its words is how long that is, */
	int more;		/* what is behind it, */
	const char *missing;	/* and the line where there is none */
};

static const struct proto protos[] = {
	{ "redis", "GET key:%ld\r\n", "$", 0, 2, "$-1\r\n" },
	{ "memcached", "get key:%08ld\r\n", "VALUE ", 3, 7, "END\r\n" },
};

static struct {
	const struct proto *proto;
	int port, connections;
	long keys, every_ms;
} opt = { .connections = 50, .keys = 1000, .every_ms = 10 };

static pthread_barrier_t all_in;
static atomic_int over;
static _Atomic uint64_t last_ns, longest_ns;
static uint64_t begun_ns;
static atomic_long answers[SPANS_MAX], lost, missing, refused;

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static int user_connect(struct user *u)
{
	const struct sockaddr_in to = {
		.sin_family = AF_INET,
		.sin_port = htons((uint16_t)opt.port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	const struct timeval quiet = { QUIET_S, 0 };
	const int one = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &quiet, sizeof(quiet));
	if (fd < 0 || connect(fd, (const void *)&to, sizeof(to))) {
		if (fd >= 0)
			close(fd);
		return 0;
	}
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	u->file = fdopen(fd, "r");
	return u->file != NULL;
}

static void user_stand(struct user *u)
{
	const struct timespec a_while = { 0, 1000000 };

	while (!over && !user_connect(u))
		nanosleep(&a_while, NULL);
}

static int skip(struct user *u, long bytes)
{
	while (bytes > 0) {
		const size_t part = bytes < LINE_BYTES ? (size_t)bytes : LINE_BYTES;

		if (fread(u->line, 1, part, u->file) != part)
			return -1;
		bytes -= (long)part;
	}
	return ANSWER_VALUE;
}

/* How long the value is that this line announces. */
static long value_bytes(const char *line)
{
	const char *at = line + strlen(opt.proto->value) - 1;

	for (int word = 1; word < opt.proto->bytes_word; word++)
		at = strchr(at + 1, ' ') ?: at;
	return atol(at + 1);
}

/* Which answer; less than 0: the connection is lost. */
static int user_ask(struct user *u)
{
	const struct proto *p = opt.proto;
	char out[64];
	int len;

	u->random = u->random * 1664525u + 1013904223u;
	len = snprintf(out, sizeof(out), p->ask, (long)(u->random >> 8) % opt.keys);
	if (send(fileno(u->file), out, (size_t)len, MSG_NOSIGNAL) != len ||
	    !fgets(u->line, sizeof(u->line), u->file))
		return -1;
	if (!strcmp(u->line, p->missing))
		return ANSWER_MISSING;
	if (strncmp(u->line, p->value, strlen(p->value)))
		return ANSWER_REFUSED;
	return skip(u, value_bytes(u->line) + p->more);
}

static void count_answer(void)
{
	const uint64_t now = now_ns();
	const uint64_t gap = now - atomic_exchange(&last_ns, now);
	const uint64_t span = (now - begun_ns) / 1000000u / (uint64_t)opt.every_ms;
	uint64_t most = longest_ns;

	answers[span < SPANS_MAX ? span : SPANS_MAX - 1]++;
	/* Of two that count at once one may be ahead: that is no gap. */
	while ((int64_t)gap > 0 && gap > most &&
	       !atomic_compare_exchange_weak(&longest_ns, &most, gap))
		;
}

static void user_turn(struct user *u)
{
	const int answer = user_ask(u);

	if (answer < 0) {
		lost++;
		fclose(u->file);
		u->file = NULL;
		user_stand(u);
	} else if (answer == ANSWER_REFUSED) {
		refused++;
	} else {
		missing += answer == ANSWER_MISSING;
		count_answer();
	}
}

static void *user_run(void *arg)
{
	struct user *u = arg;

	user_stand(u);
	pthread_barrier_wait(&all_in);
	pthread_barrier_wait(&all_in);	/* it is said when all began */
	while (!over && u->file)
		user_turn(u);
	return NULL;
}

static int parse_option(const char *arg)
{
	const char *is = strchr(arg, '=');
	const size_t len = is ? (size_t)(is - arg) : 0;

#define NAMED(name) (len == strlen("--" name) && !strncmp(arg, "--" name, len))
	if (NAMED("port"))
		opt.port = atoi(is + 1);
	else if (NAMED("connections"))
		opt.connections = atoi(is + 1);
	else if (NAMED("keys"))
		opt.keys = atol(is + 1);
	else if (NAMED("every"))
		opt.every_ms = atol(is + 1);
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
	return opt.proto && opt.port > 0 && opt.port < 65536 && opt.connections > 0 &&
	       opt.connections <= CONNECTIONS_MAX && opt.keys > 0 && opt.every_ms > 0;
}

static void report(void)
{
	const uint64_t spans = (last_ns - begun_ns) / 1000000u / (uint64_t)opt.every_ms + 1;

	for (uint64_t i = 0; i < spans && i < SPANS_MAX; i++)
		printf("%ld\n", answers[i]);
	printf("lost %ld missing %ld refused %ld longest_ms %.3f\n", lost, missing, refused,
	       (double)longest_ns / 1e6);
}

static void all_begin(void)
{
	pthread_barrier_wait(&all_in);
	begun_ns = last_ns = now_ns();
	printf("begun %.6f\n", (double)begun_ns / 1e9);
	fflush(stdout);
	pthread_barrier_wait(&all_in);
}

int main(int argc, char **argv)
{
	static struct user users[CONNECTIONS_MAX];
	static pthread_t threads[CONNECTIONS_MAX];

	if (!parse(argc, argv)) {
		fprintf(stderr, "usage: across redis|memcached --port=N [--connections=N]"
			" [--keys=N] [--every=MS]\n");
		return 2;
	}
	pthread_barrier_init(&all_in, NULL, (unsigned int)opt.connections + 1);
	for (int i = 0; i < opt.connections; i++) {
		users[i].random = (uint32_t)i * 2654435761u;
		if (pthread_create(&threads[i], NULL, user_run, &users[i])) {
			fprintf(stderr, "across: no thread\n");
			return 3;
		}
	}
	all_begin();
	while (getchar() != EOF)
		;
	over = 1;
	for (int i = 0; i < opt.connections; i++)
		pthread_join(threads[i], NULL);
	report();
	return 0;
}
