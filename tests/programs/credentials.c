/*
 * A server gives up its rights and goes on: setuid to nobody, with threads
 * (libc's setxid signal), and then calls, forks, executes; chroot; a new
 * namespace; not dumpable.
 */
#include <grp.h>
#include <pthread.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include "check.h"

#define NOBODY 65534

static volatile bool changed;

static void *sees_change(void *arg)
{
	while (!changed)
		raw0(SYS_getppid);
	CHECK_EQ(raw0(SYS_getuid), NOBODY);
	CHECK_EQ(raw0(SYS_getgid), NOBODY);
	return NULL;
}

static void *waits(void *arg)
{
	for (;;)
		pause();
	return NULL;
}

static void go_on(void)
{
	CHECK_EQ(getuid(), NOBODY);
	CHECK_EQ(geteuid(), NOBODY);
	CHECK_FAILS(setuid(0), EPERM);
	CHECK_FAILS(open("/etc/shadow", O_RDONLY), EACCES);
	for (int i = 0; i < 20; i++) {
		pid_t pid = fork();
		CHECK(pid >= 0);
		if (!pid)
			_exit(raw0(SYS_getuid) == NOBODY ? 3 : 1);
		CHECK_EQ(status_of(pid), EXITED(3));
	}
	pid_t pid = fork();
	if (!pid) {
		execl("/bin/sh", "sh", "-c", "test `id -u` = 65534 && exit 9", NULL);
		_exit(99);
	}
	CHECK_EQ(status_of(pid), EXITED(9));
	void *p = mmap(NULL, 4096, PROT_READ | PROT_EXEC,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(p != MAP_FAILED);
}

static void become_nobody(void)
{
	pthread_t busy, idle;

	CHECK_EQ(pthread_create(&busy, NULL, sees_change, NULL), 0);
	CHECK_EQ(pthread_create(&idle, NULL, waits, NULL), 0);
	CHECK_EQ(setgroups(0, NULL), 0);
	CHECK_EQ(setresgid(NOBODY, NOBODY, NOBODY), 0);
	CHECK_EQ(setresuid(NOBODY, NOBODY, NOBODY), 0);
	changed = true;
	pthread_join(busy, NULL);
	go_on();
}

static void effective_only(void)
{
	CHECK_EQ(seteuid(NOBODY), 0);
	CHECK_EQ(geteuid(), NOBODY);
	CHECK_EQ(getuid(), 0);
	CHECK_EQ(system("exit 5"), EXITED(5));
	CHECK_EQ(seteuid(0), 0);
	CHECK_EQ(geteuid(), 0);
}

static void copy_file(const char *from, const char *to)
{
	int in = open(from, O_RDONLY), out = open(to, O_WRONLY | O_CREAT, 0755);
	char page[65536];
	ssize_t n;

	CHECK(in >= 0 && out >= 0);
	while ((n = read(in, page, sizeof(page))) > 0)
		CHECK_EQ(write(out, page, n), n);
	close(in);
	close(out);
}

static void in_chroot(void)
{
	CHECK_EQ(mkdir("root", 0755), 0);
	copy_file(beside("show_static"), "root/show_static");
	CHECK_EQ(chroot("root"), 0);
	CHECK_EQ(chdir("/"), 0);
	CHECK_FAILS(open("/proc/self/maps", O_RDONLY), ENOENT);
	pid_t pid = fork();
	if (!pid) {
		execl("/show_static", "show_static", "fds", "name", NULL);
		_exit(99);
	}
	CHECK_EQ(status_of(pid), 0);
	CHECK_EQ(setuid(NOBODY), 0);
	pid = fork();
	if (!pid) {
		execl("/show_static", "show_static", "fds", NULL);
		_exit(99);
	}
	CHECK_EQ(status_of(pid), 0);
}

static void not_dumpable(void)
{
	CHECK_EQ(prctl(PR_SET_DUMPABLE, 0), 0);
	CHECK_EQ(prctl(PR_GET_DUMPABLE), 0);
	for (int i = 0; i < 20; i++) {
		pid_t pid = fork();
		if (!pid)
			_exit(4);
		CHECK_EQ(status_of(pid), EXITED(4));
	}
	CHECK_EQ(system("exit 5"), EXITED(5));
	CHECK_EQ(prctl(PR_GET_DUMPABLE), 0);
}

static void new_user_namespace(void)
{
	if (unshare(CLONE_NEWUSER)) {
		CHECK(errno == EPERM || errno == ENOSPC);
		return;
	}
	CHECK_EQ(raw0(SYS_getuid), NOBODY);
	CHECK_EQ(system("exit 5"), EXITED(5));
}

static void new_pid_namespace(void)
{
	if (unshare(CLONE_NEWPID)) {
		CHECK_EQ(errno, EPERM);
		return;
	}
	pid_t pid = fork();
	CHECK(pid > 0 || getpid() == 1);
	if (!pid) {
		CHECK_EQ(raw0(SYS_getpid), 1);
		CHECK_EQ(raw0(SYS_getppid), 0);
		pid_t inner = fork();
		if (!inner)
			_exit(raw0(SYS_getpid) == 2 ? 6 : 1);
		CHECK_EQ(inner, 2);
		CHECK_EQ(status_of(inner), EXITED(6));
		CHECK_EQ(system("exit 5"), EXITED(5));
		_exit(7);
	}
	CHECK_EQ(status_of(pid), EXITED(7));
}

int main(void)
{
	if (geteuid())
		skip("needs root");
	IN_CHILD(become_nobody);
	IN_CHILD(effective_only);
	IN_CHILD(in_chroot);
	IN_CHILD(not_dumpable);
	IN_CHILD(new_user_namespace);
	IN_CHILD(new_pid_namespace);
	return passed("credentials");
}
