/*
 * Writes to a mapped file by descriptors that share their place: copied ones, a child's, one
 * that was opened again, one that only appends, and what a program finds open.  All of what
 * is mapped is printed behind each.
 */
#include <sys/uio.h>

#include "tests/programs/check.h"

#define SIZE	4096

static char *map(int fd)
{
	char *m = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	CHECK(m != MAP_FAILED);
	return m;
}

static void put(int fd, const char *text)
{
	CHECK_EQ(write(fd, text, strlen(text)), (long)strlen(text));
}

static void show(const char *what, const char *m)
{
	printf("%s: %.100s\n", what, m);
	fflush(stdout);
}

static void copied(int fd)
{
	struct iovec iov = { (void *)"vector", 6 };
	int copy = dup(fd), far, status;
	char *m = map(fd);
	pid_t pid;

	put(fd, "one "), put(copy, "two "), put(fd, "three ");
	show("copy", m);
	CHECK_EQ(lseek(copy, 3, SEEK_SET), 3);
	put(fd, "-");
	show("moved", m);
	pid = fork();
	if (!pid) {
		put(fd, "child ");
		_exit(0);
	}
	CHECK(waitpid(pid, &status, 0) == pid && !status);
	put(copy, "parent ");
	show("child", m);
	far = fcntl(fd, F_DUPFD, 100);
	CHECK_EQ(writev(far, &iov, 1), 6);
	CHECK_EQ(dup2(fd, 90), 90);
	put(90, " ninety ");
	show("far", m);
	CHECK(!fcntl(fd, F_SETFL, O_APPEND) && !ftruncate(fd, 60));
	put(90, "appended");
	show("appended", m + 60);
	CHECK(!fcntl(fd, F_SETFL, 0));
	CHECK(!close(copy) && !close(far) && !close(90) && !munmap(m, SIZE));
}

/* A program that was begun with them. */
static void found(void)
{
	char *m = map(10);

	put(11, "inherited "), put(10, "both "), put(12, "another");
	show("found", m);
	CHECK_EQ(lseek(11, 20, SEEK_SET), 20);
	put(10, "far");
	show("found", m + 20);
}

int main(int argc, char **argv)
{
	int fd = memfd_create("places", 0), named, again;

	if (argc > 1) {
		found();
		return passed("places");
	}
	CHECK(!ftruncate(fd, SIZE));
	copied(fd);
	CHECK(!close(fd));
	named = open("file", O_RDWR | O_CREAT | O_TRUNC, 0600);
	CHECK(named >= 0 && !ftruncate(named, SIZE));
	copied(named);
	again = open("file", O_RDWR);
	CHECK(!ftruncate(again, SIZE) && !lseek(named, 0, SEEK_SET));
	CHECK(dup2(named, 10) == 10 && dup2(named, 11) == 11 && dup2(again, 12) == 12);
	execl("/proc/self/exe", argv[0], "found", NULL);
	CHECK(!"it was executed");
}
