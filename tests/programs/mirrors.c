/*
 * What stands behind memory that is mapped of a descriptor: what was written to it
 * before and after, by calls and by memory, by this process and by its child, of a
 * memfd, of a file that is gone, of one that is there, of one that is only read and
 * written again at once, of /dev/zero, and of what cannot be mapped at all.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/wait.h>

#include "tests/programs/check.h"

#define SIZE	65536

static char *map(int fd, int flags, off_t at)
{
	char *m = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, flags, fd, at);

	CHECK(m != MAP_FAILED);
	return m;
}

/* So that followers are compared. */
static void show(const char *what, const char *bytes)
{
	printf("%s: %.24s\n", what, bytes);
	fflush(stdout);
}

/* A child writes by memory: its parent sees it. */
static void child_writes(char *m)
{
	int status;
	pid_t pid = fork();

	if (!pid) {
		strcpy(m + 40000, "the child was here");
		_exit(0);
	}
	CHECK(waitpid(pid, &status, 0) == pid && !status);
	show("child", m + 40000);
}

/* Who is told of its end sees what it did before, also where it will be told again. */
static void child_ends(char *m)
{
	siginfo_t info;
	pid_t pid = fork();

	if (!pid) {
		for (clock_t till = clock() + CLOCKS_PER_SEC / 20; clock() < till;)
			;
		strcpy(m + 41000, "the child is gone");
		_exit(0);
	}
	CHECK(!waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT));
	show("end", m + 41000);
	CHECK(!waitid(P_PID, (id_t)pid, NULL, WEXITED | WNOWAIT));
	CHECK(waitpid(pid, NULL, 0) == pid);
}

/* All the ways in which the content of an open file changes. */
static void changes(const char *name, int fd)
{
	struct iovec iov[2] = { { (void *)"one ", 4 }, { (void *)"two", 4 } };
	char *m, *again, bytes[32] = "";
	int copy;

	CHECK(write(fd, "before the mapping", 19) == 19);
	CHECK(pwrite(fd, "far", 4, SIZE - 4096) == 4);
	CHECK(!ftruncate(fd, SIZE));
	m = map(fd, MAP_SHARED, 0);
	show(name, m);
	show("far", m + SIZE - 4096);
	CHECK(write(fd, "behind", 7) == 7);
	show("write", m + 19);
	CHECK(lseek(fd, 1000, SEEK_SET) == 1000 && writev(fd, iov, 2) == 8);
	show("writev", m + 1000);
	CHECK(pwrite(fd, "placed", 7, 2000) == 7);
	show("pwrite", m + 2000);
	copy = dup(fd);
	CHECK(copy >= 0 && pwritev(copy, iov, 2, 3000) == 8);
	show("dup", m + 3000);
	strcpy(m + 5000, "by memory");
	again = map(copy, MAP_SHARED, 4096);
	show("again", again + 5000 - 4096);
	strcpy(again + 100, "by the other");
	show("other", m + 4196);
	CHECK(pread(fd, bytes, 10, 5000) == 10);
	show("read", bytes);
	child_writes(m);
	CHECK(!ftruncate(fd, 4096) && !ftruncate(fd, SIZE));
	show("cut", m + 5000);
	CHECK(!close(copy) && !munmap(again, SIZE));
	again = map(fd, MAP_PRIVATE, 0);
	show("private", again + 2000);
	strcpy(again, "nobody sees it");
	show("shared", m);
	CHECK(!munmap(m, SIZE) && !munmap(again, SIZE));
}

static void file(void)
{
	char name[64];
	char *m, *n;
	int fd, other;

	snprintf(name, sizeof(name), "mirrors.%d", getpid());
	fd = open(name, O_RDWR | O_CREAT | O_EXCL, 0600);
	CHECK(fd >= 0);
	other = open(name, O_RDWR | O_APPEND);
	CHECK(other >= 0);
	changes("file", fd);
	m = map(fd, MAP_SHARED, 0);
	CHECK(write(other, "at the end", 11) == 11);
	n = map(other, MAP_SHARED, SIZE);
	show("append", n);
	CHECK(!unlink(name));
	CHECK(!close(other));
	other = open(name, O_RDWR | O_CREAT | O_EXCL, 0600);
	CHECK(other >= 0 && write(other, "another file", 13) == 13 && !ftruncate(other, SIZE));
	CHECK(!close(fd));
	show("first", m + 2000);
	show("second", map(other, MAP_SHARED, 0));
	CHECK(!unlink(name) && !close(other));
}

static void put(const char *name, int flags, const char *text)
{
	int fd = open(name, O_WRONLY | O_CREAT | flags, 0600);

	CHECK(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text));
	CHECK(!close(fd));
}

/* What is mapped of a file that is opened for reading only. */
static char *look(const char *name)
{
	int fd = open(name, O_RDONLY);
	char *m = mmap(NULL, SIZE, PROT_READ, MAP_PRIVATE, fd, 0);

	CHECK(fd >= 0 && m != MAP_FAILED && !close(fd));
	return m;
}

/* A file is written again, in all ways, as soon as it was mapped. */
static void rewritten(void)
{
	char name[64], next[80], text[64];

	snprintf(name, sizeof(name), "mirrors.%d", getpid());
	snprintf(next, sizeof(next), "%s.next", name);
	for (int i = 0; i < 100; i++) {
		char *m;

		snprintf(text, sizeof(text), "written the %d. time", i);
		switch (i % 4) {
		case 0:
			put(name, O_TRUNC, text);
			break;
		case 1:
			put(next, O_TRUNC, text);
			CHECK(!rename(next, name));
			break;
		case 2:
			put(name, O_APPEND, text);
			break;
		case 3:
			CHECK(!unlink(name));
			put(name, O_EXCL, text);
			break;
		}
		m = look(name);
		show("again", m);
		show("end", m + strlen(m) - 8);
		CHECK(!munmap(m, SIZE));
	}
	CHECK(!unlink(name));
}

/* A file that is cut by its path, and gets its content from another one. */
static void by_path(void)
{
	char name[64];
	int fd, to;
	char *m;

	snprintf(name, sizeof(name), "mirrors.%d", getpid());
	fd = open(name, O_RDWR | O_CREAT | O_EXCL, 0600);
	CHECK(fd >= 0 && !ftruncate(fd, SIZE) && pwrite(fd, "far away", 9, 5000) == 9);
	m = map(fd, MAP_SHARED, 0);
	show("there", m + 5000);
	CHECK(!truncate(name, 100) && !truncate(name, SIZE));
	show("cut", m + 5000);
	to = memfd_create("mirrors", 0);
	CHECK(to >= 0 && write(to, "old", 4) == 4);
	show("old", mmap(NULL, SIZE, PROT_READ, MAP_PRIVATE, to, 0));
	CHECK(pwrite(fd, "new content", 12, 0) == 12);
	CHECK(!lseek(to, 0, SEEK_SET) && sendfile(to, fd, NULL, 12) == 12);
	show("new", mmap(NULL, SIZE, PROT_READ, MAP_PRIVATE, to, 0));
	CHECK(!unlink(name) && !close(fd) && !close(to));
}

static void rest(void)
{
	int zero = open("/dev/zero", O_RDWR), ends[2];
	char *m;

	CHECK(zero >= 0 && !pipe(ends));
	m = map(zero, MAP_SHARED, 0);
	child_writes(m);
	child_ends(m);
	m = mmap(NULL, SIZE, PROT_READ, MAP_PRIVATE, ends[0], 0);
	CHECK(m == MAP_FAILED && errno == ENODEV);
	printf("pipe: %s\n", strerror(errno));
}

/* A page of a hole, mapped so often that no step may look at each mapping again. */
static void often(void)
{
	const size_t page = 4096, times = 20000;
	char name[] = "often.XXXXXX", *room, *at;
	int fd = mkstemp(name);

	CHECK(fd >= 0 && !unlink(name) && !ftruncate(fd, page));
	room = mmap(NULL, 2 * times * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(room != MAP_FAILED);
	for (size_t i = 0; i < times; i++) {
		at = mmap(room + 2 * i * page, page, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_FIXED, fd, 0);
		CHECK(at == room + 2 * i * page && !*at);
		*at = (char)i;
	}
	for (size_t i = 0; i < times; i++)
		CHECK(room[2 * i * page] == (char)i);
	show("often", "kept");
	CHECK(!munmap(room, 2 * times * page) && !close(fd));
}

int main(void)
{
	int fd = memfd_create("mirrors", MFD_ALLOW_SEALING);

	CHECK(fd >= 0);
	changes("memfd", fd);
	CHECK(!fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE));
	CHECK(mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) == MAP_FAILED);
	show("sealed", mmap(NULL, SIZE, PROT_READ, MAP_PRIVATE, fd, 0));
	file();
	rewritten();
	by_path();
	rest();
	often();
	return passed("mirrors");
}
