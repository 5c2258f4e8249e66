/*
 * Prints what it was started with, for the programs that start it:
 * `show args A B...` (all that follows), or any of `fds`, `signals`, `env`,
 * `name`, `exe`, `pid`, `static`; `none` prints nothing.
 */
#include <sys/auxv.h>
#include <sys/prctl.h>
#include "check.h"

static void show_args(char **argv)
{
	printf("args:");
	for (; *argv; argv++)
		printf(" [%s]", *argv);
	printf("\n");
}

static void show_fds(void)
{
	printf("fds:");
	for (int fd = 0; fd < 1024; fd++)
		if (fcntl(fd, F_GETFD) >= 0)
			printf(" %d", fd);
	printf("\n");
}

static void show_signals(void)
{
	sigset_t set;
	struct sigaction sa;

	printf("blocked:");
	sigprocmask(SIG_BLOCK, NULL, &set);
	for (int sig = 1; sig <= 64; sig++)
		if (sigismember(&set, sig) > 0)
			printf(" %d", sig);
	printf("\nignored:");
	for (int sig = 1; sig <= 64; sig++)
		if (!sigaction(sig, NULL, &sa) && sa.sa_handler == SIG_IGN)
			printf(" %d", sig);
	printf("\n");
}

static void show_env(void)
{
	printf("env: %s %s\n", getenv("CHECK_ONE") ?: "-",
	       getenv("CHECK_TWO") ?: "-");
}

static void show_name(char **argv)
{
	char comm[17] = "";

	prctl(PR_GET_NAME, comm);
	printf("name: %s %s\n", argv[0], comm);
}

static void show_exe(void)
{
	char path[PATH_MAX] = "";

	if (readlink("/proc/self/exe", path, sizeof(path) - 1) < 0)
		snprintf(path, sizeof(path), "error %d", errno);
	printf("exe: %s\n", strrchr(path, '/') ?: path);
}

static void show_security(void)
{
	printf("secure: %ld, same ids: %d\n", getauxval(AT_SECURE),
	       getuid() == geteuid());
}

int main(int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "args")) {
			show_args(argv + i + 1);
			break;
		} else if (!strcmp(argv[i], "fds"))
			show_fds();
		else if (!strcmp(argv[i], "signals"))
			show_signals();
		else if (!strcmp(argv[i], "env"))
			show_env();
		else if (!strcmp(argv[i], "name"))
			show_name(argv);
		else if (!strcmp(argv[i], "exe"))
			show_exe();
		else if (!strcmp(argv[i], "pid"))
			printf("pid: %d\n", getpid());
		else if (!strcmp(argv[i], "security"))
			show_security();
	}
	return 0;
}
