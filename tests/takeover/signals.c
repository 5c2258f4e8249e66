/*
 * signals PORT: a server that a child of its own sends signals, one after the other, each
 * with its number; for tests of taking over meanwhile.  The handler counts; "GET" answers how
 * many have come, and "WRONG" when one was lost, came twice or out of order.  At "HOLD" it
 * sends many to itself, which it blocks till "LET", and says how many came.  A second child
 * is killed for each connection that ends, and the server waits for that.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define NUMBERED	(SIGRTMIN + 3)
#define PAUSE_NS	300000

#define HELD		(SIGRTMIN + 4)
#define HOLDS		2000

static volatile int came, wrong, behind;	/* the first that was, and behind which */
static volatile int late;	/* it came in the end */
static volatile int held;

static void must(int ok, const char *what)
{
	if (ok)
		return;
	perror(what);
	exit(1);
}

static void count(int sig, siginfo_t *info, void *unused)
{
	(void)sig, (void)unused;
	if (wrong && info->si_value.sival_int == behind + 1)
		late = info->si_value.sival_int;
	if (info->si_value.sival_int != came + 1 && !wrong) {
		wrong = info->si_value.sival_int;
		behind = came;
	}
	came = info->si_value.sival_int;
}

static void count_held(int sig, siginfo_t *info, void *unused)
{
	(void)sig, (void)unused;
	if (info->si_value.sival_int != held++ && !wrong)
		wrong = -info->si_value.sival_int;
}

/* They wait, more than any table has room for. */
static void hold(int how)
{
	union sigval number;
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, HELD);
	must(!sigprocmask(how, &set, NULL), "sigprocmask");
	if (how == SIG_BLOCK)
		held = 0;
	for (number.sival_int = 0; how == SIG_BLOCK && number.sival_int < HOLDS; number.sival_int++)
		must(!sigqueue(getpid(), HELD, number), "sigqueue");
}

/* A full queue is not the server's fault. */
static void send_all(pid_t to)
{
	struct timespec rest = { 0, PAUSE_NS };
	union sigval number;

	for (number.sival_int = 1;; nanosleep(&rest, NULL))
		if (!sigqueue(to, NUMBERED, number))
			number.sival_int++;
		else if (errno != EAGAIN)
			exit(0);
}

static pid_t child(void)
{
	pid_t pid = fork();

	must(pid >= 0, "fork");
	return pid;
}

static void serve(int fd)
{
	char line[64];
	ssize_t n;
	int status;
	pid_t helper = child();

	while (!helper)
		pause();
	while ((n = read(fd, line, sizeof(line))) > 0 || (n < 0 && errno == EINTR)) {
		if (n < 0)
			continue;
		if (*line == 'H' || *line == 'L')
			hold(*line == 'H' ? SIG_BLOCK : SIG_UNBLOCK);
		n = *line == 'L' && !wrong ? snprintf(line, sizeof(line), "CAME %d\n", held) :
		    wrong ? snprintf(line, sizeof(line), "WRONG %d came behind %d, late %d\n", wrong, behind,
				   late)
			  : snprintf(line, sizeof(line), "CAME %d\n", came);
		must(write(fd, line, (size_t)n) == n, "write");
	}
	close(fd);
	must(!kill(helper, SIGTERM), "kill");
	while (waitpid(helper, &status, 0) < 0)
		must(errno == EINTR, "waitpid");
	must(WIFSIGNALED(status), "the helper's end");
}

int main(int argc, char **argv)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct sigaction act = { .sa_sigaction = count, .sa_flags = SA_SIGINFO };
	int one = 1, listener, fd;
	pid_t self = getpid();

	if (argc != 2)
		return 2;
	a.sin_port = htons((uint16_t)atoi(argv[1]));
	must(!sigaction(NUMBERED, &act, NULL), "sigaction");
	act.sa_sigaction = count_held;
	must(!sigaction(HELD, &act, NULL), "sigaction");
	listener = socket(AF_INET, SOCK_STREAM, 0);
	setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	must(!bind(listener, (struct sockaddr *)&a, sizeof(a)) && !listen(listener, 64), "listen");
	if (!child())
		send_all(self);
	for (;;) {
		fd = accept(listener, NULL, NULL);
		must(fd >= 0 || errno == EINTR, "accept");
		if (fd >= 0)
			serve(fd);
	}
}
