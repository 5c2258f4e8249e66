/*
 * Closed to all but root, as ssh-agent and gpg-agent are: prctl(PR_SET_DUMPABLE, 0).
 *
 * It maps code and executes a program when it is closed, which mve is asked about.  With
 * an argument it serves: it writes a file of that name, and ends by SIGTERM; with two, the
 * first process ends before, and its child is the server.
 */
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "check.h"

static volatile sig_atomic_t over;

static void on_term(int sig)
{
	(void)sig;
	over = 1;
}

static void code_map(void)
{
	int fd = open("/proc/self/exe", O_RDONLY);
	void *at;

	if (fd < 0)
		fd = open("/bin/true", O_RDONLY);
	at = mmap(NULL, 1 << 16, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
	CHECK(at != MAP_FAILED);
	munmap(at, 1 << 16);
	close(fd);
}

static void program_run(void)
{
	pid_t child = fork();
	int status;

	if (!child) {
		execl("/bin/echo", "echo", "once", (char *)NULL);
		_exit(127);
	}
	CHECK(child > 0 && waitpid(child, &status, 0) == child && status == 0);
}

static void serve(const char *ready)
{
	sigset_t term, was;

	sigemptyset(&term);
	sigaddset(&term, SIGTERM);
	sigprocmask(SIG_BLOCK, &term, &was);
	signal(SIGTERM, on_term);
	close(open(ready, O_CREAT | O_WRONLY, 0600));
	while (!over)
		sigsuspend(&was);
	code_map();
}

int main(int argc, char **argv)
{
	CHECK(prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) == 0);
	CHECK(prctl(PR_GET_DUMPABLE, 0, 0, 0, 0) == 0);
	code_map();
	program_run();
	if (argc > 2 && fork())
		_exit(0);
	if (argc > 1)
		serve(argv[1]);
	return passed("undumpable");
}
