/*
 * seam_server HOW: a server with bugs, for seam.py.  A loop over its connections; what they have
 * told it is in its globals, its heap and in libc.  It prints its port.  A request is a line:
 *
 *	add N		keeps N in a list; the answer: how many there are, their sum, and what
 *			libc's rand() gives, as "5 15 1804289383"
 *	NAME		does what add does to all of them, and the wrong thing that NAME is
 *
 * HOW	first		the loop is the first thread's
 *	second		it is a second one's
 *	standing	another thread waits for work that never comes
 *	running		another thread never stops
 *	humble		if it is root's, it has given up its rights, and sees nothing of /proc
 *	moved		it knows each connection by another number than it was accepted with, and
 *			has bounded its memory to what it needs; and is a child that libc
 *			has not made, of one that has had a request
 *	regains		it is a child of one that has given up its rights, and takes them again
 *	handles		it has handlers for its crashes
 *	bare		it has closed what it was given: connections are descriptors 0, 1, 2
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

struct kept {
	struct kept *next;
	long number;
	char text[40];
};

struct peer {
	int fd;
	size_t had;
	char *line;
};

static struct kept *list;
static long number, sum;
static char *scratch;
static int loop, listener, spare;
static int *volatile nowhere;
static volatile long turns;
static volatile size_t below = -10;
static pthread_mutex_t latch = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t work = PTHREAD_COND_INITIALIZER, waits = PTHREAD_COND_INITIALIZER;
static int waiting, moves, regains, tally;
static volatile long *board;	/* processes share it: how often it was written, and a lock */

static void keep(long n)
{
	struct kept *kept = malloc(sizeof(*kept));

	pthread_mutex_lock(&latch);
	kept->number = n;
	snprintf(kept->text, sizeof(kept->text), "number %ld", n);
	kept->next = list;
	list = kept;
	number++;
	sum += n;
	pthread_mutex_unlock(&latch);
}

static void answer(struct peer *peer)
{
	char text[100];
	long counted = 0, summed = 0, said;

	for (struct kept *kept = list; kept; kept = kept->next, counted++) {
		if (sscanf(kept->text, "number %ld", &said) != 1 || said != kept->number)
			summed = -1000000;
		summed += said;
	}
	if (counted != number || summed != sum)
		abort();
	snprintf(text, sizeof(text), "%ld %ld %d\n", number, sum, rand());
	if (write(peer->fd, text, strlen(text)) < 0)
		perror("write");
}

/* All that it knows is wrong; a lock is held, blocks of both heaps are gone. */
static void spoil(void)
{
	for (int n = 0; n < 50; n++)
		keep(n * 1000);
	for (struct kept *kept = list; kept; kept = kept->next)
		memset(kept->text, 'x', sizeof(kept->text));
	for (int n = 0; n < 20 && list; n++) {
		struct kept *next = list->next;

		free(list);
		list = next;
	}
	number = sum = rand();
	free(strdup("of libc's heap"));
	pthread_mutex_lock(&latch);
}

static void sealed(struct peer *peer)
{
	void *page = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	(void)peer;
	mmap(page, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	*nowhere = 1;
}

/* LOSES: of a build whose checkpoint is lost, where others' is not. */
static void null(struct peer *peer)
{
#ifdef LOSES
	sealed(peer);
#endif
	(void)peer;
	*nowhere = 1;
}

static void stop(struct peer *peer)
{
	(void)peer;
	abort();
}

static void overflow(struct peer *peer)
{
	(void)peer;
	for (int n = 0; n < 4000; n++)
		scratch[n] = 'o';
	*nowhere = 1;
}

static void length(struct peer *peer)
{
	memcpy(scratch, peer->line, below);
}

/* As far as there is anything of the program's. */
static void over(struct peer *peer)
{
	(void)peer;
	for (volatile char *to = (volatile char *)&list;; to++)
		*to = 'o';
}

static void in_libc(struct peer *peer)
{
	(void)peer;
	strcpy((char *)nowhere, "nothing is there");
}

static void deep(struct peer *peer)
{
	char volatile frame[4096];

	frame[0] = 1;
	deep(peer);
	frame[1] = 1;
}

static void sent(struct peer *peer)
{
	if (write(peer->fd, "0 0 0\n", 6) == 6)
		*nowhere = 1;
}

static void stop_sent(struct peer *peer)
{
	if (write(peer->fd, "0 0 0\n", 6) == 6)
		abort();
}

/* As programs call it that can read large files. */
ssize_t sendfile64(int fd, int from, off_t *at, size_t size);

static void file(struct peer *peer)
{
	int self = open("/proc/self/exe", O_RDONLY);

	if (sendfile64(peer->fd, self, NULL, 6) == 6)
		*nowhere = 1;
}

static void spliced(struct peer *peer)
{
	int pair[2];

	if (!pipe(pair) && write(pair[1], "0 0 0\n", 6) == 6)
		splice(pair[0], NULL, peer->fd, NULL, 6, 0);
	*nowhere = 1;
}

static void closed(struct peer *peer)
{
	(void)peer;
	close(spare);
	*nowhere = 1;
}

/* Its own connection, by others' ways. */
static void fclosed(struct peer *peer)
{
	fclose(fdopen(peer->fd, "r+"));
	*nowhere = 1;
}

static void ranged(struct peer *peer)
{
	close_range(peer->fd, peer->fd, 0);
	*nowhere = 1;
}

static void waited(struct peer *peer)
{
	struct epoll_event event;

	(void)peer;
	epoll_wait(loop, &event, 1, 0);
	*nowhere = 1;
}

static void selected(struct peer *peer)
{
	struct timespec now = { 0 };

	(void)peer;
	pselect(0, NULL, NULL, NULL, &now, NULL);
	*nowhere = 1;
}

static void polled(struct peer *peer)
{
	struct epoll_event event;
	struct timespec now = { 0 };

	(void)peer;
	epoll_pwait2(loop, &event, 1, &now, NULL);
	*nowhere = 1;
}

/* Unseen by the runtime, which faults itself then. */
static void shut(struct peer *peer)
{
	static char page[4096] __attribute__((aligned(4096)));

	memset(page, *peer->line, sizeof(page));
	syscall(SYS_mprotect, page, sizeof(page), PROT_READ);
	*nowhere = 1;
}

/* A file does not go back, and memory that is shared no more. */
static void scored(struct peer *peer)
{
	long times = 0;

	(void)peer;
	if (pread(tally, &times, sizeof(times), 0) < 0 || times != *board)
		exit(1);
	times = ++*board;
	if (pwrite(tally, &times, sizeof(times), 0) == sizeof(times))
		*nowhere = 1;
}

static void locked(struct peer *peer)
{
	(void)peer;
	__atomic_exchange_n(board + 1, 1, __ATOMIC_ACQUIRE);
	*nowhere = 1;
}

static void on_signal(int sig)
{
	(void)sig;
	*nowhere = 1;
}

static void handler(struct peer *peer)
{
	(void)peer;
	signal(SIGUSR1, on_signal);
	raise(SIGUSR1);
}

static void *falls(void *unused)
{
	*nowhere = 1;
	return unused;
}

static void thread(struct peer *peer)
{
	pthread_t made;

	(void)peer;
	pthread_create(&made, NULL, falls, NULL);
	pthread_join(made, NULL);
}

static void opened(struct peer *peer)
{
	FILE *f = fopen("/dev/null", "r");
	int pair[2], fd = open("/dev/zero", O_RDONLY);

	(void)peer;
	if (!f || fd < 0 || pipe(pair))
		exit(1);
	close(fd);
	*nowhere = 1;
}

/* By libc, which has no checkpoints. */
static void library(struct peer *peer)
{
	dprintf(peer->fd, "0 0 0\n");
	*nowhere = 1;
}

static void spawned(struct peer *peer)
{
	char *argv[] = { "true", NULL };
	pid_t pid;

	(void)peer;
	posix_spawn(&pid, "/bin/true", NULL, NULL, argv, argv + 1);
	*nowhere = 1;
}

static void vforked(struct peer *peer)
{
	(void)peer;
	if (vfork() == 0)
		_exit(0);
	*nowhere = 1;
}

static void cloned(struct peer *peer)
{
	(void)peer;
	if (syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL) == 0)
		_exit(0);
	*nowhere = 1;
}

static void system_made(struct peer *peer)
{
	(void)peer;
	if (system("true") == 0)
		*nowhere = 1;
}

static void piped(struct peer *peer)
{
	(void)peer;
	if (popen("true", "r"))
		*nowhere = 1;
}

/* The parent goes on: what the child did is the child's. */
static void child(struct peer *peer)
{
	pid_t pid = fork();
	int status;

	if (pid == 0)
		*nowhere = 1;
	waitpid(pid, &status, 0);
	if (WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV)
		answer(peer);
}

static const struct {
	const char *name;
	void (*wrong)(struct peer *peer);
	int spoils;
} bugs[] = {
	{ "null", null, 1 }, { "abort", stop, 1 }, { "overflow", overflow, 1 },
	{ "length", length, 1 }, { "over", over, 1 },
	{ "libc", in_libc, 1 }, { "deep", deep, 1 }, { "sent", sent, 1 }, { "abort_sent", stop_sent, 1 }, { "closed", closed, 1 },
	{ "fclosed", fclosed, 1 }, { "ranged", ranged, 1 },
	{ "waited", waited, 1 }, { "handler", handler, 1 }, { "sealed", sealed, 1 },
	{ "thread", thread, 1 }, { "opened", opened, 1 }, { "file", file, 1 },
	{ "spliced", spliced, 1 }, { "selected", selected, 1 }, { "polled", polled, 1 },
	{ "library", library, 1 }, { "spawned", spawned, 1 },
	{ "vforked", vforked, 1 }, { "cloned", cloned, 1 }, { "system", system_made, 1 }, { "piped", piped, 1 },
	{ "shut", shut, 1 }, { "scored", scored, 1 }, { "locked", locked, 1 },
	{ "child", child, 0 },
};

static void serve(struct peer *peer)
{
	if (!strncmp(peer->line, "add ", 4)) {
		keep(atol(peer->line + 4));
		answer(peer);
		return;
	}
	for (size_t n = 0; n < sizeof(bugs) / sizeof(bugs[0]); n++)
		if (!strcmp(peer->line, bugs[n].name)) {
			if (bugs[n].spoils)
				spoil();
			bugs[n].wrong(peer);
		}
}

static void leave(struct peer *peer)
{
	close(peer->fd);
	free(peer->line);
	free(peer);
}

static void peer_read(struct peer *peer)
{
	ssize_t got = read(peer->fd, peer->line + peer->had, 99 - peer->had);

	if (got <= 0) {
		leave(peer);
		return;
	}
	peer->had += got;
	if (peer->line[peer->had - 1] != '\n')
		return;
	peer->line[peer->had - 1] = '\0';
	peer->had = 0;
	serve(peer);
}

static void born(void)
{
	struct peer peer = { .line = malloc(100) };
	struct sockaddr_in at;
	socklen_t size = sizeof(at);
	int self = socket(AF_INET, SOCK_STREAM, 0), status;
	pid_t child;

	if (getsockname(listener, (void *)&at, &size) || connect(self, (void *)&at, size) ||
	    (peer.fd = accept(listener, NULL, NULL)) < 0 || write(self, "x", 1) != 1 ||
	    read(peer.fd, peer.line, 1) != 1)
		exit(1);
	close(self);
	close(peer.fd);
	free(peer.line);
	if (!moves && !geteuid() && seteuid(65534))
		exit(1);
	child = moves ? syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL) : fork();
	if (child == 0) {
		if (!getuid() && seteuid(0))
			exit(1);
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		return;
	}
	waitpid(child, &status, 0);
	signal(WTERMSIG(status), SIG_DFL);
	kill(getpid(), WTERMSIG(status));
}

/* By each way that there is. */
static int moved(int fd)
{
	static int turn, next = 100;
	int to;

	switch (turn++ % 4) {
	case 0:
		to = dup(fd);
		break;
	case 1:
		to = dup2(fd, next++);
		break;
	case 2:
		to = dup3(fd, next++, O_CLOEXEC);
		break;
	default:
		to = fcntl(fd, F_DUPFD, next++);
	}
	close(fd);
	return to;
}

static void bounded(void)
{
	struct rlimit want = { 64 << 20, 64 << 20 }, got;
	void *volatile much;

	if (setrlimit(RLIMIT_AS, &want) || getrlimit(RLIMIT_AS, &got) ||
	    memcmp(&got, &want, sizeof(got)))
		exit(1);
	much = malloc(100 << 20);
	if (much)
		exit(1);
	scratch = realloc(scratch, 4 << 20);
	if (!scratch)
		exit(1);
}

static void peer_new(void)
{
	struct peer *peer = malloc(sizeof(*peer));
	struct epoll_event event = { .events = EPOLLIN, .data.ptr = peer };

	peer->fd = accept(listener, NULL, NULL);
	if (moves)
		peer->fd = moved(peer->fd);
	peer->line = malloc(100);
	peer->had = 0;
	epoll_ctl(loop, EPOLL_CTL_ADD, peer->fd, &event);
}

static void *go_round(void *unused)
{
	struct epoll_event events[8];
	int n;

	while ((n = epoll_wait(loop, events, 8, -1)) >= 0 || errno == EINTR)
		for (int i = 0; i < n; i++)
			if (events[i].data.ptr)
				peer_read(events[i].data.ptr);
			else
				peer_new();
	return unused;
}

/* For crashes: it says so, and dies of it. */
static void on_crash(int sig)
{
	static const char said[] = "the handler ran\n";

	if (write(2, said, sizeof(said) - 1) > 0)
		signal(sig, SIG_DFL);
	raise(sig);
}

static void handles(void)
{
	struct sigaction action = { .sa_handler = on_crash, .sa_flags = SA_NODEFER }, old;

	if (signal(SIGABRT, on_crash) != SIG_DFL || sigaction(SIGSEGV, &action, NULL) ||
	    sigaction(SIGSEGV, NULL, &old) || old.sa_handler != on_crash)
		exit(1);
}

/* Ours and libc's. */
static void dates(void)
{
	struct tm *(*libc)(const time_t *, struct tm *) = dlsym(RTLD_NEXT, "gmtime_r");
	unsigned long when = 0;

	for (int n = 0; n < 200000; n++, when = when * 6364136223846793005 + 1442695041) {
		time_t some[] = { (time_t)when, (time_t)when >> n % 40, n * 43200l - 5000000000 };

		for (int i = 0; i < 3; i++) {
			struct tm a = { 0 }, b = { 0 };
			int there = gmtime_r(&some[i], &a) != NULL;

			if (there != (libc(&some[i], &b) != NULL))
				exit(1);
			if (there && (memcmp(&a, &b, offsetof(struct tm, tm_zone)) ||
				      strcmp(a.tm_zone, b.tm_zone)))
				exit(1);
		}
	}
}

static void *stands(void *unused)
{
	pthread_mutex_lock(&latch);
	waiting = 1;
	pthread_cond_signal(&waits);
	while (!unused)
		pthread_cond_wait(&work, &latch);
	return unused;
}

static void *runs(void *unused)
{
	while (!unused)
		turns++;
	return unused;
}

static void listens(void)
{
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct epoll_event event = { .events = EPOLLIN };
	socklen_t size = sizeof(at);

	listener = socket(AF_INET, SOCK_STREAM, 0);
	loop = epoll_create1(0);
	spare = open("/dev/null", O_RDONLY);
	if (bind(listener, (void *)&at, size) || listen(listener, 100) ||
	    epoll_ctl(loop, EPOLL_CTL_ADD, listener, &event) ||
	    getsockname(listener, (void *)&at, &size))
		exit(1);
	if (moves || regains)
		born();
	printf("%d\n", ntohs(at.sin_port));
	fflush(stdout);
}

int main(int argc, char **argv)
{
	const char *how = argc > 1 ? argv[1] : "first";
	pthread_t made;

	scratch = malloc(100);
	tally = memfd_create("tally", 0);
	board = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	srand(1);
	if (!strcmp(how, "first"))
		dates();
	if (!strcmp(how, "handles"))
		handles();
	if (!strcmp(how, "standing")) {
		pthread_create(&made, NULL, stands, NULL);
		pthread_mutex_lock(&latch);
		while (!waiting)
			pthread_cond_wait(&waits, &latch);
		pthread_mutex_unlock(&latch);
	}
	if (!strcmp(how, "running"))
		pthread_create(&made, NULL, runs, NULL);
	moves = !strcmp(how, "moved");
	regains = !strcmp(how, "regains");
	listens();
	if (!strcmp(how, "humble") && !geteuid() && (chroot(".") || setuid(65534)))
		exit(1);
	if (moves)
		bounded();
	if (!strcmp(how, "bare"))
		for (int fd = 0; fd < 3; fd++)
			close(fd);
	if (!strcmp(how, "second")) {
		pthread_create(&made, NULL, go_round, NULL);
		pthread_join(made, NULL);
	}
	go_round(NULL);
}
