/*
 * state PORT FOLDER PLAIN|SETUID: a server that has changed all of its process state
 * that the kernel keeps beside descriptors, and tells it: who it is, what it may,
 * where it stands, which signals do what, in its main thread and in another one.
 *
 *	tell	everything, as the program sees it
 *	count	how often its timers' signals have come: alarm, interval, thread's, watch
 *	signal	SIGUSR1 to itself: the handler's word, with the mask it ran under
 *	chdir	elsewhere, by a descriptor
 *	quit
 *
 * Its record lock is on FOLDER/lock, from byte 10 to 29, without 15 to 19.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#define MUST(x) do { if (!(x)) { perror(#x); exit(3); } } while (0)

static volatile int alarms, ticks, threads_ticks;
static char handled[200];
static pid_t thread_tid;
static pthread_barrier_t ready;	/* the other is hardly out of it when glibc tells it of new ids */
static int ask[2], reply[2];	/* between the threads: what a pipe brings has an order */

static void mask_print(char *to, size_t size, const char *what)
{
	sigset_t now;
	size_t n = (size_t)snprintf(to, size, "%s", what);

	pthread_sigmask(SIG_BLOCK, NULL, &now);
	for (int s = 1; s < 65 && n < size; s++)
		if (sigismember(&now, s) == 1)
			n += (size_t)snprintf(to + n, size - n, " %d", s);
}

static void on_usr1(int sig, siginfo_t *info, void *context)
{
	(void)sig, (void)context;
	snprintf(handled, sizeof(handled), "%d from itself %d ", info->si_code,
		 info->si_pid == getpid());
	mask_print(handled + strlen(handled), sizeof(handled) - strlen(handled), "masked");
}

static void on_tick(int sig)
{
	if (sig == SIGALRM)
		alarms++;
	else if (sig == SIGRTMIN)
		ticks++;
	else if (gettid() == thread_tid)
		threads_ticks++;
}

static void handler(int sig, void (*f)(int), int flags)
{
	struct sigaction a = { .sa_handler = f, .sa_flags = flags };

	MUST(sigaction(sig, &a, NULL) == 0);
}

static void block(int sig)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, sig);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
}

static void *second(void *arg)
{
	(void)arg;
	thread_tid = gettid();
	block(SIGIO);
	block(SIGUSR1);		/* what the main thread sends itself is its own */
	block(SIGALRM);
	block(SIGRTMIN);
	block(SIGRTMIN + 5);
	prctl(PR_SET_NAME, "second");
	MUST(write(reply[1], "r", 1) == 1);
	pthread_barrier_wait(&ready);
	for (;;) {
		char what, says[200];

		if (read(ask[0], &what, 1) != 1)
			continue;
		if (what == 'c')
			snprintf(says, sizeof(says), "%d", threads_ticks);
		else
			mask_print(says, sizeof(says), "thread masks");
		MUST(write(reply[1], says, sizeof(says)) == sizeof(says));
	}
	return NULL;
}

static const char *second_says(char what)
{
	static char says[200];
	ssize_t n;

	MUST(write(ask[1], &what, 1) == 1);
	while ((n = read(reply[0], says, sizeof(says))) < 0 && errno == EINTR)
		;
	MUST(n == sizeof(says));
	return says;
}

/* --- what it becomes -------------------------------------------------------------------- */

static void limits_set(void)
{
	struct rlimit files = { 300, 400 }, core = { 0, 4096 }, stack = { 4 << 20, 64 << 20 };

	MUST(setrlimit(RLIMIT_NOFILE, &files) == 0);
	MUST(setrlimit(RLIMIT_CORE, &core) == 0);
	MUST(prlimit(0, RLIMIT_STACK, &stack, NULL) == 0);
	MUST(setpriority(PRIO_PROCESS, 0, 3) == 0);
}

static void signals_set(void)
{
	struct sigaction a = { .sa_sigaction = on_usr1, .sa_flags = SA_SIGINFO | SA_RESTART };
	stack_t alt = { .ss_sp = malloc(65536), .ss_size = 65536 };

	sigaddset(&a.sa_mask, SIGUSR2);
	MUST(sigaction(SIGUSR1, &a, NULL) == 0);
	handler(SIGHUP, SIG_IGN, 0);
	handler(SIGPIPE, SIG_IGN, 0);
	handler(SIGWINCH, on_tick, SA_ONSTACK | SA_NODEFER);
	handler(SIGALRM, on_tick, SA_RESTART);
	handler(SIGRTMIN, on_tick, SA_RESTART);
	handler(SIGRTMIN + 1, on_tick, SA_RESTART);
	MUST(sigaltstack(&alt, NULL) == 0);
	block(SIGUSR2);
	block(SIGRTMIN + 3);
}

/* Which of the calls that only a kernel with capabilities lets us make. */
static void rights_set(int setuid)
{
	gid_t groups[] = { 2002, 2001 };

	if (geteuid() == 0) {
		MUST(prctl(PR_CAPBSET_DROP, 22 /* CAP_SYS_BOOT */, 0, 0, 0) == 0);
		MUST(setgroups(2, groups) == 0);
	}
	if (!setuid)
		return;
	MUST(prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0) == 0);
	MUST(setresgid(3001, 3002, 3003) == 0);
	MUST(setresuid(4001, 4002, 4003) == 0);
	MUST(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
}

static void place_set(const char *folder)
{
	cpu_set_t cpus;

	MUST(chdir(folder) == 0);
	umask(027);
	prctl(PR_SET_NAME, "stately");
	prctl(PR_SET_TIMERSLACK, 77000L);
	CPU_ZERO(&cpus);
	CPU_SET(0, &cpus);
	MUST(sched_setaffinity(0, sizeof(cpus), &cpus) == 0);
}

#define MANY	200	/* timers and ranges that are locked, besides those that are looked at */

static void lock(int fd, int type, off_t from, off_t len)
{
	struct flock l = { .l_type = (short)type, .l_whence = SEEK_SET, .l_start = from,
			   .l_len = len };

	MUST(fcntl(fd, F_SETLK, &l) == 0);
}

static void lock_take(void)
{
	int fd = open("lock", O_RDWR | O_CREAT, 0666);

	MUST(fd >= 0);
	for (int i = 0; i < MANY; i++)
		lock(fd, F_WRLCK, 1000 + 2 * i, 1);
	lock(fd, F_WRLCK, 10, 20);
	lock(fd, F_UNLCK, 15, 5);
}

static int timers_set(void)
{
	struct itimerval often = { { 0, 20000 }, { 0, 20000 } };
	struct itimerspec tick = { { 0, 20000000 }, { 0, 20000000 } };
	struct sigevent e = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGRTMIN };
	timer_t gone, timer;
	int fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);

	MUST(setitimer(ITIMER_REAL, &often, NULL) == 0);
	MUST(timer_create(CLOCK_MONOTONIC, &e, &gone) == 0);
	for (int i = 0; i < MANY; i++)		/* these never tick */
		MUST(timer_create(CLOCK_MONOTONIC, &e, &timer) == 0);
	MUST(timer_create(CLOCK_MONOTONIC, &e, &timer) == 0);
	MUST(timer_delete(gone) == 0);
	MUST(timer_settime(timer, 0, &tick, NULL) == 0);
	e.sigev_notify = SIGEV_THREAD_ID;
	e.sigev_signo = SIGRTMIN + 1;
	e._sigev_un._tid = thread_tid;
	MUST(timer_create(CLOCK_MONOTONIC, &e, &timer) == 0);
	MUST(timer_settime(timer, 0, &tick, NULL) == 0);
	MUST(timerfd_settime(fd, 0, &tick, NULL) == 0);
	return fd;
}

/* --- what it tells ------------------------------------------------------------------------ */

static char text[8192];
static size_t text_n;

static void add(const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	text_n += (size_t)vsnprintf(text + text_n, sizeof(text) - text_n, format, ap);
	va_end(ap);
}

static void tell_rights(void)
{
	uid_t r, e, s;
	gid_t groups[32];
	int n;

	getresuid(&r, &e, &s);
	add("uids %d %d %d %d; ", r, e, s, setfsuid((uid_t)-1));
	getresgid(&r, &e, &s);
	add("gids %d %d %d %d; ", r, e, s, setfsgid((gid_t)-1));
	n = getgroups(32, groups);
	for (int i = 0; i < n; i++)
		add("group %d; ", groups[i]);
	add("no new privs %d; keepcaps %d; ", prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0),
	    prctl(PR_GET_KEEPCAPS, 0, 0, 0, 0));
	add("dumpable %d; boot cap %d; securebits %d; ", prctl(PR_GET_DUMPABLE, 0, 0, 0, 0),
	    prctl(PR_CAPBSET_READ, 22, 0, 0, 0), prctl(PR_GET_SECUREBITS, 0, 0, 0, 0));
}

static void tell_place(void)
{
	char where[1000] = "", name[17] = "";
	struct stat st;
	mode_t mask = umask(0);
	cpu_set_t cpus;

	umask(mask);
	prctl(PR_GET_NAME, name);
	sched_getaffinity(0, sizeof(cpus), &cpus);
	add("umask %o; in %s; ", mask, getcwd(where, sizeof(where)));
	add("here is %d; name %s; slack %d; cpus %d; nice %d; ", stat("elsewhere", &st) == 0, name,
	    prctl(PR_GET_TIMERSLACK), CPU_COUNT(&cpus), getpriority(PRIO_PROCESS, 0));
	for (int i = 0; i < RLIM_NLIMITS; i++) {
		struct rlimit l;

		getrlimit(i, &l);
		add("%d %ld %ld; ", i, (long)l.rlim_cur, (long)l.rlim_max);
	}
}

static void tell_signals(void)
{
	stack_t alt;
	char mask[300];

	for (int s = 1; s < 65; s++) {
		struct sigaction a;

		if (sigaction(s, NULL, &a) || (a.sa_handler == SIG_DFL && !a.sa_flags))
			continue;
		add("%d %s %x usr2 %d; ", s, a.sa_handler == SIG_DFL ? "default" :
		    a.sa_handler == SIG_IGN ? "ignored" : a.sa_handler == on_tick ? "tick" :
		    "usr1", a.sa_flags, sigismember(&a.sa_mask, SIGUSR2));
	}
	sigaltstack(NULL, &alt);
	mask_print(mask, sizeof(mask), "masks");
	add("alternate %d %zu; %s; ", alt.ss_flags, alt.ss_size, mask);
	add("%s; ", second_says('m'));
}

static void answer(const char *line, int watch)
{
	static unsigned long seen;
	uint64_t n;

	text_n = 0;
	if (!strncmp(line, "tell", 4)) {
		tell_rights();
		tell_place();
		tell_signals();
	} else if (!strncmp(line, "count", 5)) {
		if (read(watch, &n, sizeof(n)) == sizeof(n))
			seen += n;
		add("%d %d %s %lu", alarms, ticks, second_says('c'), seen);
	} else if (!strncmp(line, "signal", 6)) {
		handled[0] = 0;
		kill(getpid(), SIGUSR1);
		add("%s", handled);
	} else if (!strncmp(line, "chdir", 5)) {
		int fd = open("elsewhere", O_RDONLY | O_DIRECTORY);

		add("%d", fd < 0 ? -1 : fchdir(fd));
		close(fd);
	}
	add("\n");
}

static int listen_on(uint16_t port)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_port = htons(port),
				 .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;

	MUST(setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) == 0);
	MUST(bind(fd, (struct sockaddr *)&a, sizeof(a)) == 0 && listen(fd, 10) == 0);
	return fd;
}

int main(int argc, char **argv)
{
	pthread_t thread;
	int fd, watch, client;
	char line[100];
	ssize_t n;

	if (argc != 4)
		return 2;
	limits_set();
	place_set(argv[2]);
	signals_set();
	pthread_barrier_init(&ready, NULL, 2);
	MUST(pipe(ask) == 0 && pipe(reply) == 0);
	pthread_create(&thread, NULL, second, NULL);
	MUST(read(reply[0], line, 1) == 1);
	lock_take();
	pthread_barrier_wait(&ready);
	rights_set(!strcmp(argv[3], "SETUID"));
	watch = timers_set();
	fd = listen_on((uint16_t)atoi(argv[1]));
	while ((client = accept(fd, NULL, NULL)) >= 0 || errno == EINTR) {
		while ((n = read(client, line, sizeof(line) - 1)) > 0 || (n < 0 && errno == EINTR)) {
			if (n <= 0)
				continue;
			line[n] = 0;
			if (!strncmp(line, "quit", 4))
				return 0;
			answer(line, watch);
			for (size_t done = 0; done < text_n; done += n > 0 ? (size_t)n : 0)
				n = write(client, text + done, text_n - done);
		}
		close(client);
	}
	return 4;
}
