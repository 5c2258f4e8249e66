/*
 * kinds PORT THREADS HANDLER ID: a key-value server with several threads, for the kinds of
 * death of kinds.py.  It speaks what load.py's Kv speaks, and
 *
 *	DIE KIND ID	dies of it if this is its ID, else says that it does not
 *
 * HANDLER, of the deadly signals: none; or what it ends with, behind a stack that it prints
 * and 300 ms: return, raise, exit; daemon: none, and it is one; reset: it is for one time (SA_RESETHAND), and returns.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define THREADS	128
#define KEYS	4096
#define LINE	512

struct client {
	int fd;
	size_t len;
	char in[LINE];
};

static struct worker {
	int epoll, bell[2];
	pthread_t thread;
} worker[THREADS];

static int threads;
static const char *ending, *id;
static char values[KEYS][64];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void must(bool ok, const char *what)
{
	if (ok)
		return;
	perror(what);
	exit(1);
}

/* --- dying -------------------------------------------------------------------------- */

static void fault(void)
{
	*(volatile int *)16 = 0;
}

/* A sanitizer sees it first. */
static void freed(void)
{
	int *volatile block = malloc(100);

	free(block);
	*(volatile int *)block = 1;
	fault();
}

static void jump(void)
{
	((void (*)(void))(uintptr_t)0x123456789000)();
}

/* Every version rings: what differs is what its threads do then. */
static void ring_all(const char *who)
{
	for (int i = 0; i < threads; i++)
		must(write(worker[i].bell[1], who, 1) == 1, "write");
}

static int fault_in_child(void *who)
{
	if (!strcmp(id, who))
		fault();
	return 0;
}

/* Every version has a child that shares the memory; how that ends is told to nobody. */
static void clone_vm(const char *who)
{
	static char stack[65536];
	int status;
	pid_t child = clone(fault_in_child, stack + sizeof(stack), CLONE_VM | SIGCHLD, (void *)who);

	must(child > 0, "clone");
	must(waitpid(child, &status, 0) == child, "waitpid");
}

static void own_kill(void)
{
	kill(getpid(), SIGSEGV);
}

static void own_tgkill(void)
{
	syscall(SYS_tgkill, getpid(), gettid(), SIGBUS);
}

static void own_raise(void)
{
	raise(SIGABRT);
}

static void own_queue(void)
{
	sigqueue(getpid(), SIGILL, (union sigval){ 0 });
}

static void own_blocked(void)
{
	sigset_t set, was;

	sigfillset(&set);
	pthread_sigmask(SIG_BLOCK, &set, &was);
	pthread_kill(pthread_self(), SIGFPE);
	pthread_sigmask(SIG_SETMASK, &was, NULL);
}

static const struct kind { const char *name; void (*die)(void); } kinds[] = {
	{ "thread", fault }, { "freed", freed },
	{ "jump", jump }, { "abort", abort },
	{ "kill", own_kill }, { "tgkill", own_tgkill }, { "raise", own_raise },
	{ "queue", own_queue }, { "blocked", own_blocked },
};

static void last_words(int sig)
{
	struct timespec rest = { 0, 300000000 };
	void *frame[32];
	char text[4096];
	ssize_t n;
	int fd = open("/proc/self/maps", O_RDONLY);

	dprintf(2, "kinds: %d in thread %d\n", sig, gettid());
	backtrace_symbols_fd(frame, backtrace(frame, 32), 2);
	while ((n = read(fd, text, sizeof(text))) > 0)
		must(write(2, text, n > 100 ? 100 : (size_t)n) > 0, "write");
	close(fd);
	nanosleep(&rest, NULL);
	if (!strcmp(ending, "exit"))
		_exit(66);
	signal(sig, SIG_DFL);
	if (!strcmp(ending, "raise"))
		raise(sig);
}

static void handlers_set(void)
{
	static const int deadly[] = { SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT };
	struct sigaction a = { .sa_handler = last_words, .sa_flags = SA_NODEFER };
	void *frame[1];

	if (!strcmp(ending, "none"))
		return;
	if (!strcmp(ending, "reset"))
		a.sa_flags |= SA_RESETHAND;
	backtrace(frame, 1);	/* it loads a library */
	for (size_t i = 0; i < sizeof(deadly) / sizeof(deadly[0]); i++)
		sigaction(deadly[i], &a, NULL);
}

/* --- serving ------------------------------------------------------------------------- */

static const char *die(const char *name, const char *who)
{
	if (!strcmp(name, "threads"))
		ring_all(who);
	if (!strcmp(name, "clone"))
		clone_vm(who);
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (!strcmp(kinds[i].name, name) && !strcmp(id, who))
			kinds[i].die();
	return "LIVES\n";
}

static char *value_of(const char *key)
{
	unsigned n = (unsigned)strtoul(key + strcspn(key, "0123456789"), NULL, 10);

	return values[n % KEYS];
}

static int answer(char *line, char *out)
{
	char *rest, *verb = strtok_r(line, " ", &rest), *key = strtok_r(NULL, " ", &rest);
	char *value = strtok_r(NULL, " ", &rest);
	int n;

	if (verb && key && value && !strcmp(verb, "DIE"))
		return sprintf(out, "%s", die(key, value));
	if (!verb || !key || strlen(verb) != 3)
		return sprintf(out, "ERROR unknown request\n");
	pthread_mutex_lock(&lock);
	if (value)
		snprintf(value_of(key), sizeof(values[0]), "%s", value);
	n = value ? sprintf(out, "OK\n") : sprintf(out, "VALUE %s\n", value_of(key));
	pthread_mutex_unlock(&lock);
	return n;
}

static bool client_serve(struct client *c)
{
	ssize_t n = recv(c->fd, c->in + c->len, LINE - c->len, 0);
	char out[LINE], *end;

	if (n <= 0)
		return n < 0 && errno == EAGAIN;
	c->len += (size_t)n;
	while ((end = memchr(c->in, '\n', c->len))) {
		*end++ = 0;
		n = answer(c->in, out);
		must(send(c->fd, out, (size_t)n, MSG_NOSIGNAL) == n || errno == EPIPE ||
		     errno == ECONNRESET, "send");
		c->len -= (size_t)(end - c->in);
		memmove(c->in, end, c->len);
	}
	return c->len < LINE;
}

static void rung(struct worker *w)
{
	char byte;

	must(read(w->bell[0], &byte, 1) == 1, "read");
	if (byte == *id)
		fault();
}

static void *work(void *arg)
{
	struct worker *w = arg;
	struct epoll_event e;

	for (;;) {
		struct client *c;

		if (epoll_wait(w->epoll, &e, 1, -1) < 1)
			continue;
		c = e.data.ptr;
		if (!c) {
			rung(w);
		} else if (!client_serve(c)) {
			/* A child may have it open, too: closing is not enough. */
			epoll_ctl(w->epoll, EPOLL_CTL_DEL, c->fd, NULL);
			close(c->fd);
			free(c);
		}
	}
	return NULL;
}

static void watch(int epoll, int fd, void *who)
{
	struct epoll_event e = { .events = EPOLLIN, .data.ptr = who };

	must(!epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &e), "epoll_ctl");
}

static void workers_start(void)
{
	for (int i = 0; i < threads; i++) {
		struct worker *w = &worker[i];

		w->epoll = epoll_create1(0);
		must(!pipe(w->bell), "pipe");
		watch(w->epoll, w->bell[0], NULL);
		must(!pthread_create(&w->thread, NULL, work, w), "pthread_create");
	}
}

int main(int argc, char **argv)
{
	struct sockaddr_in at = { .sin_family = AF_INET,
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int listening = socket(AF_INET, SOCK_STREAM, 0), on = 1;

	if (argc != 5)
		return 2;
	at.sin_port = htons((uint16_t)atoi(argv[1]));
	threads = atoi(argv[2]);
	ending = argv[3];
	if (!strcmp(ending, "daemon")) {
		ending = "none";
		if (fork())
			_exit(0);
		setsid();
	}
	id = argv[4];
	must(threads > 0 && threads <= THREADS, "threads");
	setsockopt(listening, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	must(!bind(listening, (void *)&at, sizeof(at)) && !listen(listening, 128), "listen");
	handlers_set();
	workers_start();
	for (unsigned n = 0;; n++) {
		int fd = accept4(listening, NULL, NULL, SOCK_NONBLOCK);
		struct client *c = calloc(1, sizeof(*c));

		must(fd >= 0 && c, "accept");
		c->fd = fd;
		watch(worker[n % (unsigned)threads].epoll, fd, c);
	}
}
