/*
 * execve in its forms (by path, by descriptor, of a script, of a static
 * binary, from another thread), what the new image sees (argv, environment,
 * signals, descriptors, names), and failing execs after which life goes on.
 */
#include <pthread.h>
#include <stdarg.h>
#include <sys/stat.h>
#include "check.h"

static char *show, *show_static;

/* The output of a child that runs fn and so becomes another program. */
static const char *output(void (*fn)(void))
{
	static char text[8192];
	int fds[2];
	ssize_t n, length = 0;

	CHECK_EQ(pipe(fds), 0);
	pid_t pid = fork();
	if (!pid) {
		dup2(fds[1], 1);
		close(fds[0]);
		close(fds[1]);
		fn();
		_exit(99);
	}
	close(fds[1]);
	while ((n = read(fds[0], text + length, sizeof(text) - 1 - length)) > 0)
		length += n;
	text[length] = '\0';
	close(fds[0]);
	CHECK_EQ(status_of(pid), 0);
	return text;
}

static void prints(void (*fn)(void), const char *wanted)
{
	const char *text = output(fn);

	if (!strcmp(text, wanted))
		return;
	dprintf(2, "exec printed:\n%sand not:\n%s", text, wanted);
	_exit(1);
}

static void by_path(void)
{
	char *argv[] = { "other-name", "name", "exe", "env", "fds", "args",
			 "a b", "", NULL };
	char *env[] = { "CHECK_ONE=1", "CHECK_TWO=two words", NULL };

	execve(show, argv, env);
}

static void by_descriptor(void)
{
	char *argv[] = { "by-fd", "exe", "env", NULL }, *env[] = { NULL };
	int fd = open(show, O_RDONLY | O_CLOEXEC);

	fexecve(fd, argv, env);
}

static void by_execveat(void)
{
	char *argv[] = { "at", "exe", NULL }, *env[] = { NULL };
	int dir = open("/proc/self/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int fd = open(show, O_PATH | O_CLOEXEC);
	char name[16];

	CHECK_EQ(fd, dir + 1);
	snprintf(name, sizeof(name), "%d", fd);
	raw6(SYS_execveat, dir, (long)name, (long)argv, (long)env, 0, 0);
}

static void of_static(void)
{
	char *argv[] = { "static", "exe", "env", NULL };
	char *env[] = { "CHECK_TWO=2", NULL };

	execve(show_static, argv, env);
}

static void of_script(void)
{
	execl("./script", "ignored-name", "b", NULL);
}

static void with_signals(void)
{
	sigset_t mask;

	sigemptyset(&mask);
	sigaddset(&mask, SIGUSR1);
	sigaddset(&mask, SIGSYS);
	sigaddset(&mask, 40);
	sigprocmask(SIG_SETMASK, &mask, NULL);
	on_signal(SIGHUP, SIG_IGN, 0);
	on_signal(SIGUSR2, SIG_IGN, 0);
	on_signal(SIGTERM, (void (*)(int))by_path, 0);
	on_signal(SIGSYS, SIG_IGN, 0);
	execl(show, "show", "signals", NULL);
}

static void with_descriptors(void)
{
	CHECK_EQ(dup2(1, 7), 7);
	CHECK_EQ(dup3(1, 8, O_CLOEXEC), 8);
	CHECK_EQ(dup2(1, 100), 100);
	execl(show, "show", "fds", NULL);
}

static void *exec_in_thread(void *arg)
{
	execl(show, "show", "exe", "fds", NULL);
	_exit(98);
}

static void *sleep_in_thread(void *arg)
{
	pause();
	return NULL;
}

static void from_thread(void)
{
	pthread_t thread;

	for (int i = 0; i < 5; i++)
		pthread_create(&thread, NULL, sleep_in_thread, NULL);
	pthread_create(&thread, NULL, exec_in_thread, NULL);
	pause();
}

static void make_file(const char *name, const char *text, mode_t mode)
{
	int fd = open(name, O_WRONLY | O_CREAT | O_TRUNC, mode);

	CHECK(fd >= 0);
	CHECK_EQ(write(fd, text, strlen(text)), strlen(text));
	close(fd);
}

static void failing(void)
{
	char *argv[] = { "x", NULL }, *env[] = { NULL };
	char *huge = malloc(200 * 1024), *big[] = { "x", huge, NULL };

	memset(huge, 'x', 200 * 1024 - 1);
	huge[200 * 1024 - 1] = '\0';
	make_file("text", "neither a program nor a script\n", 0755);
	make_file("plain", "", 0644);
	make_file("lost", "#!/none/interpreter\n", 0755);
	for (int i = 0; i < 20; i++) {
		CHECK_FAILS(execve("/none", argv, env), ENOENT);
		CHECK_FAILS(execve("", argv, env), ENOENT);
		CHECK_FAILS(execve("/etc", argv, env), EACCES);
		CHECK_FAILS(execve("plain", argv, env), EACCES);
		CHECK_FAILS(execve("text", argv, env), ENOEXEC);
		CHECK_FAILS(execve("lost", argv, env), ENOENT);
		CHECK_FAILS(execve("text/x", argv, env), ENOTDIR);
		CHECK_FAILS(execve(show, big, env), E2BIG);
		CHECK_EQ(raw3(SYS_execve, 8, argv, env), -EFAULT);
		CHECK_EQ(raw3(SYS_execve, show, 8, env), -EFAULT);
		CHECK_EQ(raw3(SYS_execve, show, argv, 8), -EFAULT);
		CHECK_EQ(raw6(SYS_execveat, -1, (long)"x", (long)argv, (long)env,
			      0, 0), -EBADF);
		CHECK_EQ(raw6(SYS_execveat, AT_FDCWD, (long)show, (long)argv,
			      (long)env, 0x7777, 0), -EINVAL);
		CHECK_EQ(raw0(SYS_getpid), getpid());
	}
	free(huge);
}

int main(void)
{
	char text[PATH_MAX + 64];

	show = strdup(beside("show"));
	show_static = strdup(beside("show_static"));
	snprintf(text, sizeof(text), "#!%s args\n", show);
	make_file("script", text, 0755);
	for (int i = 0; i < 10; i++)
		prints(by_path, "name: other-name show\nexe: /show\n"
		       "env: 1 two words\nfds: 0 1 2\nargs: [a b] []\n");
	prints(by_descriptor, "exe: /show\nenv: - -\n");
	prints(by_execveat, "exe: /show\n");
	prints(of_static, "exe: /show_static\nenv: - 2\n");
	prints(of_script, "args: [./script] [b]\n");
	prints(with_signals, "blocked: 10 31 40\nignored: 1 12 31\n");
	prints(with_descriptors, "fds: 0 1 2 7 100\n");
	for (int i = 0; i < 10; i++)
		prints(from_thread, "exe: /show\nfds: 0 1 2\n");
	failing();
	return passed("exec");
}
