/*
 * posix_spawn (a clone with CLONE_VM | CLONE_VFORK on a stack of libc's):
 * file actions, signal mask and defaults, process group, a failing exec;
 * system(), popen().
 */
#include <pthread.h>
#include <spawn.h>
#include "check.h"

extern char **environ;

static char *run(char *const argv[], posix_spawnattr_t *attr)
{
	static char text[4096];
	posix_spawn_file_actions_t actions;
	int fds[2];
	pid_t pid;

	CHECK_EQ(pipe2(fds, O_CLOEXEC), 0);
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, fds[1], 1);
	posix_spawn_file_actions_addopen(&actions, 0, "/dev/zero", O_RDONLY, 0);
	posix_spawn_file_actions_addclose(&actions, 2);
	CHECK_EQ(posix_spawn(&pid, argv[0], &actions, attr, argv, environ), 0);
	posix_spawn_file_actions_destroy(&actions);
	close(fds[1]);
	ssize_t n, length = 0;
	while ((n = read(fds[0], text + length, sizeof(text) - 1 - length)) > 0)
		length += n;
	text[length] = '\0';
	close(fds[0]);
	CHECK_EQ(status_of(pid), 0);
	return text;
}

static void with_attributes(char *show)
{
	char *argv[] = { show, "signals", "fds", NULL };
	posix_spawnattr_t attr;
	sigset_t mask, defaults;

	posix_spawnattr_init(&attr);
	sigemptyset(&mask);
	sigaddset(&mask, SIGUSR1);
	sigaddset(&mask, SIGSYS);
	sigemptyset(&defaults);
	sigaddset(&defaults, SIGUSR2);
	on_signal(SIGUSR2, SIG_IGN, 0);
	on_signal(SIGHUP, SIG_IGN, 0);
	posix_spawnattr_setsigmask(&attr, &mask);
	posix_spawnattr_setsigdefault(&attr, &defaults);
	posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK |
				 POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
	char *text = run(argv, &attr);
	CHECK(!strcmp(text, "blocked: 10 31\nignored: 1\nfds: 0 1\n"));
	on_signal(SIGUSR2, SIG_DFL, 0);
	on_signal(SIGHUP, SIG_DFL, 0);
	posix_spawnattr_destroy(&attr);
}

static void plain(char *show)
{
	char *argv[] = { show, "args", "one", "", "three", NULL };

	for (int i = 0; i < 100; i++)
		CHECK(!strcmp(run(argv, NULL), "args: [one] [] [three]\n"));
}

static void failing(void)
{
	char *argv[] = { "none", NULL };
	pid_t pid;

	CHECK_EQ(posix_spawn(&pid, "/none", NULL, NULL, argv, environ), ENOENT);
	CHECK_EQ(posix_spawn(&pid, "/", NULL, NULL, argv, environ), EACCES);
	CHECK_EQ(posix_spawnp(&pid, "no-such-program", NULL, NULL, argv, environ),
		 ENOENT);
}

static void *spawns(void *show)
{
	char *argv[] = { show, "none", NULL };
	pid_t pid;

	for (int i = 0; i < 50; i++) {
		CHECK_EQ(posix_spawn(&pid, show, NULL, NULL, argv, environ), 0);
		CHECK_EQ(status_of(pid), 0);
	}
	return NULL;
}

static void from_threads(char *show)
{
	pthread_t threads[4];

	for (int i = 0; i < 4; i++)
		CHECK_EQ(pthread_create(&threads[i], NULL, spawns, show), 0);
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
}

static void shells(void)
{
	char line[64];

	CHECK_EQ(system("exit 3"), EXITED(3));
	CHECK_EQ(system("kill -TERM $$"), SIGTERM);
	CHECK_EQ(system("echo hello | grep -q hello && (exit 7)"), EXITED(7));
	FILE *in = popen("echo one; echo two", "r");
	CHECK(in && fgets(line, sizeof(line), in) && !strcmp(line, "one\n"));
	CHECK(fgets(line, sizeof(line), in) && !strcmp(line, "two\n"));
	CHECK_EQ(pclose(in), 0);
	FILE *out = popen("read x; test \"$x\" = word", "w");
	CHECK(out && fputs("word\n", out) > 0);
	CHECK_EQ(pclose(out), 0);
}

int main(void)
{
	char *show = strdup(beside("show"));

	plain(show);
	with_attributes(show);
	failing();
	from_threads(show);
	shells();
	return passed("spawn");
}
