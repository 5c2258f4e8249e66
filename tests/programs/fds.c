/*
 * Descriptors are the program's alone: the lowest free number is what it
 * would be natively, none is open that it did not open, and it may close,
 * replace or renumber all of them, and run short of them, and go on.
 */
#include <dirent.h>
#include <linux/close_range.h>
#include <pthread.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include "check.h"

static void list(char *text, size_t size)
{
	DIR *dir = opendir("/proc/self/fd");
	struct dirent *entry;
	char *end = text;

	CHECK(dir);
	while ((entry = readdir(dir)))
		if (entry->d_name[0] != '.' && atoi(entry->d_name) != dirfd(dir))
			end += snprintf(end, text + size - end, " %s", entry->d_name);
	closedir(dir);
}

static void only_standard_ones(void)
{
	char text[512] = "";

	list(text, sizeof(text));
	CHECK(!strcmp(text, " 0 1 2"));
	for (int fd = 3; fd < 2000; fd++)
		CHECK_FAILS(fcntl(fd, F_GETFD), EBADF);
	CHECK_EQ(open("/dev/null", O_RDONLY), 3);
	CHECK_EQ(dup(0), 4);
	CHECK_EQ(close(3), 0);
	CHECK_EQ(socket(AF_UNIX, SOCK_STREAM, 0), 3);
	CHECK_EQ(raw3(SYS_close_range, 3, ~0u, 0), 0);
}

static void still_working(void)
{
	pid_t pid = fork();

	if (!pid)
		_exit(raw0(SYS_getpid) == getpid() ? 5 : 1);
	CHECK_EQ(status_of(pid), EXITED(5));
	CHECK_EQ(system("exit 6"), EXITED(6));
	void *p = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(p != MAP_FAILED);
	memcpy(p, "\xb8\x27\x00\x00\x00\x0f\x05\xc3", 8);
	CHECK_EQ(((long (*)(void))p)(), getpid());
	munmap(p, 4096);
}

static void everything_closed(void)
{
	closefrom(3);
	CHECK_EQ(close_range(3, ~0u, 0), 0);
	still_working();
	CHECK_EQ(close_range(3, ~0u, CLOSE_RANGE_UNSHARE), 0);
	for (int fd = 3; fd < 1100; fd++)
		CHECK_FAILS(close(fd), EBADF);
	still_working();
}

static void everything_replaced(void)
{
	for (int fd = 3; fd < 1024; fd++)
		CHECK_EQ(dup2(0, fd), fd);
	still_working();
	for (int fd = 3; fd < 1024; fd++)
		CHECK_EQ(close(fd), 0);
}

static void cloexec_range(void)
{
	CHECK_EQ(open("/dev/null", O_RDONLY), 3);
	CHECK_EQ(close_range(3, ~0u, CLOSE_RANGE_CLOEXEC), 0);
	CHECK_EQ(fcntl(3, F_GETFD), FD_CLOEXEC);
	execl(beside("show"), "show", "fds", NULL);
	_exit(99);
}

static void *a_thread(void *arg)
{
	return (void *)raw0(SYS_getpid);
}

static void low_limit(void)
{
	struct rlimit low = { 8, 8 };
	pthread_t thread;
	void *ret;

	CHECK_EQ(setrlimit(RLIMIT_NOFILE, &low), 0);
	for (int fd = 3; fd < 8; fd++)
		CHECK_EQ(open("/dev/null", O_RDONLY), fd);
	CHECK_FAILS(open("/dev/null", O_RDONLY), EMFILE);
	CHECK_FAILS(dup(0), EMFILE);
	CHECK_EQ(pthread_create(&thread, NULL, a_thread, NULL), 0);
	CHECK_EQ(pthread_join(thread, &ret), 0);
	CHECK_EQ(ret, getpid());
	pid_t pid = fork();
	if (!pid)
		_exit(7);
	CHECK_EQ(status_of(pid), EXITED(7));
	CHECK_EQ(close(7), 0);
	execl(beside("show"), "show", "fds", NULL);
	_exit(99);
}

/* Only standard input open at the limit, and then exec. */
static void lowest_limit(void)
{
	struct rlimit low = { 4, 4 };

	CHECK_EQ(setrlimit(RLIMIT_NOFILE, &low), 0);
	execl(beside("show"), "show", "fds", NULL);
	_exit(99);
}

static void no_standard_ones(void)
{
	close(0);
	close(1);
	close(2);
	CHECK_EQ(open("/dev/null", O_RDWR), 0);
	CHECK_EQ(open("/dev/null", O_RDWR), 1);
	CHECK_EQ(open("/dev/null", O_RDWR), 2);
	CHECK_EQ(open("/dev/null", O_RDWR), 3);
	close(0);
	close(1);
	close(2);
	close(3);
	pid_t pid = fork();
	if (!pid) {
		execl(beside("die"), "die", "exit", "9", NULL);
		_exit(99);
	}
	CHECK_EQ(status_of(pid), EXITED(9));
}

static void tty_and_offsets(void)
{
	for (int fd = 0; fd < 3; fd++)
		printf("%d: tty %d, flags %#x, at %ld\n", fd, isatty(fd),
		       fcntl(fd, F_GETFL), (long)lseek(fd, 0, SEEK_CUR));
}

int main(void)
{
	tty_and_offsets();
	only_standard_ones();
	IN_CHILD(everything_closed);
	IN_CHILD(everything_replaced);
	IN_CHILD(cloexec_range);
	IN_CHILD(low_limit);
	IN_CHILD(lowest_limit);
	IN_CHILD(no_standard_ones);
	return passed("fds");
}
