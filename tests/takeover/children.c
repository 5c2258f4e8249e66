/*
 * A server with children, each line a request:
 *	killed	a child is killed by a signal and waited for
 *	aborted	the same with each signal that a program dies of, and a child that handles it
 *	ended	a child ends and is waited for by waitid
 *	make	a child stays, and is changed by its parent: group, limits, priority, processors
 *	look	what the child that stays has become, as it sees it, and that its pidfd says it
 *		lives; a signal to its group reaches it
 *	end	the child that stays ends: its pidfd says so, then it is waited for
 *	none	there is no other child to wait for
 * The answer is "ok", or what is wrong.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static pid_t stays;
static int pidfd, to_child[2], from_child[2];
static volatile sig_atomic_t heard;

static void hear(int sig)
{
	heard = sig;
}

static void leave(int sig)
{
	_exit(sig);
}

/* The status of a child that is sent the signal, once it is there. */
static int status_of(int sig, void (*handler)(int))
{
	int ready[2], status = -1;
	char byte;
	pid_t pid;

	if (pipe(ready))
		return -1;
	pid = fork();
	if (!pid) {
		if (handler)
			signal(sig, handler);
		if (write(ready[1], "", 1) == 1)
			for (;;)
				pause();
		_exit(1);
	}
	if (read(ready[0], &byte, 1) == 1 && !kill(pid, sig) && waitpid(pid, &status, 0) != pid)
		status = -1;
	close(ready[0]);
	close(ready[1]);
	return status;
}

static const char *killed(void)
{
	int status = status_of(SIGKILL, NULL);

	return WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL ? "ok" : "killed: not told";
}

static const char *aborted(void)
{
	static const int signals[] = { SIGABRT, SIGSEGV, SIGBUS, SIGTRAP };

	for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++) {
		int died = status_of(signals[i], NULL), left = status_of(signals[i], leave);

		if (!WIFSIGNALED(died) || WTERMSIG(died) != signals[i])
			return "aborted: not told";
		if (!WIFEXITED(left) || WEXITSTATUS(left) != signals[i])
			return "aborted: its handler is not told";
	}
	return "ok";
}

static const char *ended(void)
{
	siginfo_t info = { 0 };
	pid_t pid = fork();

	if (!pid)
		_exit(3);
	if (waitid(P_ALL, 0, &info, WEXITED) || info.si_pid != pid || info.si_status != 3)
		return "ended: not told";
	return "ok";
}

/* The child: a byte for each byte, what it sees of itself. */
static void child(void)
{
	char byte;

	signal(SIGUSR1, hear);
	if (write(from_child[1], "", 1) != 1)
		_exit(1);
	while (read(to_child[0], &byte, 1) == 1) {
		struct rlimit files;
		cpu_set_t cpus;

		getrlimit(RLIMIT_NOFILE, &files);
		sched_getaffinity(0, sizeof(cpus), &cpus);
		byte = getpgrp() != getpid() ? 'g' : files.rlim_cur != 77 ? 'l' :
		       getpriority(PRIO_PROCESS, 0) != 7 ? 'p' : CPU_COUNT(&cpus) != 1 ? 'c' :
		       sched_getscheduler(0) != SCHED_BATCH ? 's' : heard ? 'h' : 'n';
		heard = 0;
		if (write(from_child[1], &byte, 1) != 1)
			break;
	}
	_exit(5);
}

static const char *make(void)
{
	struct rlimit files = { 77, 77 };
	struct sched_param none = { 0 };
	cpu_set_t cpus;
	char ready;

	if (pipe(to_child) || pipe(from_child))
		return "pipes";
	stays = fork();
	if (!stays) {
		close(to_child[1]);
		child();
	}
	if (stays < 0 || read(from_child[0], &ready, 1) != 1)
		return "make: no child";
	sched_getaffinity(0, sizeof(cpus), &cpus);
	for (int i = 0, n = 0; i < CPU_SETSIZE; i++)
		if (CPU_ISSET(i, &cpus) && n++)
			CPU_CLR(i, &cpus);
	pidfd = (int)syscall(SYS_pidfd_open, stays, 0);
	if (setpgid(stays, stays) || prlimit(stays, RLIMIT_NOFILE, &files, NULL) ||
	    sched_setscheduler(stays, SCHED_BATCH, &none) ||
	    setpriority(PRIO_PROCESS, (id_t)stays, 7) ||
	    sched_setaffinity(stays, sizeof(cpus), &cpus) || pidfd < 0)
		return "make: it cannot be changed";
	return "ok";
}

static bool pidfd_says(int ended)
{
	struct pollfd p = { .fd = pidfd, .events = POLLIN };

	return poll(&p, 1, ended ? 5000 : 0) == ended;
}

static const char *look(void)
{
	static char wrong[] = "look: ?";

	if (!pidfd_says(0))
		return "look: the pidfd says that it has ended";
	kill(-stays, SIGUSR1);
	usleep(20000);
	if (write(to_child[1], "", 1) != 1 || read(from_child[0], wrong + 6, 1) != 1)
		return "look: the child does not answer";
	if (wrong[6] != 'h')
		return wrong;
	if (getpgid(stays) != stays || getpriority(PRIO_PROCESS, (id_t)stays) != 7)
		return "look: its parent sees another";
	return "ok";
}

static const char *end(void)
{
	siginfo_t info = { 0 };

	close(to_child[1]);
	if (!pidfd_says(1))
		return "end: the pidfd does not say so";
	if (waitid(P_PID, (id_t)stays, &info, WEXITED) || info.si_pid != stays ||
	    info.si_status != 5)
		return "end: not told";
	close(pidfd);
	close(to_child[0]);
	close(from_child[0]);
	close(from_child[1]);
	return "ok";
}

static const char *none(void)
{
	static char text[64];
	pid_t pid = waitpid(-1, NULL, WNOHANG);

	if (pid < 0 && errno == ECHILD)
		return "ok";
	snprintf(text, sizeof(text), "none: there is %d", pid);
	return text;
}

static const char *answer(const char *line)
{
	static const struct { const char *word; const char *(*act)(void); } acts[] = {
		{ "killed\n", killed }, { "aborted\n", aborted },
		{ "ended\n", ended }, { "make\n", make },
		{ "look\n", look }, { "end\n", end }, { "none\n", none },
	};

	for (size_t i = 0; i < sizeof(acts) / sizeof(acts[0]); i++)
		if (!strcmp(line, acts[i].word))
			return acts[i].act();
	return "what?";
}

int main(int argc, char **argv)
{
	struct sockaddr_in at = { .sin_family = AF_INET,
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), one = 1;

	at.sin_port = htons((uint16_t)atoi(argv[argc - 1]));
	setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(listener, (void *)&at, sizeof(at)) || listen(listener, 8))
		return 1;
	for (;;) {
		int fd = accept(listener, NULL, NULL);
		char line[32] = "";
		const char *text;

		if (read(fd, line, sizeof(line) - 1) > 0) {
			text = answer(line);
			if (write(fd, text, strlen(text)) < 0 || write(fd, "\n", 1) < 0)
				return 1;
		}
		close(fd);
	}
}
